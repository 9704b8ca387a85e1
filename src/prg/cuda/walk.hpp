// SPDX-License-Identifier: Apache-2.0
// Point functions in device memory, before their shares are summed or copied.
#pragma once

#include "engine/cuda/runtime/gpu.hpp"
#include "prg/prg.hpp"

namespace warpcipher::prg::cuda {

// Keys in device memory.
struct DeviceKeys {
  Domain domain;
  int party;
  const std::uint8_t* records;
  std::uint64_t count;
};

// Of the 2^levels parts of all leaves that follow each other, one; levels: at most the depth.
struct LeafPart {
  int levels = 0;
  std::uint64_t number = 0;
};

// The blocks of a part of the leaves to their places among those of all, Domain::blocks() << depth for each key.
// device: the current one, or with fewer multiprocessors, so that others are left to a kernel on another stream.
void evaluate_blocks(const ::warpcipher::cuda::Device& device, const DeviceKeys& keys, const LeafPart& part,
                     std::uint8_t* out, Stream stream);

}  // namespace warpcipher::prg::cuda
