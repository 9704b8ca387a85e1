// SPDX-License-Identifier: Apache-2.0
// The two children of many seeds, aes-128-mmo, by tables and by logic at once (engine/cuda/aes/hybrid.cuh): tables
// by themselves keep the pipe of shared memory 98.8% busy, at 47.3 G children/s on an H200.
#pragma once

#include "engine/cuda/runtime/gpu.hpp"
#include "prg/prg.hpp"

namespace warpcipher::prg::cuda {

// Makes children of the first seeds, whole tiles of 256, and returns of how many; 0 where another kernel is as good.
std::uint64_t expand_by_hybrid(const ::warpcipher::cuda::Device& device, const std::uint8_t* seeds, std::uint64_t count,
                               std::uint8_t* out, Stream stream);

}  // namespace warpcipher::prg::cuda
