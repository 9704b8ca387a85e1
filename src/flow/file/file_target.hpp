// SPDX-License-Identifier: Apache-2.0
// Texts that lie in several places of host and device memory, and the file that several threads write parts of.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "flow/file/work.hpp"
#include "flow/file/write_chunks.hpp"

namespace warpcipher {

class TextParts {
 public:
  // The parts are borrowed.
  explicit TextParts(std::span<const TextPart> parts) : parts_(parts) {
    for (const TextPart& part : parts) {
      begins_.push_back(size_);
      size_ += part.len;
    }
  }

  std::uint64_t size() const { return size_; }

  // Calls body(memory, data, len) for the bytes of a range, part by part. The text has the range.
  template <class Body>
  void for_range(std::uint64_t begin, std::uint64_t len, Body&& body) const {
    if (len == 0) return;
    auto at = static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), begin) - begins_.begin()) - 1;
    for (; len != 0; ++at) {
      const TextPart& part = parts_[at];
      const std::uint64_t skip = begin - begins_[at];
      const std::uint64_t taken = std::min(len, part.len - skip);
      if (taken != 0) body(part.memory, part.data + skip, static_cast<std::size_t>(taken));
      begin += taken;
      len -= taken;
    }
  }

 private:
  const std::span<const TextPart> parts_;
  std::vector<std::uint64_t> begins_;
  std::uint64_t size_ = 0;
};

// The file's memory, where it has some: a tmpfs. write() takes one lock for the whole of such a file, so that threads
// wait for each other: 3.3 GB/s with any number of them, and 6.9 by a mapping with 16 (Xeon, 2 GiB). Its pages are
// there before it is mapped: a full file system is an error, not a signal. On a disk the disk bounds both.
class MappedFile {
 public:
  // Not mapped where that is of no use. size: of the file, which becomes no longer.
  MappedFile(int descriptor, std::uint64_t size);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::uint8_t* memory() const { return memory_; }  // null where it is not mapped
  int error() const { return error_; }              // errno: there is no room

 private:
  std::uint8_t* memory_ = nullptr;
  std::uint64_t size_ = 0;
  int error_ = 0;
};

class FileTarget {
 public:
  // size: of all that is written. There may be a failure from the beginning on: no room.
  FileTarget(int descriptor, std::uint64_t size, FailingWork<WriteFailure>& work);

  // From any thread of `work`. False, and the work stops, where not all could be written.
  bool write(const std::uint8_t* data, std::size_t len, std::uint64_t position);

 private:
  const int descriptor_;
  const MappedFile mapped_;
  FailingWork<WriteFailure>& work_;
};

}  // namespace warpcipher
