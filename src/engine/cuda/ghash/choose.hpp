// SPDX-License-Identifier: Apache-2.0
// Which algorithm hashes a group of GCM messages: the candidates in the order of preference, why one is refused, and
// the choice, as in aes/choose.hpp.
#pragma once

#include <array>

#include "engine/cuda/ghash/launches.hpp"
#include "engine/cuda/runtime/refusal.hpp"

namespace warpcipher::cuda {

using ghash::GhashAlgorithm;

inline constexpr std::array ghash_candidates{GhashAlgorithm::tensor_warpgroups, GhashAlgorithm::tensor_rows,
                                             GhashAlgorithm::few_lanes,         GhashAlgorithm::tensor_one_key,
                                             GhashAlgorithm::tensor_many_keys,  GhashAlgorithm::scalar};
Refusal refuse(const Conditions& now, const ghash::Work& work, GhashAlgorithm algorithm);

// Forcing `ghash` forces one. "warpgroups" and "rows" have no kernel for many keys, and "rows" has none for long
// messages: then they force nothing. Throws Error{engine_failure} if the device cannot run the forced one.
GhashAlgorithm choose_ghash(const Conditions& now, const ghash::Work& work);

// Messages of fewer blocks are hashed by tensor_rows and have no chunks, in a batch whose messages are not known yet.
// 0: all are hashed by one algorithm.
std::uint64_t least_chunked(const Conditions& now, std::uint64_t messages, std::uint64_t keys);

namespace ghash {

// Workers that take chunks of messages in turn, a chunk each. Lengths are in blocks.
struct Turns {
  std::uint64_t workers;
  std::uint64_t start;     // what a worker would hash while it begins and ends a chunk
  std::uint64_t wanted;    // turns of each worker where messages are few
  std::uint64_t multiple;  // of which a chunk's length is one
  std::uint64_t least;     // length of a chunk
};

// The length of chunks with which the workers end soonest, if the messages are about equally long.
std::uint64_t even_chunk(const Turns& turns, std::uint64_t blocks, std::uint64_t messages);

}  // namespace ghash

}  // namespace warpcipher::cuda
