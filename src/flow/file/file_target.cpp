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

FileTarget::FileTarget(int descriptor, std::uint64_t size, FailingWork<WriteFailure>& work)
    : descriptor_(descriptor), mapped_(descriptor, size), work_(work) {
  if (mapped_.error() != 0) work.fail({size, mapped_.error()});
}

bool FileTarget::write(const std::uint8_t* data, std::size_t len, std::uint64_t position) {
  if (mapped_.memory() != nullptr) {
    std::copy_n(data, len, mapped_.memory() + position);
    return true;
  }
  const auto some = [&](std::size_t done, std::size_t left) {
    return pwrite(descriptor_, data + done, left, static_cast<off_t>(position + done));
  };
  const std::size_t done = move_all(len, some, [&] { work_.check(true); });
  if (done == len) return true;
  work_.fail({position + done, errno != 0 ? errno : ENOSPC});
  return false;
}

}  // namespace warpcipher
