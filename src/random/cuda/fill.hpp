// SPDX-License-Identifier: Apache-2.0
// Arrays in device memory, on the current device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/stream.hpp"
#include "random/distribution.hpp"
#include "random/stream.hpp"

namespace warpcipher::random::cuda {

// From this many lines of 64 bytes on, bytes of AES take the hybrid kernel where the GPU has it: 64 MiB, as for a
// message.
inline constexpr std::uint64_t least_of_hybrid = std::uint64_t{1} << 20;

// So many lines of key stream of AES are made before a distribution is made of them.
inline constexpr std::uint64_t most_of_piece = std::uint64_t{1} << 20;

// `count` (>= 1) elements at `data`, which is aligned to them, from `position`, a multiple of the width; words of
// `attempt`. Waits for nothing; AES allocates in stream order, up to 64 MiB. Throws Error{engine_unavailable,
// engine_failure, out_of_memory}.
void fill(const StreamKey& key, const Distribution& distribution, std::uint64_t position, std::uint8_t* data,
          std::uint64_t count, std::uint32_t attempt, Stream stream, std::uint64_t least_lines = least_of_hybrid,
          std::uint64_t piece_lines = most_of_piece);

// As permute_host(). Allocates, and waits for the stream.
void permute(const StreamKey& key, std::uint64_t position, std::size_t item_len, std::uint8_t* data,
             std::uint64_t count, Stream stream);

}  // namespace warpcipher::random::cuda
