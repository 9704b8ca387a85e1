// SPDX-License-Identifier: Apache-2.0
// Texts XORed with ChaCha20's key stream: a block a lane.
#pragma once

#include <cstdint>

#include "engine/cuda/chacha/inputs.hpp"
#include "engine/cuda/chacha/kernels.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda::chacha {

void add_key_streams(const Device& device, Stream stream, StreamKernel kernel, const Batch& batch);

}  // namespace warpcipher::cuda::chacha
