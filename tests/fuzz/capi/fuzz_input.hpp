// SPDX-License-Identifier: Apache-2.0
// Turns the bytes that a fuzzer gives into numbers and buffers. After their end everything is zero.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

// Bytes in an allocation of exactly their number, so that a sanitizer sees the first byte beyond.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::size_t size, std::uint8_t value) : size_(size), data_(new std::uint8_t[size]) {
    std::fill_n(data_.get(), size, value);
  }

  std::uint8_t* data() { return data_.get(); }
  const std::uint8_t* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  const std::uint8_t* begin() const { return data_.get(); }
  const std::uint8_t* end() const { return data_.get() + size_; }

 private:
  std::size_t size_ = 0;
  std::unique_ptr<std::uint8_t[]> data_;
};

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

  std::uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }

  // A number below `limit` (>= 1). Two bytes: no limit here needs more.
  std::size_t below(std::size_t limit) {
    const std::size_t high = limit > 256 ? byte() : 0u;
    return (high << 8 | byte()) % limit;
  }

  // True once in `n` times.
  bool chance(std::size_t n) { return below(n) == n - 1; }

  Buffer take(std::size_t size) {
    Buffer buffer(size, 0);
    const std::size_t some = std::min(size, left_);
    if (some != 0) std::memcpy(buffer.data(), data_, some);
    data_ += some;
    left_ -= some;
    return buffer;
  }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};
