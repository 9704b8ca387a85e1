// SPDX-License-Identifier: Apache-2.0
// Where the parallel kernel finds its tiles and keys: in its parameters (one message), in device memory (a batch), or
// keys in parameters and tiles in device memory (a batch with one key, for the mode with short messages: XTS).
//
// A source's Key has `Block round(r)`, and in_registers: whether round keys are in registers, not in operands of the
// logic; then a mode should use few registers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "engine/cuda/inputs/message_view.hpp"

namespace warpcipher::cuda {
struct TileView;
}

namespace warpcipher::cuda::lane_table {

inline constexpr std::uint32_t most_schedule_words = 4 * most_round_keys;

// A key in the constant bank.
struct ParameterKey {
  static constexpr bool in_registers = false;
  const std::uint32_t* schedule;
  __device__ __forceinline__ Block round(std::uint32_t r) const {
    const std::uint32_t* words = schedule + 4 * r;
    return {{words[0], words[1], words[2], words[3]}};
  }
};

// One message: everything is a kernel parameter.
struct SingleSource {
  using Key = ParameterKey;

  MessageView view;
  std::uint64_t tiles;
  std::uint32_t rounds;
  std::uint32_t schedule[most_schedule_words];

  __device__ Key key(const TileView&) const;
  template <class Mode>
  __device__ TileView find(std::uint32_t tile) const;
};

// Many messages.
struct MessageList : TileList {
  template <class Mode>
  __device__ TileView find(std::uint32_t tile) const;
};

// Many messages of one key.
struct OneKeySource : MessageList {
  using Key = ParameterKey;

  std::uint32_t rounds;
  std::uint32_t schedule[most_schedule_words];

  __device__ Key key_at(std::uint32_t) const;
  __device__ Key key(const TileView&) const;
};

// Many messages, each with its key.
struct BatchSource : MessageList {
  std::uint32_t rounds;
  const uint4* round_keys;

  struct Key {
    static constexpr bool in_registers = true;
    const uint4* words;
    __device__ Block round(std::uint32_t r) const;
  };

  __device__ Key key_at(std::uint32_t number) const;
  __device__ Key key(const TileView& tile) const;
};

}  // namespace warpcipher::cuda::lane_table
