// SPDX-License-Identifier: Apache-2.0
// The columnar batch: millions of messages with no Python object for each.
#include "dispatch/columns.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bind.hpp"
#include "device.hpp"
#include "engine/cuda/engine.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "integers.hpp"
#include "mode/algorithm.hpp"
#include "operand.hpp"
#include "run_one.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

// The keys of a batch as Python gives them: a Key, the bytes of one, or a sequence of either.
class Keys {
 public:
  Keys(const Algorithm& algorithm, nb::handle object) {
    const bool one = nb::isinstance<Key>(object) || PyObject_CheckBuffer(object.ptr());
    if (one) {
      add(algorithm, object);
      return;
    }
    if (!PySequence_Check(object.ptr()) || PyUnicode_Check(object.ptr())) {
      throw_type_error("keys is " + type_name_of(object) + ": expected bytes, a Key, or a sequence of them");
    }
    pointers_.reserve(static_cast<std::size_t>(nb::len(object)));
    for (nb::handle item : nb::iter(object)) add(algorithm, item);
  }

  std::span<const Key* const> pointers() const { return pointers_; }
  const std::vector<nb::object>& objects() const { return objects_; }

 private:
  void add(const Algorithm& algorithm, nb::handle item) {
    if (!nb::isinstance<Key>(item)) {
      objects_.push_back(nb::type<Key>()(algorithm.name, item));
    } else {
      objects_.push_back(nb::borrow(item));
    }
    const Key* key = nb::inst_ptr<Key>(objects_.back());
    if (&key->algorithm() != &algorithm) {
      throw Error(Status::invalid_argument, "key " + std::to_string(pointers_.size()) + " is for " +
                                                std::string(key->algorithm().name) + ", the batch is " +
                                                std::string(algorithm.name));
    }
    pointers_.push_back(key);
  }

  std::vector<nb::object> objects_;
  std::vector<const Key*> pointers_;
};

std::vector<std::uint32_t> narrow(std::span<const std::uint64_t> values) {
  std::vector<std::uint32_t> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] > UINT32_MAX) {
      throw Error(Status::invalid_argument, "key_index holds " + std::to_string(values[i]) + ", no key has that index");
    }
    result[i] = static_cast<std::uint32_t>(values[i]);
  }
  return result;
}

// What decides the size of a message's output.
struct Shape {
  bool decrypt;
  bool padded;
  std::size_t block_len;
  std::size_t tag_len;

  std::uint64_t output_len(std::uint64_t in_len) const {
    if (decrypt) return in_len - std::min<std::uint64_t>(in_len, tag_len);  // too short: the run refuses it
    return (padded ? in_len + (block_len - in_len % block_len) : in_len) + tag_len;
  }
};

// The bytes that all outputs span. Sums are checked: lengths come from outside.
std::size_t output_span(const Shape& shape, std::span<const std::uint64_t> lengths,
                        std::span<const std::uint64_t> out_offsets) {
  constexpr std::uint64_t limit = std::uint64_t{1} << 62;
  std::uint64_t end = 0;
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::uint64_t start = out_offsets.empty() ? next : out_offsets[i];
    if (lengths[i] > limit || start > limit) {
      throw Error(Status::invalid_argument, "message " + std::to_string(i) + ": a length or offset beyond 2^62");
    }
    next = start + shape.output_len(lengths[i]);
    end = std::max(end, next);
  }
  return static_cast<std::size_t>(end);
}

Shape make_shape(const Algorithm& algorithm, bool decrypt, bool padded, nb::handle tag_length) {
  return {decrypt, padding_of(algorithm, padded) == Padding::pkcs7, algorithm.block_len(),
          tag_len_of(algorithm, tag_length)};
}

