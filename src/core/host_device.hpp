// SPDX-License-Identifier: Apache-2.0
// The one macro of the project: marks a function that is compiled for the host and for the GPU from one source.
#pragma once

#if defined(__CUDACC__)
#define WARPCIPHER_HD __host__ __device__
#else
#define WARPCIPHER_HD
#endif
