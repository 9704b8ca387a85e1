// SPDX-License-Identifier: Apache-2.0
// The kernels of the family; choose.hpp chooses. Host code only, so that the choice can be tested without a GPU.
#pragma once

#include <cstdint>

namespace warpcipher::cuda::chacha {

enum class StreamKernel : std::uint8_t {
  packed,  // four lanes a message: many short ones
  tiles,   // a warp takes 256 blocks of one message
};

enum class AeadKernel : std::uint8_t {
  chunks,  // text and Poly1305 in one pass, Poly1305 on tensor cores
  lanes,   // text and Poly1305 by up to 32 lanes a message, from its key to its tag: many of them
};

}  // namespace warpcipher::cuda::chacha
