// SPDX-License-Identifier: Apache-2.0
// Random arrays, for warpcipher.random.
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "bind.hpp"
#include "core/error.hpp"
#include "core/fork.hpp"
#include "device.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "integers.hpp"
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
    throw Error(Status::invalid_argument, "key has " + std::to_string(bytes.size()) + " bytes: expected 32");
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
    case Kind::bytes:
      return Distribution::of_bytes(type);
    case Kind::integers: {
      const nb::object low = nb::steal(PyNumber_Index(first.ptr()));
      if (!low.is_valid()) throw nb::python_error();
      const nb::object high = nb::steal(PyNumber_Index(second.ptr()));
      if (!high.is_valid()) throw nb::python_error();
      return Distribution::of_integers(type, to_wide(low), to_wide(high - nb::int_(1)));
    }
    case Kind::uniform:
      return Distribution::of_uniform(type, to_number(first), to_number(second));
    case Kind::normal:
      return Distribution::of_normal(type, to_number(first), to_number(second));
    case Kind::exponential:
      return Distribution::of_exponential(type, to_number(first));
    case Kind::laplace:
      return Distribution::of_laplace(type, to_number(first), to_number(second));
    default:
      return Distribution::of_bernoulli(type, to_number(first));
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
  nb::object found =
      nb::steal(PyByteArray_FromStringAndSize(reinterpret_cast<const char*>(stream_key->key), random::key_len));
  if (!found.is_valid()) throw nb::python_error();
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

}  // namespace warpcipher::python
