// SPDX-License-Identifier: Apache-2.0
// The columnar batch: millions of messages with no Python object for each.
#include "dispatch/run.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "bind.hpp"
#include "engine/device_engine.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "mode/algorithm.hpp"
#include "operand.hpp"
#include "run_one.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

// Determines the size of a message's output.
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
      refuse("message ", i, ": a length or offset beyond 2^62");
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

// A bytearray for the output. Gaps between outputs are zeros, so that nobody sees former contents of the memory.
nb::object make_output(std::size_t size, bool gaps) {
  nb::object array = new_bytearray(size);
  if (gaps) std::memset(PyByteArray_AsString(array.ptr()), 0, size);
  return array;
}

// The length of each IV. GCM takes nonces of any length, so without this check a single nonce would be split among
// several messages.
std::size_t iv_len_of(std::size_t size, std::size_t count, const Algorithm& algorithm, bool decrypt) {
  if (count == 0 ? size != 0 : size % count != 0) {
    refuse("ivs has ", size, " bytes for ", count, " messages: expected a multiple of their number");
  }
  if (algorithm.is_aead() && !decrypt && count > 1 && size == algorithm.iv_len) {
    refuse("ivs has ", size, " bytes for ", count, " messages, a single nonce: each message takes its own");
  }
  return count != 0 ? size / count : 0;
}

// Texts that are back to back are all of data: the rest would be left out in silence. Too long ones are refused
// by the run, which says which leaves the buffer.
void check_sum(std::span<const std::uint64_t> lengths, std::size_t size) {
  std::uint64_t sum = 0;
  for (const std::uint64_t length : lengths) {
    if (length > size - sum) return;
    sum += length;
  }
  if (sum < size) {
    refuse("lengths add up to ", sum, ", data holds ", size, ": give offsets, or only that part of data");
  }
}

std::span<Result> results_in(nb::handle bytes, std::size_t count) {
  return {reinterpret_cast<Result*>(bytes_of(bytes)), count};
}

// 8 bytes of count written and 1 byte of status for each message, from the bytes of results.
nb::tuple split_results(nb::bytes bytes) {
  const std::size_t count = bytes.size() / sizeof(Result);
  const nb::object written = new_bytes(8 * count), status = new_bytes(count);
  const auto* const from = static_cast<const std::uint8_t*>(bytes.data());
  std::uint8_t* const to_written = bytes_of(written);
  std::uint8_t* const to_status = bytes_of(status);
  for (std::size_t i = 0; i < count; ++i) {
    Result result;
    std::memcpy(&result, from + sizeof result * i, sizeof result);
    const std::uint64_t bytes_written = result.status == Status::ok ? result.written : 0;
    to_status[i] = static_cast<std::uint8_t>(result.status);
    std::memcpy(to_written + 8 * i, &bytes_written, 8);
  }
  return nb::make_tuple(written, status);
}

// The arguments of a batch: a ColumnsCall of python/warpcipher/columns.py. Columns are host memory, or Spans.
struct Call {
  explicit Call(nb::handle call)
      : algorithm(find_algorithm(text_of(call.attr("algorithm"), "algorithm"))),
        decrypt(nb::cast<bool>(call.attr("decrypt"))),
        padded(nb::cast<bool>(call.attr("padded"))),
        keys(call.attr("keys")),
        data(call.attr("data")),
        lengths(call.attr("lengths")),
        offsets(call.attr("offsets")),
        key_index(call.attr("key_index")),
        ivs(call.attr("ivs")),
        aad(call.attr("aad")),
        aad_offsets(call.attr("aad_offsets")),
        aad_lengths(call.attr("aad_lengths")),
        out(call.attr("out")),
        out_offsets(call.attr("out_offsets")),
        engine(text_of(call.attr("engine"), "engine")),
        stream(reinterpret_cast<Stream>(nb::cast<std::uintptr_t>(call.attr("stream")))),
        shape(make_shape(algorithm, decrypt, padded, call.attr("tag_length"))) {}

  const Algorithm& algorithm;
  bool decrypt, padded;
  nb::object keys, data, lengths, offsets, key_index, ivs, aad, aad_offsets, aad_lengths, out, out_offsets;
  std::string engine;
  Stream stream;
  Shape shape;
};

