// SPDX-License-Identifier: Apache-2.0
#include "flow/file/file_target.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace warpcipher {
namespace {

bool is_in_memory(int descriptor) {
  struct statfs system {};
  struct stat file {};
  return fstatfs(descriptor, &system) == 0 && system.f_type == TMPFS_MAGIC && fstat(descriptor, &file) == 0 &&
         S_ISREG(file.st_mode);
}

}  // namespace

MappedFile::MappedFile(int descriptor, std::uint64_t size) {
  if (size == 0 || !is_in_memory(descriptor)) return;
  if (const int error = posix_fallocate(descriptor, 0, static_cast<off_t>(size)); error != 0) {
    if (error == ENOSPC) error_ = error;
    return;
  }
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return;  // a descriptor that cannot be read
  memory_ = static_cast<std::uint8_t*>(memory);
  size_ = size;
}

MappedFile::~MappedFile() {
  if (memory_ != nullptr) munmap(memory_, size_);
}

FileTarget::FileTarget(int descriptor, std::uint64_t size, FileWork& work)
    : descriptor_(descriptor), mapped_(descriptor, size), work_(work) {
  if (mapped_.error() != 0) failure_ = WriteFailure{size, mapped_.error()};
}

bool FileTarget::write(const std::uint8_t* data, std::size_t len, std::uint64_t position) {
  if (mapped_.memory() != nullptr) {
    std::copy_n(data, len, mapped_.memory() + position);
    return true;
  }
  while (len != 0) {
    const ssize_t done = pwrite(descriptor_, data, len, static_cast<off_t>(position));
    if (done < 0 && errno == EINTR) {
      work_.check(true);
      continue;
    }
    if (done <= 0) {
      const int error = done < 0 ? errno : ENOSPC;
      work_.stop();
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = WriteFailure{position, error};
      return false;
    }
    data += done;
    len -= static_cast<std::size_t>(done);
    position += static_cast<std::uint64_t>(done);
  }
  return true;
}

std::optional<WriteFailure> FileTarget::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace warpcipher
