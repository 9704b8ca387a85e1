// SPDX-License-Identifier: Apache-2.0
// Why a candidate was refused: plain numbers for a launch, text for people (explain.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/cuda/runtime/conditions.hpp"

namespace warpcipher::cuda {

enum class Reason : std::uint8_t {
  none,                // not refused
  forced,              // `choice` is forced to another candidate: `given`, a value of its enum
  tuned,               // another was measured to be faster on this machine
  capability_9_0,      // another compute capability
  tensor_cores,        // compute capability 8.x or 9.x is needed
  one_multiprocessor,  // two are needed
  shared_memory,       // of a block: `given` bytes, `bound` needed
  tables_64,           // tables of 128 KiB are needed
  mode,                // no such kernel for the mode
  batch,               // in this mode for one message by itself
  many_keys,           // messages do not share a key that can be a kernel parameter
  one_key,             // messages share a key
  key_not_128,         // keys of other lengths
  no_expansion,        // the kernel makes no round keys
  derived_on_host,     // the host has made the round keys already
  empty,               // there is no text
  long_messages,       // `given` blocks, at most `bound`
  uneven_messages,     // lengths differ
  partial_tiles,       // most tiles, or places of tiles, would be empty
  few_tiles,           // `given`, `bound` needed
  few_warps,           // likewise
  few_messages,        // likewise
  many_messages,       // `given`, at most `bound`
  few_blocks,          // as few_tiles
  few_blocks_of_key,   // likewise
  many_short,          // `given` short messages: each is too short for this
  sector_len,          // the kernel takes no data units of `given` bytes
  key_192,             // no such kernel for 12 rounds
  registers,           // a thread needs more of them for longer keys
  any_address,         // texts are not aligned, and fill tiles
};

struct Refusal {
  Reason reason = Reason::none;
  std::uint64_t given = 0;
  std::uint64_t bound = 0;
  const Choice* choice = nullptr;

  explicit operator bool() const { return reason != Reason::none; }
};

template <class Forced>
Refusal refuse_forced(const Choice& choice, Forced forced) {
  return {Reason::forced, static_cast<std::uint64_t>(forced), 0, &choice};
}

// "WARPCIPHER_FORCE=text=tiles": forces that value.
std::string forced_text(const Choice& choice, std::string_view value);

// For people; empty for Reason::none.
std::string to_text(const Refusal& refusal);

// The first candidate that is not refused; the last if all are refused.
template <class Candidate, std::size_t N, class Refuse>
Candidate first_accepted(const std::array<Candidate, N>& candidates, Refuse&& refuse) {
  for (std::size_t i = 0; i + 1 < N; ++i) {
    if (!refuse(candidates[i])) return candidates[i];
  }
  return candidates[N - 1];
}

}  // namespace warpcipher::cuda