nb::tuple run(nb::handle call_object) {
  const Call call(call_object);
  const Algorithm& algorithm = call.algorithm;
  const Keys keys(algorithm, call.keys);
  const Integers lengths(call.lengths, "lengths");
  const Integers offsets(call.offsets, "offsets");
  const Integers key_index(call.key_index, "key_index");
  const Integers aad_offsets(call.aad_offsets, "aad_offsets");
  const Integers aad_lengths(call.aad_lengths, "aad_lengths");
  const Integers out_offsets(call.out_offsets, "out_offsets");
  const Operand ivs(call.ivs, "ivs", Operand::Use::read_or_none);
  const Operand aad(call.aad, "aad", Operand::Use::read_or_none);
  const Operand in(call.data, "data", Operand::Use::read);
  const std::size_t count = lengths.values().size();

  check_given(call.offsets, offsets, "offsets", count, "messages");
  check_given(call.key_index, key_index, "key_index", count, "messages");
  check_given(call.aad_offsets, aad_offsets, "aad_offsets", count, "messages");
  check_given(call.aad_lengths, aad_lengths, "aad_lengths", count, "messages");
  check_given(call.out_offsets, out_offsets, "out_offsets", count, "messages");

  if (call.offsets.is_none() && in.device() == host_device) check_sum(lengths.values(), in.size());

  nb::object output = call.out;
  if (call.out.is_none()) {
    if (in.device() != host_device) throw nb::value_error("out is needed for data on a GPU");
    output = make_output(output_span(call.shape, lengths.values(), out_offsets.values()), !call.out_offsets.is_none());
  }
  const Operand out(output, "out", Operand::Use::write);
  check_places(in, out);

  const std::vector<std::uint32_t> key_numbers = narrow(key_index.values());
  Columns columns;
  columns.direction = call.decrypt ? Direction::decrypt : Direction::encrypt;
  columns.padding = padding_of(algorithm, call.padded);
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
  columns.iv_len = iv_len_of(ivs.size(), count, algorithm, call.decrypt);
  columns.aad = aad.bytes();
  columns.aad_offsets = aad_offsets.values();
  columns.aad_lengths = aad_lengths.values();
  columns.tag_len = call.shape.tag_len;

  const nb::object results = new_bytes(count * sizeof(Result));
  const std::span<Result> outcome = results_in(results, count);
  Status status = Status::ok;
  {
    const GilReleased released;
    const DeviceScope scope(in.device());
    status = run_columns(call.engine, columns, outcome, call.stream);
  }
  if (in.device() != host_device) {
    std::vector<nb::object> objects = keys.objects();
    objects.insert(objects.end(), {call.data, output, call.ivs, call.aad});
    keep_until_done(std::move(objects), in.device(), call.stream);
  }

  return nb::make_tuple(output, results, status == Status::ok);
}

