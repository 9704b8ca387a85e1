// SPDX-License-Identifier: Apache-2.0
// Device memory ordered on a stream. Everything a run needs beside the text (descriptors, schedules, scratch) comes
// from here and is wiped on the same stream before it is freed, so the host never waits for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/wipe.hpp"
#include "engine/engine.hpp"

namespace warpcipher::cuda {

// Memory of the library's own pool on the current device, which keeps what was freed for the next call. Throws
// Error{out_of_memory, engine_failure}.
void* allocate(std::size_t size, Stream stream);

// Wipes the first `used` bytes and frees, in stream order. `size`: as given to allocate().
void deallocate(void* memory, std::size_t size, std::size_t used, Stream stream) noexcept;

// What is freed on this stream is kept for what is allocated on it next, without the driver: that takes its time, and
// makes a stream wait for another whose memory it is given. keep: streams of the library's own. let_go: before such a
// stream is destroyed.
void keep_memory_of(Stream stream);
void let_memory_go(Stream stream) noexcept;

enum class Wiping : std::uint8_t { needed, needless };  // needless: no secret was ever there

// Device memory of a run; wiped and freed in stream order at the end of its scope.
class StreamBuffer {
 public:
  StreamBuffer() = default;
  StreamBuffer(std::size_t size, Stream stream, Wiping wiping = Wiping::needed)
      : memory_(size == 0 ? nullptr : allocate(size, stream)), size_(size), stream_(stream), wiping_(wiping) {}
  StreamBuffer(const StreamBuffer&) = delete;
  StreamBuffer& operator=(const StreamBuffer&) = delete;
  ~StreamBuffer() {
    if (memory_ != nullptr) deallocate(memory_, size_, wiping_ == Wiping::needed ? size_ : 0, stream_);
  }

  std::uint8_t* data() const noexcept { return static_cast<std::uint8_t*>(memory_); }
  std::size_t size() const noexcept { return size_; }

 private:
  void* memory_ = nullptr;
  std::size_t size_ = 0;
  Stream stream_ = nullptr;
  Wiping wiping_ = Wiping::needed;
};

// Arrays made on the host and read by kernels: reserved first, then filled, then sent in one copy. Both sides are
// wiped. What kernels alone write lies behind them, so that it costs no allocation and no wipe of its own.
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

  // Not sent. Comes after what is.
  template <class T>
  Array<T> reserve_on_device(std::size_t count) {
    static_assert(alignof(T) <= alignment, "arrays start at multiples of 16 bytes");
    const Array<T> array{size_};
    size_ += (count * sizeof(T) + alignment - 1) / alignment * alignment;
    return array;
  }

  void allocate(Stream stream);

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
