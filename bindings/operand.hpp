// SPDX-License-Identifier: Apache-2.0
// The bytes that a Python object lends to a run: a bytes object, anything with the buffer protocol, or a Span, which
// python/warpcipher/arrays makes for the memory of array libraries.
#pragma once

#include <nanobind/nanobind.h>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "message/key.hpp"
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

std::vector<std::uint8_t> copy_of(nanobind::handle object, const char* name, Operand::Use use = Operand::Use::read);

// Where an operand lies, for error texts: "host memory" or "GPU 0".
std::string place(const Operand& operand);

// Memory for the result of a call. A long text lies in memory that the system has just handed out, and writing it is
// then a page fault for each page: in pages of 4 KiB they take longer than AES, in pages of 2 MiB they do not.

// A bytes object of `size` bytes, and a bytearray. Their content is undefined. Throw MemoryError.
nanobind::object new_bytes(std::size_t size);
nanobind::object new_bytearray(std::size_t size);

// Where such a bytes object is to be written, before anybody else has seen it.
std::uint8_t* bytes_of(nanobind::handle bytes);

// Arguments that are integers, and columns of them.

// The int that an object stands for. Throws TypeError that names the argument.
nanobind::object index_of(nanobind::handle object, const char* name);

// An int from 0 to `most`. Throws TypeError or ValueError that names the argument.
std::uint64_t number_of(nanobind::handle object, const char* name, std::uint64_t most = UINT64_MAX);

// Borrowed where they lie as 64-bit integers in memory (array('Q'), NumPy), copied from any sequence of ints otherwise.
class Integers {
 public:
  // None gives an empty column. Throws TypeError or ValueError that names the column.
  Integers(nanobind::handle object, const char* name);
  Integers(const Integers&) = delete;
  Integers& operator=(const Integers&) = delete;
  ~Integers();

  std::span<const std::uint64_t> values() const { return values_; }

  // Copies borrowed integers: for calls that read a column again after they checked it, while others may write to it.
  void own();

 private:
  bool borrow_buffer(const char* name);

  Py_buffer buffer_{};
  bool exported_ = false;
  std::vector<std::uint64_t> copied_;
  std::span<const std::uint64_t> values_;
};

// Arguments that calls with columns share: keys, and columns that may be left out.

// The keys of a batch as Python gives them: a Key, the bytes of one, or a sequence of either.
class Keys {
 public:
  Keys(const Algorithm& algorithm, nanobind::handle object);

  std::span<const Key* const> pointers() const { return pointers_; }
  const std::vector<nanobind::object>& objects() const { return objects_; }

 private:
  void add(const Algorithm& algorithm, nanobind::handle item);

  std::vector<nanobind::object> objects_;
  std::vector<const Key*> pointers_;
};

// Numbers of keys. Throws Error{invalid_argument} for one that no key has.
std::vector<std::uint32_t> narrow(std::span<const std::uint64_t> values);

// An empty column stands for an absent one further down, so one that was given is checked here. `of` is what the column
// describes, such as "messages".
void check_given(nanobind::handle object, const Integers& column, const char* name, std::size_t count, const char* of);

// The text of a str. Throws TypeError that names the argument.
std::string text_of(nanobind::handle object, const char* name);

}  // namespace warpcipher::python
