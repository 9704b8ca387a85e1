// SPDX-License-Identifier: Apache-2.0
// Random arrays, for warpcipher.random.
#include <unistd.h>
#include <array>
#include <cstring>
#include <string_view>

#include "bind.hpp"
#include "core/error.hpp"
#include "core/fork.hpp"
#include "core/system_random.hpp"
#include "core/wipe.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "operand.hpp"
#include "random/fill.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

using namespace random;

Secret<StreamKey> make_key(nb::handle key, std::string_view algorithm, std::uint64_t number) {
  const Operand bytes(key, "key", Operand::Use::read);
  if (bytes.device() != host_device) throw nb::value_error("key lies on a GPU: expected host memory");
  if (bytes.size() != random::key_len) {
    refuse("key has ", bytes.size(), " bytes: expected 32");
  }
  Secret<StreamKey> made;
  made->cipher = find_stream_cipher(algorithm);
  std::memcpy(made->key, bytes.data(), random::key_len);
  made->number = number;
  return made;
}

double to_number(nb::handle number) {
  const double value = PyFloat_AsDouble(number.ptr());
  if (value == -1.0 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return value;
}

// From -2^63 to 2^64 - 1; wider ones become what no type has.
Wide to_wide(const nb::object& number) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (overflow == 0) return value;
  if (overflow < 0) return -(Wide{1} << 64);
  const unsigned long long large = PyLong_AsUnsignedLongLong(number.ptr());
  if (large == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return Wide{1} << 64;
  }
  return large;
}

Distribution make_distribution(std::string_view name, std::string_view type_name, nb::handle first, nb::handle second) {
  const Kind kind = find_kind(name);
  const Type type = find_type(type_name);
  switch (kind) {
    case Kind::bytes: return Distribution::of_bytes(type);
    case Kind::integers: {
      const nb::object low = nb::steal(PyNumber_Index(first.ptr()));
      if (!low.is_valid()) throw nb::python_error();
      const nb::object high = nb::steal(PyNumber_Index(second.ptr()));
      if (!high.is_valid()) throw nb::python_error();
      return Distribution::of_integers(type, to_wide(low), to_wide(high - nb::int_(1)));
    }
    case Kind::uniform: return Distribution::of_uniform(type, to_number(first), to_number(second));
    case Kind::normal: return Distribution::of_normal(type, to_number(first), to_number(second));
    case Kind::exponential: return Distribution::of_exponential(type, to_number(first));
    case Kind::laplace: return Distribution::of_laplace(type, to_number(first), to_number(second));
    default: return Distribution::of_bernoulli(type, to_number(first));
  }
}

// Calls run(array) without the GIL, the array's device current.
template <class Run>
std::uint64_t run_on(nb::handle data, std::uintptr_t cuda_stream, const Run& run) {
  const Operand target(data, "data", Operand::Use::write);
  const Array array{target.data(), target.size(), target.memory(), reinterpret_cast<Stream>(cuda_stream)};
  const GilReleased released;
  const DeviceScope scope(target.device());
  return run(array);
}

// Fast key erasure: the first 32 bytes of the key's stream become the key, and this call may use the next 32.
void erase_key(nb::handle key, StreamKey& stream_key) {
  Secret<std::array<std::uint8_t, 2 * random::key_len>> drawn;
  const Operand replaced(key, "key", Operand::Use::write);
  fill(stream_key, Distribution::of_bytes(Type::uint8), 0, {drawn->data(), drawn->size(), Memory::host}, "auto");
  std::memcpy(replaced.data(), drawn->data(), random::key_len);
  std::memcpy(stream_key.key, drawn->data() + random::key_len, random::key_len);
}

std::uint64_t fill_array(nb::handle data, std::string_view distribution, std::string_view dtype, nb::handle key,
                         std::string_view algorithm, nb::handle stream, nb::handle position, nb::handle first,
                         nb::handle second, std::string_view engine, std::uintptr_t cuda_stream, bool erase) {
  const Distribution made = make_distribution(distribution, dtype, first, second);
  Secret<StreamKey> stream_key = make_key(key, algorithm, number_of(stream, "stream"));
  const std::uint64_t begin = number_of(position, "position");
  if (erase) erase_key(key, *stream_key);
  return run_on(data, cuda_stream, [&](const Array& array) { return fill(*stream_key, made, begin, array, engine); });
}

nb::object next_key(nb::handle key, std::string_view algorithm) {
  Secret<StreamKey> stream_key = make_key(key, algorithm, 0);
  erase_key(key, *stream_key);
  nb::object found = new_bytearray(random::key_len);
  std::memcpy(PyByteArray_AsString(found.ptr()), stream_key->key, random::key_len);
  return found;
}

