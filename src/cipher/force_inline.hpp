// SPDX-License-Identifier: Apache-2.0
// Marks the small functions that straight-line cipher code is made of. They take arrays by reference; left
// out of line, those arrays would move from registers to memory (local memory on a GPU).
#pragma once

#include "core/host_device.hpp"

#if defined(__CUDACC__)
#define WARPCIPHER_INLINE WARPCIPHER_HD __forceinline__
#else
#define WARPCIPHER_INLINE inline __attribute__((always_inline))
#endif
