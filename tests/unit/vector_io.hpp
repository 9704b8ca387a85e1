// SPDX-License-Identifier: Apache-2.0
// preadv() and pwritev() of the library, as a test wants them to go.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>

namespace warpcipher::test {

// Called before the system does it. Returns 0 to go on, or errno, with which the call fails.
using BeforeVectorIo = int (*)(const iovec* vectors, int count, off_t offset);

// nullptr: only the system's.
inline std::atomic<BeforeVectorIo> before_preadv{nullptr}, before_pwritev{nullptr};

}  // namespace warpcipher::test