std::uint64_t permute_array(nb::handle data, std::string_view dtype, nb::handle key, std::string_view algorithm,
                            nb::handle stream, nb::handle position, std::string_view engine,
                            std::uintptr_t cuda_stream) {
  const Type type = find_type(dtype);
  const Secret<StreamKey> stream_key = make_key(key, algorithm, number_of(stream, "stream"));
  const std::uint64_t begin = number_of(position, "position");
  return run_on(data, cuda_stream,
                [&](const Array& array) { return permute(*stream_key, begin, type, array, engine); });
}

bool is_captured(nb::handle data, std::uintptr_t cuda_stream) {
  if (!nb::isinstance<Span>(data)) return false;
  const int device = nb::inst_ptr<Span>(data)->device;
  if (device == host_device) return false;
  const DeviceScope scope(device);
  return is_capturing(reinterpret_cast<Stream>(cuda_stream));
}

// Which process this is: a child has another value than its parent, also where numbers of processes repeat, and where C
// code makes it, with fork() or without.
std::uint64_t process() { return std::uint64_t{fork_count()} << 32 | static_cast<std::uint32_t>(getpid()); }

std::uint64_t width_of(std::string_view distribution, std::string_view dtype, nb::handle first, nb::handle second) {
  return make_distribution(distribution, dtype, first, second).width();
}

}  // namespace

void bind_random(nb::module_& m) {
  m.def(
      "random_fill", &fill_array, nb::arg("data"), nb::arg("distribution"), nb::arg("dtype"), nb::arg("key"),
      nb::arg("algorithm") = "chacha20", nb::arg("stream") = 0, nb::arg("position") = 0, nb::arg("first") = 0,
      nb::arg("second") = 1, nb::arg("engine") = "auto", nb::arg("cuda_stream") = 0, nb::arg("erase") = false,
      nb::sig("def random_fill(data: object, distribution: str, dtype: str, key: typing_extensions.Buffer, algorithm: "
              "str = 'chacha20', stream: int = 0, position: int = 0, first: float = 0, second: float = 1, engine: str "
              "= 'auto', cuda_stream: int = 0, erase: bool = False) -> int"),
      "Fills an array, and returns the bytes of the stream that it took. first, second: low and high (exclusive) of "
      "\"integers\" and \"uniform\", mean and deviation of \"normal\", the mean of \"exponential\", mean "
      "and scale of \"laplace\", p of \"bernoulli\". erase: replaces the key first, a bytearray, and draws with the "
      "key that random_next_key gives.");
  m.def("random_permutation", &permute_array, nb::arg("data"), nb::arg("dtype"), nb::arg("key"),
        nb::arg("algorithm") = "chacha20", nb::arg("stream") = 0, nb::arg("position") = 0, nb::arg("engine") = "auto",
        nb::arg("cuda_stream") = 0,
        nb::sig("def random_permutation(data: object, dtype: str, key: typing_extensions.Buffer, algorithm: str = "
                "'chacha20', stream: int = 0, position: int = 0, engine: str = 'auto', cuda_stream: int = 0) -> int"),
        "Writes 0 to n - 1 in a random order, and returns the bytes of the stream that it took.");
  m.def("random_next_key", &next_key, nb::arg("key"), nb::arg("algorithm"),
        nb::sig("def random_next_key(key: bytearray, algorithm: str) -> bytearray"),
        "Replaces a key by the first bytes of its stream, and returns the 32 bytes after these.");
  m.def("random_width", &width_of, nb::arg("distribution"), nb::arg("dtype"), nb::arg("first") = 0,
        nb::arg("second") = 1,
        nb::sig("def random_width(distribution: str, dtype: str, first: float = 0, second: float = 1) -> int"),
        "Bytes of the stream that an element takes.");
  m.def("random_is_captured", &is_captured, nb::arg("data"), nb::arg("cuda_stream"),
        nb::sig("def random_is_captured(data: object, cuda_stream: int) -> bool"),
        "Whether work on an array goes into a CUDA graph, where each replay would repeat it.");
  m.def("random_process", &process, "A value that differs between this process and all its ancestors by forks.");
}

// A stream as NumPy's random module reads it: word by word, through function pointers that it calls without the
// interpreter lock (numpy/random/bitgen.h, whose layout NumPy keeps).
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
  RandomBits(nb::handle key, std::string_view algorithm, nb::handle stream, bool keyed)
      : keyed_(keyed), key_(make_key(key, algorithm, number_of(stream, "stream"))) {}
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
