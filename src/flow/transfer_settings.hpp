// SPDX-License-Identifier: Apache-2.0
// The settings of a host transfer: how long its pieces are, and how many are in progress.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "engine/device_engine.hpp"

namespace warpcipher {

// A launch with its copies takes the host about 20 us, in which the link moves 1 MiB.
inline constexpr std::size_t least_piece_len = std::size_t{1} << 19;

// Never changes results.
struct TransferSettings {
  std::size_t piece_len;   // bytes of a piece, a multiple of 256
  std::size_t slots;       // pieces of one device that are in progress at once
  std::size_t devices;     // devices that get pieces, of those that the engine offers
  std::size_t direct_len;  // pinned runs of at least this many bytes are copied by DMA
  std::size_t helpers;     // cores that are asked to help with copies
  // Coalesced ranges of at least this many bytes are copied by DMA. H200: shorter ones cost the host more than they
  // save.
  std::size_t range_len = std::size_t{64} << 10;
};

// For `total` bytes in `messages` messages on an engine with `devices` devices. Pieces are short enough that
// several overlap, and long enough to be worth their launches. Each further device gets enough bytes to keep it busy.
TransferSettings choose_transfer_settings(std::size_t total, std::size_t devices, std::size_t messages = 1);

// The policies that the tuner may choose: "piece_MiB", the longest piece, and "slots". They are the same for all
// devices. An empty value goes back to the default; an unknown name or value changes nothing.
std::vector<Policy> transfer_policies();
void choose_transfer_policy(std::string_view name, std::string_view value);

}  // namespace warpcipher
