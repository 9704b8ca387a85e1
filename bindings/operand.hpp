// SPDX-License-Identifier: Apache-2.0
// The bytes that a Python object lends to a run: a bytes object, anything with the buffer protocol, or a Span, which
// python/warpcipher/arrays makes for the memory of array libraries.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "message/message.hpp"

namespace warpcipher::python {

inline constexpr int host_device = -1;

// Contiguous memory with an owner. `device` is a CUDA ordinal, or host_device.
struct Span {
  std::uint8_t* data;
  std::size_t size;
  int device;
  bool readonly;
  nanobind::object owner;
};

// Whether the object itself is bytes, a bytearray or a memoryview: all others pass through warpcipher.arrays.
bool is_plain(nanobind::handle object);

// Holds the object, and the buffer it exports, for as long as it lives. The GIL is held at both ends of that life.
class Operand {
 public:
  enum class Use { read, read_or_none, write };  // None lends no bytes

  Operand() = default;
  // Throws TypeError when the object has no bytes to lend, BufferError when they are not contiguous, or read-only
  // and `use` is write. `name` is the argument's, for the text.
  Operand(nanobind::handle object, const char* name, Use use);
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;
  ~Operand();

  std::uint8_t* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  int device() const noexcept { return device_; }
  Memory memory() const noexcept { return device_ == host_device ? Memory::host : Memory::device; }
  std::span<const std::uint8_t> bytes() const noexcept { return {data_, size_}; }

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  int device_ = host_device;
  bool exported_ = false;
  Py_buffer buffer_{};
  nanobind::object owner_;
};

// Where an operand lies, for error texts: "host memory" or "GPU 0".
std::string place(const Operand& operand);

}  // namespace warpcipher::python
