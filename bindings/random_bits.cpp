// SPDX-License-Identifier: Apache-2.0
// A stream as NumPy's random module reads it: word by word, through function pointers that it calls without the
// interpreter lock (numpy/random/bitgen.h, whose layout NumPy keeps).

#include <cstring>
#include <string>
#include <string_view>

#include "bind.hpp"
#include "core/error.hpp"
#include "core/fork.hpp"
#include "core/system_random.hpp"
#include "core/wipe.hpp"
#include "integers.hpp"
#include "operand.hpp"
#include "random/fill.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

using namespace random;

struct BitGen {
  void* state;
  std::uint64_t (*next_uint64)(void*);
  std::uint32_t (*next_uint32)(void*);
  double (*next_double)(void*);
  std::uint64_t (*next_raw)(void*);
};

// Of the 2^56 bytes of a stream: so that none can be drawn to its end.
constexpr std::uint64_t most_position = stream_len / 2;

// Words of a stream in their order, of 4 or 8 bytes. Not safe for several threads at once: NumPy holds the lock that
// its BitGenerator has.
//
// Without a key of the caller each piece begins with the key of the next, and its output is overwritten: fast
// key erasure. A child of a fork takes a key of the operating system.
class RandomBits {
 public:
  RandomBits(nb::handle key, std::string_view algorithm, nb::handle stream, bool keyed) : keyed_(keyed) {
    const Operand bytes(key, "key", Operand::Use::read);
    if (bytes.size() != key_len) {
      throw Error(Status::invalid_argument, "key has " + std::to_string(bytes.size()) + " bytes: expected 32");
    }
    key_->cipher = find_stream_cipher(algorithm);
    std::memcpy(key_->key, bytes.data(), key_len);
    key_->number = number_of(stream, "stream");
  }
  RandomBits(const RandomBits&) = delete;
  RandomBits& operator=(const RandomBits&) = delete;
  ~RandomBits() { secure_wipe(buffer_, sizeof buffer_); }

  // Writes the functions into NumPy's own bitgen_t: its capsule, its ctypes and cffi interfaces (which Numba calls) and
  // Cython code all read that.
  void serve(nb::handle capsule) {
    void* const bitgen = PyCapsule_GetPointer(capsule.ptr(), "BitGenerator");
    if (bitgen == nullptr) throw nb::python_error();
    const BitGen functions{this, next<std::uint64_t>, next<std::uint32_t>, next_double, next<std::uint64_t>};
    std::memcpy(bitgen, &functions, sizeof functions);
  }

  std::uint64_t position() const { return filled_ - (sizeof buffer_ - at_); }
  void seek(nb::handle stream, nb::handle position) {
    const std::uint64_t number = number_of(stream, "stream"), begin = number_of(position, "position");
    if (begin > most_position) throw nb::value_error("position is past 2^55: expected 0 to 2^55");
    key_->number = number;
    filled_ = begin;
    at_ = sizeof buffer_;
    forks_ = fork_count();
  }

  // Whether a fork lies between this process and the one that made it or called seek().
  bool is_inherited() const { return forks_ != fork_count(); }

 private:
  template <class Word>
  static Word next(void* state) noexcept {
    return static_cast<RandomBits*>(state)->draw<Word>();
  }
  static double next_double(void* state) noexcept {
    return static_cast<double>(next<std::uint64_t>(state) >> 11) * 0x1p-53;
  }

  template <class Word>
  Word draw() {
    if (is_inherited() && !keyed_) [[unlikely]]
      take_new_key();
    if (sizeof buffer_ - at_ < sizeof(Word)) [[unlikely]]
      refill();
    Word word;
    std::memcpy(&word, buffer_ + at_, sizeof word);
    if (!keyed_) std::memset(buffer_ + at_, 0, sizeof word);
    at_ += sizeof word;
    return word;  // little-endian, as every platform of this library
  }

  void refill() {
    const std::size_t left = sizeof buffer_ - at_;
    if (!keyed_) {
      fill_from(0, buffer_, sizeof buffer_);
      std::memcpy(key_->key, buffer_, key_len);
      secure_wipe(buffer_, key_len);
      at_ = key_len;
      return;
    }
    std::memmove(buffer_, buffer_ + at_, left);
    fill_from(filled_, buffer_ + left, sizeof buffer_ - left);
    filled_ += sizeof buffer_ - left;
    at_ = 0;
  }

  void fill_from(std::uint64_t position, std::uint8_t* out, std::size_t size) {
    fill(*key_, Distribution::of_bytes(Type::uint8), position, {out, size, Memory::host}, "auto");
  }

  void take_new_key() {
    fill_from_system({key_->key, key_len});
    secure_wipe(buffer_, sizeof buffer_);
    at_ = sizeof buffer_;
    forks_ = fork_count();
  }

  const bool keyed_;
  unsigned forks_ = fork_count();
  Secret<StreamKey> key_;
  std::uint64_t filled_ = 0;  // the position after the last byte of buffer_
  std::size_t at_ = sizeof buffer_;
  alignas(64) std::uint8_t buffer_[16384];  // of 4096 bytes a refill takes half as long again a byte
};

}  // namespace

void bind_random_bits(nb::module_& m) {
  nb::class_<RandomBits>(m, "RandomBits", "A stream for NumPy's random module.")
      .def(nb::init<nb::handle, std::string_view, nb::handle, bool>(), nb::arg("key"), nb::arg("algorithm"),
           nb::arg("stream"), nb::arg("keyed"),
           nb::sig(
               "def __init__(self, key: typing_extensions.Buffer, algorithm: str, stream: int, keyed: bool) -> None"))
      .def("serve", &RandomBits::serve, nb::arg("capsule"), nb::sig("def serve(self, capsule: object) -> None"),
           "Makes the bitgen_t in a capsule \"BitGenerator\" this stream's. It is good while this object lives.")
      .def_prop_ro("position", &RandomBits::position, "The byte of the stream that is drawn next.")
      .def("seek", &RandomBits::seek, nb::arg("stream"), nb::arg("position"),
           nb::sig("def seek(self, stream: int, position: int) -> None"),
           "Goes to a byte of a stream of the same key; this process is then the one that it belongs to.")
      .def_prop_ro("is_inherited", &RandomBits::is_inherited,
                   "Whether this process is a child of the one that made it or called seek().");
}

}  // namespace warpcipher::python