// Columns of a device, as Spans; results gets a Result for each message. Returns whether all are good.
bool run_on_device(nb::handle call_object, nb::handle results_object) {
  const Call call(call_object);
  const Algorithm& algorithm = call.algorithm;
  const Operand in(call.data, "data", Operand::Use::read);
  const Operand out(call.out, "out", Operand::Use::write);
  const Operand results(results_object, "results", Operand::Use::write);
  check_places(in, out);
  std::deque<Operand> columns_held;
  const auto hold = [&](nb::handle object, const char* name) -> const Operand& {
    const Operand& operand = columns_held.emplace_back(object, name, Operand::Use::read_or_none);
    if (!object.is_none() && operand.device() != in.device()) {
      refuse(name, " lies in ", place(operand), " and data in ", place(in),
             ": columns lie together, on the host or with the data");
    }
    return operand;
  };
  const auto integers = [&]<class T>(nb::handle object, const char* name, T) -> std::span<const T> {
    const Operand& operand = hold(object, name);
    return {reinterpret_cast<const T*>(operand.data()), operand.size() / sizeof(T)};
  };
  Columns columns;
  columns.direction = call.decrypt ? Direction::decrypt : Direction::encrypt;
  columns.padding = padding_of(algorithm, call.padded);
  columns.memory = columns.columns_memory = in.memory();
  columns.in_lengths = integers(call.lengths, "lengths", std::uint64_t{});
  columns.count = columns.in_lengths.size();
  columns.in = in.bytes();
  columns.out = {out.data(), out.size()};
  columns.in_offsets = integers(call.offsets, "offsets", std::uint64_t{});
  columns.out_offsets = integers(call.out_offsets, "out_offsets", std::uint64_t{});
  columns.key_index = integers(call.key_index, "key_index", std::uint32_t{});
  columns.aad_offsets = integers(call.aad_offsets, "aad_offsets", std::uint64_t{});
  columns.aad_lengths = integers(call.aad_lengths, "aad_lengths", std::uint64_t{});
  columns.ivs = hold(call.ivs, "ivs").bytes();
  columns.iv_len = iv_len_of(columns.ivs.size(), columns.count, algorithm, call.decrypt);
  columns.aad = hold(call.aad, "aad").bytes();
  columns.tag_len = call.shape.tag_len;
  std::vector<nb::object> objects{call.data,        call.lengths,     call.offsets, call.ivs,
                                  call.key_index,   call.aad,         call.out,     call.out_offsets,
                                  call.aad_offsets, call.aad_lengths, call.keys,    nb::borrow(results_object)};
  std::optional<Keys> keys;
  if (nb::isinstance<Span>(call.keys)) {
    columns.algorithm = &algorithm;
    columns.key_bytes = hold(call.keys, "keys").bytes();
  } else {
    keys.emplace(algorithm, call.keys);
    columns.keys = keys->pointers();
    objects.insert(objects.end(), keys->objects().begin(), keys->objects().end());
  }
  const std::span outcome(reinterpret_cast<Result*>(results.data()), results.size() / sizeof(Result));
  Status status = Status::ok;
  {
    const GilReleased released;
    const DeviceScope scope(in.device());
    status = run_columns(call.engine, columns, outcome, call.stream);
  }
  keep_until_done(std::move(objects), in.device(), call.stream);
  return status == Status::ok;
}

// Results from device memory, as run() gives them.
nb::object fetch_results(nb::handle results_object, std::uintptr_t stream) {
  const Operand results(results_object, "results", Operand::Use::read);
  const std::size_t count = results.size() / sizeof(Result);
  const nb::object fetched = new_bytes(count * sizeof(Result));
  const std::span<Result> outcome = results_in(fetched, count);
  {
    const GilReleased released;
    const DeviceScope scope(results.device());
    DeviceEngine& engine = usable_cuda_engine();
    engine.copy_to_host(outcome.data(), results.data(), count * sizeof(Result), reinterpret_cast<Stream>(stream));
    engine.wait(reinterpret_cast<Stream>(stream));
  }
  return fetched;
}

}  // namespace

void bind_columns(nb::module_& m) {
  m.def("run_device_columns", &run_on_device, nb::arg("call"), nb::arg("results"),
        nb::sig("def run_device_columns(call: object, results: object) -> bool"),
        "run_columns for columns on the GPU that holds data and out; results gets RESULT_SIZE bytes a message there. "
        "True: no message failed.");
  m.def("fetch_results", &fetch_results, nb::arg("results"), nb::arg("stream"),
        nb::sig("def fetch_results(results: object, stream: int) -> bytes"),
        "The results of run_device_columns in host memory.");
  m.def("split_results", &split_results, nb::arg("results"),
        nb::sig("def split_results(results: bytes) -> tuple[bytes, bytes]"),
        "8 bytes of count written and 1 byte of status for each message, from RESULT_SIZE bytes each.");
  m.attr("RESULT_SIZE") = sizeof(Result);
  m.def("run_columns", &run, nb::arg("call"),
        nb::sig("def run_columns(call: object) -> tuple[typing.Any, bytes, bool]"),
        "The output, RESULT_SIZE bytes a message for split_results, and whether no message failed.");
  m.def(
      "columns_output_size",
      [](nb::handle object) {
        const Call call(object);
        const Integers sizes(call.lengths, "lengths");
        const Integers starts(call.out_offsets, "out_offsets");
        check_given(call.out_offsets, starts, "out_offsets", sizes.values().size(), "messages");
        return output_span(call.shape, sizes.values(), starts.values());
      },
      nb::arg("call"), nb::sig("def columns_output_size(call: object) -> int"),
      "Bytes that run_columns needs at `out`.");
}

}  // namespace warpcipher::python
