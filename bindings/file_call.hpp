// SPDX-License-Identifier: Apache-2.0
// What calls that read and write chunks of files have in common: their named tuples, the file, and signals meanwhile.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <vector>

#include "bind.hpp"
#include "flow/file/regular_chunks.hpp"
#include "gil.hpp"
#include "integers.hpp"
#include "keys.hpp"
#include "operand.hpp"

namespace warpcipher::python {

namespace nb = nanobind;

// The GIL is asked for no more often: another thread may take milliseconds to give it.
inline constexpr std::chrono::milliseconds time_between_signals{100};

// A descriptor of the call's own: another thread may close the file meanwhile, and its number be given anew.
class Descriptor {
 public:
  explicit Descriptor(int given) : number_(fcntl(given, F_DUPFD_CLOEXEC, 0)) {
    if (number_ >= 0) return;
    PyErr_SetFromErrno(PyExc_OSError);
    throw nb::python_error();
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(number_); }

  int number() const { return number_; }

 private:
  const int number_;
};

// Throws what a handler of Python raises for a signal, such as KeyboardInterrupt.
class Signals {
 public:
  // interrupted: by a signal, whose handler may have to run now: the read may take long, and no other comes.
  void operator()(bool interrupted) {
    const auto now = std::chrono::steady_clock::now();
    if (!interrupted && now - last_ < time_between_signals) return;
    last_ = now;
    const GilHeld held;
    if (sheltered([] { return PyErr_CheckSignals(); }) != 0) throw nb::python_error();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Of a named tuple's field.
inline std::uint64_t field_of(nb::handle call, const char* name) { return number_of(call.attr(name), name); }

// A RegularChunksCall of python/warpcipher/formats/file_chunks.py.
struct Regular {
  explicit Regular(nb::handle call)
      : base(call.attr("base"), "base", Operand::Use::read),
        chunks(RegularLayout{field_of(call, "header"), field_of(call, "chunk"), field_of(call, "overhead"),
                             field_of(call, "first_lacks"), field_of(call, "size"), field_of(call, "chunks")},
               RegularNonces{base.bytes(), nb::cast<unsigned>(call.attr("counter_shift")),
                             nb::cast<int>(call.attr("final_shift"))},
               field_of(call, "position"), field_of(call, "length")) {}

  Operand base;
  RegularChunks chunks;
};

// The columns that calls to read and to write chunks share.
struct ChunkColumns {
  explicit ChunkColumns(nb::handle call)
      : offsets(call.attr("offsets"), "offsets"),
        lengths(call.attr("lengths"), "lengths"),
        key_index(call.attr("key_index"), "key_index"),
        ivs(call.attr("ivs"), "ivs", Operand::Use::read_or_none),
        key_numbers(narrow(key_index.values())) {
    offsets.own();  // another thread may change them, and an output may be the same memory
    lengths.own();
  }

  // Into a FileChunks or ChunksToWrite.
  template <class Chunks>
  void fill(Chunks& chunks) const {
    chunks.count = lengths.values().size();
    chunks.file_offsets = offsets.values();
    chunks.lengths = lengths.values();
    chunks.key_index = key_numbers;
    chunks.ivs = ivs.bytes();
  }

  Integers offsets, lengths, key_index;
  Operand ivs;
  std::vector<std::uint32_t> key_numbers;
};

}  // namespace warpcipher::python
