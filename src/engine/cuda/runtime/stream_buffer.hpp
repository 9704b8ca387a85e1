// SPDX-License-Identifier: Apache-2.0
// Device memory ordered on a stream. Everything that a run needs in addition to the text (descriptors, schedules,
// scratch) is allocated here. It is wiped on the same stream before it is freed, so the host never waits for that.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/stream.hpp"

namespace warpcipher::cuda {

// Memory from the library's pool on the current device, which keeps freed memory for the next call. Throws
// Error{out_of_memory, engine_failure}.
void* allocate(std::size_t size, Stream stream);

// Wipes the first `used` bytes and frees, in stream order. `size`: as given to allocate().
void deallocate(void* memory, std::size_t size, std::size_t used, Stream stream) noexcept;

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

}  // namespace warpcipher::cuda