// A bytearray for the output. Gaps between outputs are zeros: nobody gets to see what lay there before.
nb::object make_output(std::size_t size, bool gaps) {
  nb::object array = nb::steal(PyByteArray_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
  if (!array.is_valid()) throw nb::python_error();
  if (gaps) std::memset(PyByteArray_AsString(array.ptr()), 0, size);
  return array;
}

// An empty column stands for an absent one further down, so one that was given is checked here.
void check_given(nb::handle object, const Integers& column, const char* name, std::size_t count) {
  if (!object.is_none() && column.values().size() != count) {
    throw Error(Status::invalid_argument, std::string(name) + " has " + std::to_string(column.values().size()) +
                                              " entries, expected one for each of " + std::to_string(count) +
                                              " messages");
  }
}

// The length of each of the IVs. A single nonce for several messages would do, cut up, as AEADs take nonces of any
// length.
std::size_t iv_len_of(std::size_t size, std::size_t count, const Algorithm& algorithm, bool decrypt) {
  const auto refuse = [&](const char* why) {
    throw Error(Status::invalid_argument,
                "ivs has " + std::to_string(size) + " bytes for " + std::to_string(count) + " messages" + why);
  };
  if (count == 0 ? size != 0 : size % count != 0) refuse(": expected a multiple of their number");
  if (algorithm.is_aead() && !decrypt && count > 1 && size == 12) {
    refuse(", a single nonce: each message takes one of its own");
  }
  return count != 0 ? size / count : 0;
}

nb::object as_bytes(const void* data, std::size_t size) { return nb::bytes(data, size); }

// 8 bytes of count written and 1 byte of status for each message.
nb::tuple to_tuple(std::span<const Result> results) {
  std::vector<std::uint64_t> written(results.size());
  std::vector<std::uint8_t> status(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    status[i] = static_cast<std::uint8_t>(results[i].status);
    written[i] = results[i].status == Status::ok ? results[i].written : 0;
  }
  return nb::make_tuple(as_bytes(written.data(), 8 * written.size()), as_bytes(status.data(), status.size()));
}

nb::tuple run(std::string_view algorithm_name, bool decrypt, bool padded, nb::handle keys_object, nb::handle data,
              nb::handle lengths_object, nb::handle offsets_object, nb::handle key_index_object, nb::handle ivs_object,
              nb::handle aad_object, nb::handle aad_offsets_object, nb::handle aad_lengths_object,
              nb::handle tag_length, nb::handle out_object, nb::handle out_offsets_object, std::string_view engine,
              std::uintptr_t stream) {
  const Algorithm& algorithm = find_algorithm(algorithm_name);
  const Shape shape = make_shape(algorithm, decrypt, padded, tag_length);
  const Keys keys(algorithm, keys_object);
  const Integers lengths(lengths_object, "lengths");
  const Integers offsets(offsets_object, "offsets");
  const Integers key_index(key_index_object, "key_index");
  const Integers aad_offsets(aad_offsets_object, "aad_offsets");
  const Integers aad_lengths(aad_lengths_object, "aad_lengths");
  const Integers out_offsets(out_offsets_object, "out_offsets");
  const Operand ivs(ivs_object, "ivs", Operand::Use::read_or_none);
  const Operand aad(aad_object, "aad", Operand::Use::read_or_none);
  const Operand in(data, "data", Operand::Use::read);
  const std::size_t count = lengths.values().size();

  check_given(offsets_object, offsets, "offsets", count);
  check_given(key_index_object, key_index, "key_index", count);
  check_given(aad_offsets_object, aad_offsets, "aad_offsets", count);
  check_given(aad_lengths_object, aad_lengths, "aad_lengths", count);
  check_given(out_offsets_object, out_offsets, "out_offsets", count);

  nb::object output = nb::borrow(out_object);
  if (out_object.is_none()) {
    if (in.device() != host_device) throw nb::value_error("out is needed for data on a GPU");
    output = make_output(output_span(shape, lengths.values(), out_offsets.values()), !out_offsets_object.is_none());
  }
  const Operand out(output, "out", Operand::Use::write);
  check_places(in, out);

  const std::vector<std::uint32_t> key_numbers = narrow(key_index.values());
  Columns columns;
  columns.direction = decrypt ? Direction::decrypt : Direction::encrypt;
  columns.padding = padding_of(algorithm, padded);
  columns.memory = in.memory();
  columns.keys = keys.pointers();
  columns.key_index = key_numbers;
  columns.count = count;
  columns.in = in.bytes();
  columns.in_offsets = offsets.values();
  columns.in_lengths = lengths.values();
  columns.out = {out.data(), out.size()};
  columns.out_offsets = out_offsets.values();
  columns.ivs = ivs.bytes();
  columns.iv_len = iv_len_of(ivs.size(), count, algorithm, decrypt);
  columns.aad = aad.bytes();
  columns.aad_offsets = aad_offsets.values();
  columns.aad_lengths = aad_lengths.values();
  columns.tag_len = shape.tag_len;

  std::vector<Result> results(count);
  const auto pointer = reinterpret_cast<Stream>(stream);
  {
    const GilReleased released;
    const DeviceScope scope(in.device());
    run_columns(engine, columns, results, pointer);
  }
  if (in.device() != host_device) {
    std::vector<nb::object> objects = keys.objects();
    objects.insert(objects.end(), {nb::borrow(data), output, nb::borrow(ivs_object), nb::borrow(aad_object)});
    keep_until_done(std::move(objects), in.device(), pointer);
  }

  const nb::tuple outcome = to_tuple(results);
  return nb::make_tuple(output, outcome[0], outcome[1]);
}

// Columns of a device, as Spans; results gets a Result for each message.
void run_on_device(std::string_view algorithm_name, bool decrypt, bool padded, nb::handle keys_object, nb::handle data,
                   nb::handle lengths_object, nb::handle offsets_object, nb::handle key_index_object,
                   nb::handle ivs_object, nb::handle aad_object, nb::handle aad_offsets_object,
                   nb::handle aad_lengths_object, nb::handle tag_length, nb::handle out_object,
                   nb::handle out_offsets_object, nb::handle results_object, std::string_view engine,
                   std::uintptr_t stream) {
  const Algorithm& algorithm = find_algorithm(algorithm_name);
  const Shape shape = make_shape(algorithm, decrypt, padded, tag_length);
  const Operand in(data, "data", Operand::Use::read);
  const Operand out(out_object, "out", Operand::Use::write);
  const Operand results(results_object, "results", Operand::Use::write);
  check_places(in, out);
  std::deque<Operand> columns_held;
  const auto hold = [&](nb::handle object, const char* name) -> const Operand& {
    const Operand& operand = columns_held.emplace_back(object, name, Operand::Use::read_or_none);
    if (!object.is_none() && operand.device() != in.device()) {
      throw Error(Status::invalid_argument, std::string(name) + " lies in " + place(operand) + " and data in " +
                                                place(in) + ": columns lie together, on the host or with the data");
    }
    return operand;
  };
  const auto integers = [&]<class T>(nb::handle object, const char* name, T) -> std::span<const T> {
    const Operand& operand = hold(object, name);
    return {reinterpret_cast<const T*>(operand.data()), operand.size() / sizeof(T)};
  };
  Columns columns;
  columns.direction = decrypt ? Direction::decrypt : Direction::encrypt;
  columns.padding = padding_of(algorithm, padded);
  columns.memory = columns.columns_memory = in.memory();
  columns.in_lengths = integers(lengths_object, "lengths", std::uint64_t{});
  columns.count = columns.in_lengths.size();
  columns.in = in.bytes();
  columns.out = {out.data(), out.size()};
  columns.in_offsets = integers(offsets_object, "offsets", std::uint64_t{});
  columns.out_offsets = integers(out_offsets_object, "out_offsets", std::uint64_t{});
  columns.key_index = integers(key_index_object, "key_index", std::uint32_t{});
  columns.aad_offsets = integers(aad_offsets_object, "aad_offsets", std::uint64_t{});
  columns.aad_lengths = integers(aad_lengths_object, "aad_lengths", std::uint64_t{});
  columns.ivs = hold(ivs_object, "ivs").bytes();
  columns.iv_len = iv_len_of(columns.ivs.size(), columns.count, algorithm, decrypt);
  columns.aad = hold(aad_object, "aad").bytes();
  columns.tag_len = shape.tag_len;
  std::vector<nb::object> objects{
      nb::borrow(data),        nb::borrow(lengths_object),     nb::borrow(offsets_object),
      nb::borrow(ivs_object),  nb::borrow(key_index_object),   nb::borrow(aad_object),
      nb::borrow(out_object),  nb::borrow(out_offsets_object), nb::borrow(results_object),
      nb::borrow(keys_object), nb::borrow(aad_offsets_object), nb::borrow(aad_lengths_object)};
  std::optional<Keys> keys;
  if (nb::isinstance<Span>(keys_object)) {
    columns.algorithm = &algorithm;
    columns.key_bytes = hold(keys_object, "keys").bytes();
  } else {
    keys.emplace(algorithm, keys_object);
    columns.keys = keys->pointers();
    objects.insert(objects.end(), keys->objects().begin(), keys->objects().end());
  }
  const std::span outcome(reinterpret_cast<Result*>(results.data()), results.size() / sizeof(Result));
  const auto pointer = reinterpret_cast<Stream>(stream);
  {
    const GilReleased released;
    const DeviceScope scope(in.device());
    run_columns(engine, columns, outcome, pointer);
  }
  keep_until_done(std::move(objects), in.device(), pointer);
}

// Results from device memory, as run() gives them.
nb::tuple fetch_results(nb::handle results_object, std::uintptr_t stream) {
  const Operand results(results_object, "results", Operand::Use::read);
  const std::size_t count = results.size() / sizeof(Result);
  std::vector<Result> outcome(count);
  {
    const GilReleased released;
    const DeviceScope scope(results.device());
    DeviceEngine& engine = cuda_engine();
    engine.copy_to_host(outcome.data(), results.data(), count * sizeof(Result), reinterpret_cast<Stream>(stream));
    engine.wait(reinterpret_cast<Stream>(stream));
  }
  return to_tuple(outcome);
}

}  // namespace

