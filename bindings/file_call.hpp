// SPDX-License-Identifier: Apache-2.0
// The common part of calls that read and write files: the file, the texts, and signals meanwhile.
#pragma once

#include <fcntl.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind.hpp"
#include "flow/file/read_chunks.hpp"
#include "flow/file/write_chunks.hpp"
#include "gil.hpp"
#include "operand.hpp"

namespace warpcipher::python {

namespace nb = nanobind;

// The GIL is asked for no more often: another thread may take milliseconds to give it.
inline constexpr std::chrono::milliseconds time_between_signals{100};

// A descriptor of the call's own: another thread may close the file meanwhile, and its number be given again.
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

// Why a read failed: "tag", "ended" or "error", the chunk, the place in the file and the errno. None: it did not.
using ReadOutcome = std::optional<std::tuple<const char*, std::size_t, std::uint64_t, int>>;

// Why a write failed: the place in the file and the errno.
using WriteOutcome = std::optional<std::tuple<std::uint64_t, int>>;

// Calls read(options) without the interpreter's lock and on the device of `out`.
ReadOutcome read_to(const Operand& out, const std::function<std::optional<ReadFailure>(const ReadOptions&)>& read);

// The source of a read: a descriptor, or the bytes of a file that begin with byte `begin` of it.
class Source {
 public:
  Source(nb::handle given, std::uint64_t begin);

  const ChunkSource& get() const { return source_; }

 private:
  std::optional<Descriptor> descriptor_;
  std::optional<Operand> bytes_;
  ChunkSource source_;
};

// Texts to write: buffers and Spans, one after another. streams: pairs of a device and a stream of it, on which they
// are made. device: that encrypts; None: no text is on a GPU.
class Texts {
 public:
  Texts(nb::handle texts, nb::handle streams, nb::handle device);

  std::span<const TextPart> parts() const { return parts_; }

  // Calls write() without the interpreter's lock and on the device, when what makes the texts is done.
  WriteOutcome write_by(const std::string& engine, const std::function<std::optional<WriteFailure>()>& write) const;

 private:
  const int device_;
  std::vector<std::unique_ptr<Operand>> operands_;
  std::vector<TextPart> parts_;
  std::vector<std::pair<int, Stream>> streams_;
};

}  // namespace warpcipher::python
