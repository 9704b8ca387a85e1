// SPDX-License-Identifier: Apache-2.0
// Views of messages, filled in by the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cuda/inputs/message_view.hpp"
#include "message/message.hpp"

namespace warpcipher::cuda {

// The view of a message without its start and key.
inline MessageView view_of(const Message& message) {
  MessageView view{};
  view.in = message.in;
  view.out = message.out;
  view.in_len = message.in_len;
  view.out_len = message.output_len();
  view.units = message.units();
  view.pad = static_cast<std::uint32_t>(view.out_len - view.in_len);
  return view;
}

// How many messages a core of the host takes at a time, when it fills in views.
inline constexpr std::size_t messages_at_once = 2048;

// Up to 16 bytes of the host as a block, the rest zero.
inline Block to_block(const std::uint8_t* bytes, std::size_t len) {
  Block block{};
  for (std::size_t i = 0; i < len; ++i) block.words[i / 4] |= std::uint32_t{bytes[i]} << (8 * (i % 4));
  return block;
}

}  // namespace warpcipher::cuda
