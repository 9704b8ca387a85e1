// SPDX-License-Identifier: Apache-2.0
// A text whose parts lie in several places of host and device memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

}  // namespace warpcipher
