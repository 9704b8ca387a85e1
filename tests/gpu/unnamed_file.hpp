// SPDX-License-Identifier: Apache-2.0
// A file without a name, which goes when the test ends.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <vector>

namespace conformance {

class UnnamedFile {
 public:
  UnnamedFile() {
    char name[] = "/tmp/warpcipher-file-XXXXXX";
    descriptor_ = mkstemp(name);
    if (descriptor_ < 0) throw std::runtime_error("mkstemp");
    unlink(name);
  }
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;
  ~UnnamedFile() { close(descriptor_); }

  void write(const std::vector<std::uint8_t>& bytes, std::uint64_t offset) const {
    if (pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset)) !=
        static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("pwrite");
    }
  }
  void truncate(std::uint64_t size) const {
    if (ftruncate(descriptor_, static_cast<off_t>(size)) != 0) throw std::runtime_error("ftruncate");
  }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace conformance
