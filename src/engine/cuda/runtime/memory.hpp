// SPDX-License-Identifier: Apache-2.0
// Device memory that the host manages (stream_buffer.hpp): memory kept for a stream, and arrays that are sent to the
// device.
#pragma once

#include <cstddef>
#include <memory>

#include "core/wipe.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"

namespace warpcipher::cuda {

// Memory that is freed on this stream is kept for the next allocation on it, without the driver. The driver is slow,
// and makes a stream wait for another one whose memory it reuses. keep: for the library's own streams. let_go: before
// such a stream is destroyed.
void keep_memory_of(Stream stream);
void let_memory_go(Stream stream) noexcept;

// Arrays made on the host and read by kernels: reserved first, then filled, then sent in one copy. Both sides are
// wiped. Arrays that only kernels write follow them in the same memory, so that they need no allocation and no wipe of
// their own.
//
//   Upload upload;
//   const auto keys = upload.reserve<std::uint32_t>(n);
//   const auto sums = upload.reserve_on_device<std::uint64_t>(n);
//   upload.allocate(stream);
//   upload.host(keys)[0] = ...;
//   upload.send();
//   kernel<<<...>>>(upload.device(keys));
class Upload {
 public:
  template <class T>
  struct Array {
    std::size_t offset;
  };

  template <class T>
  Array<T> reserve(std::size_t count) {
    const Array<T> array = reserve_on_device<T>(count);
    sent_ = size_;
    return array;
  }

  // Not sent; follows the arrays that are.
  template <class T>
  Array<T> reserve_on_device(std::size_t count) {
    static_assert(alignof(T) <= alignment, "arrays start at multiples of 16 bytes");
    const Array<T> array{size_};
    size_ += (count * sizeof(T) + alignment - 1) / alignment * alignment;
    return array;
  }

  // wiping: of the device side, at the end.
  void allocate(Stream stream, Wiping wiping = Wiping::needed);

  template <class T>
  T* host(Array<T> array) {
    return reinterpret_cast<T*>(host_.data() + array.offset);
  }

  template <class T>
  T* device(Array<T> array) const {
    return reinterpret_cast<T*>(device_->data() + array.offset);
  }

  void send();

 private:
  static constexpr std::size_t alignment = 16;

  std::size_t size_ = 0;
  std::size_t sent_ = 0;
  SecretBytes host_;
  std::unique_ptr<StreamBuffer> device_;
  Stream stream_ = nullptr;
};

}  // namespace warpcipher::cuda
