// SPDX-License-Identifier: Apache-2.0
// What an engine of a device offers beside running plans: its memory and its streams, so that src/pipeline can bring
// host data to it without knowing which device it is.
#pragma once

#include <cstddef>

#include "engine/engine.hpp"

namespace warpcipher {

// All functions throw Error{engine_failure, out_of_memory}. Copies, clears and frees are ordered on their stream.
class DeviceEngine : public Engine {
 public:
  Memory memory() const final { return Memory::device; }

  virtual Stream create_stream() = 0;
  virtual void destroy_stream(Stream stream) noexcept = 0;
  virtual void wait(Stream stream) = 0;

  // Device memory. deallocate wipes `size` bytes first.
  virtual void* allocate(std::size_t size, Stream stream) = 0;
  virtual void deallocate(void* memory, std::size_t size, Stream stream) noexcept = 0;

  // Page-locked host memory: copies from and to it overlap with kernels. free_pinned wipes `size` bytes first.
  virtual void* allocate_pinned(std::size_t size) = 0;
  virtual void free_pinned(void* memory, std::size_t size) noexcept = 0;

  virtual void copy_to_device(void* device, const void* host, std::size_t size, Stream stream) = 0;
  virtual void copy_to_host(void* host, const void* device, std::size_t size, Stream stream) = 0;
  virtual void clear(void* device, std::size_t size, Stream stream) = 0;
};

}  // namespace warpcipher
