// SPDX-License-Identifier: Apache-2.0
#include "vector_io.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace {

ssize_t call(long number, warpcipher::test::BeforeVectorIo before, int file, const iovec* vectors, int count,
             off_t offset) {
  if (const int error = before == nullptr ? 0 : before(vectors, count, offset); error != 0) {
    errno = error;
    return -1;
  }
  return syscall(number, file, vectors, count, offset, 0);
}

}  // namespace

// Instead of the C library's.
extern "C" ssize_t preadv(int file, const iovec* vectors, int count, off_t offset) {
  return call(SYS_preadv, warpcipher::test::before_preadv, file, vectors, count, offset);
}

extern "C" ssize_t pwritev(int file, const iovec* vectors, int count, off_t offset) {
  return call(SYS_pwritev, warpcipher::test::before_pwritev, file, vectors, count, offset);
}
