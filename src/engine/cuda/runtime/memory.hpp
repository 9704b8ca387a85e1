// SPDX-License-Identifier: Apache-2.0
// Device memory that the host manages (stream_buffer.hpp): memory kept for a stream, and arrays that are sent to the
// device.
#pragma once

#include <cuda_runtime_api.h>
#include <cstddef>
#include <memory>
#include <span>

#include "core/wipe.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"
#include "engine/device_engine.hpp"
#include "engine/stream.hpp"

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

// Page-locked host memory, kept between calls: the driver takes longer to lock pages than a GPU takes to encrypt them.

// At least `size` bytes (with unified addressing every device can copy from and to them). Throws Error{out_of_memory,
// engine_failure}.
void* take_pinned(std::size_t size);

// Wipes the first `used` bytes and keeps the memory (`size` as given to take_pinned) for later, or frees it if enough
// is kept.
void give_pinned(void* memory, std::size_t size, std::size_t used) noexcept;

// True when both ends of the range are page-locked, by this library, by the application (cudaHostRegister) or by
// another library.
bool is_pinned(const void* memory, std::size_t size);

// The page-locked range around `memory` that kernels can access at the same address; empty if there is none.
AddressRange find_page_locked(const void* memory);

// Many copies between device memory and page-locked host memory at once. A copy engine needs 3 us for each copy that is
// its own call, but not for the copies of a batch. H200: ranges of 64 KiB and more to the device move at 53 GB/s, and
// at 45 GB/s while a kernel stores results to the host; shorter ranges cost the host 1 to 8 us each. A kernel moves any
// copies at 48 GB/s (loads) and 50 GB/s (stores), but at 28 to 37 GB/s when both run at the same time.

// By copy engines, in any order.
void copy_all(std::span<const DeviceCopy> copies, cudaMemcpyKind kind, Stream stream);

// By a kernel. copies: device memory.
void copy_many(const DeviceCopy* copies, std::size_t count, Pace pace, Stream stream);

// By a kernel: the first `len` bytes of each of `count` rows, `step` bytes apart, one after another to `to`.
void copy_rows(std::uint8_t* to, const std::uint8_t* rows, std::size_t step, std::size_t len, std::size_t count,
               Stream stream);

}  // namespace warpcipher::cuda