void bind_columns(nb::module_& m) {
  m.def("run_device_columns", &run_on_device, nb::arg("algorithm"), nb::arg("decrypt"), nb::arg("padded"),
        nb::arg("keys"), nb::arg("data"), nb::arg("lengths"), nb::arg("offsets").none(), nb::arg("key_index").none(),
        nb::arg("ivs").none(), nb::arg("aad").none(), nb::arg("aad_offsets").none(), nb::arg("aad_lengths").none(),
        nb::arg("tag_length").none(), nb::arg("out"), nb::arg("out_offsets").none(), nb::arg("results"),
        nb::arg("engine"), nb::arg("stream"),
        nb::sig("def run_device_columns(algorithm: str, decrypt: bool, padded: bool, keys: object, data: object, "
                "lengths: object, offsets: object, key_index: object, ivs: object, aad: object, aad_offsets: object, "
                "aad_lengths: object, tag_length: int, out: object, out_offsets: object, results: object, engine: "
                "str, stream: int) -> None"),
        "run_columns for columns on the GPU that holds data and out; results gets RESULT_SIZE bytes a message there.");
  m.def("fetch_results", &fetch_results, nb::arg("results"), nb::arg("stream"),
        nb::sig("def fetch_results(results: object, stream: int) -> tuple[bytes, bytes]"),
        "8 bytes of count written and 1 byte of status for each message, from the results of run_device_columns.");
  m.attr("RESULT_SIZE") = sizeof(Result);
  m.def("run_columns", &run, nb::arg("algorithm"), nb::arg("decrypt"), nb::arg("padded"), nb::arg("keys"),
        nb::arg("data"), nb::arg("lengths"), nb::arg("offsets").none(), nb::arg("key_index").none(),
        nb::arg("ivs").none(), nb::arg("aad").none(), nb::arg("aad_offsets").none(), nb::arg("aad_lengths").none(),
        nb::arg("tag_length").none(), nb::arg("out").none(), nb::arg("out_offsets").none(), nb::arg("engine"),
        nb::arg("stream"),
        nb::sig("def run_columns(algorithm: str, decrypt: bool, padded: bool, keys: object, data: object, lengths: "
                "object, offsets: object, key_index: object, ivs: object, aad: object, aad_offsets: object, "
                "aad_lengths: object, tag_length: int, out: object, out_offsets: object, engine: str, stream: int) -> "
                "tuple[typing.Any, bytes, bytes]"),
        "The output, 8 bytes of count written and 1 byte of status for each message.");
  m.def(
      "columns_output_size",
      [](std::string_view algorithm, bool decrypt, bool padded, nb::handle lengths, nb::handle out_offsets,
         nb::handle tag_length) {
        const Shape shape = make_shape(find_algorithm(algorithm), decrypt, padded, tag_length);
        const Integers sizes(lengths, "lengths");
        const Integers starts(out_offsets, "out_offsets");
        check_given(out_offsets, starts, "out_offsets", sizes.values().size());
        return output_span(shape, sizes.values(), starts.values());
      },
      nb::arg("algorithm"), nb::arg("decrypt"), nb::arg("padded"), nb::arg("lengths"), nb::arg("out_offsets").none(),
      nb::arg("tag_length").none(),
      nb::sig("def columns_output_size(algorithm: str, decrypt: bool, padded: bool, lengths: object, out_offsets: "
              "object, tag_length: int) -> int"),
      "Bytes that run_columns needs at `out`.");
}

}  // namespace warpcipher::python
