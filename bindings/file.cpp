// SPDX-License-Identifier: Apache-2.0
// Chunks of encrypted files, and bytes of plain ones, read into memory of the host or of a GPU.
#include <climits>
#include <optional>
#include <string>

#include "bind.hpp"
#include "core/wipe.hpp"
#include "device.hpp"
#include "file_call.hpp"
#include "flow/file/read_chunks.hpp"
#include "flow/file/read_plain.hpp"
#include "gil.hpp"
#include "keys.hpp"
#include "mode/algorithm.hpp"
#include "operand.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

// The columns of a FileChunksCall (python/warpcipher/formats/file_chunks.py).
struct ColumnsToRead : ChunkColumns {
  explicit ColumnsToRead(nb::handle call)
      : ChunkColumns(call),
        out_offsets(call.attr("out_offsets"), "out_offsets"),
        skips(call.attr("skips"), "skips"),
        takes(call.attr("takes"), "takes"),
        aad_offsets(call.attr("aad_offsets"), "aad_offsets"),
        aad_lengths(call.attr("aad_lengths"), "aad_lengths"),
        aad(call.attr("aad"), "aad", Operand::Use::read_or_none),
        tags(call.attr("tags"), "tags", Operand::Use::read_or_none) {
    for (Integers* const column : {&out_offsets, &skips, &takes, &aad_offsets, &aad_lengths}) column->own();
    const std::size_t count = lengths.values().size();
    const auto check = [&](const char* name, const Integers& column) {
      check_given(call.attr(name), column, name, count, "chunks");
    };
    check("offsets", offsets);
    check("key_index", key_index);
    check("out_offsets", out_offsets);
    check("skips", skips);
    check("takes", takes);
    check("aad_offsets", aad_offsets);
    check("aad_lengths", aad_lengths);
  }

  void fill(FileChunks& chunks) const {
    ChunkColumns::fill(chunks);
    chunks.aad = aad.bytes();
    chunks.aad_offsets = aad_offsets.values();
    chunks.aad_lengths = aad_lengths.values();
    chunks.tags = tags.bytes();
    chunks.out_offsets = out_offsets.values();
    chunks.skips = skips.values();
    chunks.takes = takes.values();
  }

  Integers out_offsets, skips, takes, aad_offsets, aad_lengths;
  Operand aad, tags;
};

const char* name_of(ReadFailure::Kind kind) {
  switch (kind) {
    case ReadFailure::Kind::bad_tag:
      return "tag";
    case ReadFailure::Kind::ended:
      return "ended";
    case ReadFailure::Kind::error:
      return "error";
  }
  return "";
}

nb::object object_of(const std::optional<ReadFailure>& failure, std::uint64_t first_number) {
  if (!failure) return nb::none();
  return nb::make_tuple(name_of(failure->kind), first_number + failure->chunk, failure->position, failure->error);
}

nb::object read(nb::handle call) {
  const Algorithm& algorithm = find_algorithm(text_of(call.attr("algorithm"), "algorithm"));
  const Keys keys(algorithm, call.attr("keys"));
  FileChunks chunks;
  chunks.keys = keys.pointers();
  std::optional<Regular> regular;
  std::optional<ColumnsToRead> columns;
  if (const nb::object of_file = call.attr("regular"); !of_file.is_none()) {
    regular.emplace(of_file).chunks.fill(chunks);
  } else {
    columns.emplace(call).fill(chunks);
    chunks.iv_len = field_of(call, "iv_length");
  }
  chunks.tag_len = field_of(call, "tag_length");
  const nb::object mac = call.attr("mac_hash");
  const std::string hash = mac.is_none() ? std::string() : text_of(mac, "mac_hash");
  const Operand mac_key(call.attr("mac_key"), "mac_key", Operand::Use::read_or_none);
  const SecretBytes mac_key_bytes(mac_key.bytes());  // another thread may wipe the caller's
  chunks.mac = {hash, {mac_key_bytes.data(), mac_key_bytes.size()}};

  const nb::object source = call.attr("source");
  std::optional<Descriptor> descriptor;
  std::optional<Operand> bytes;
  if (PyLong_Check(source.ptr())) {
    chunks.source.descriptor = descriptor.emplace(static_cast<int>(number_of(source, "source", INT_MAX))).number();
  } else {
    chunks.source.bytes = bytes.emplace(source, "source", Operand::Use::read).bytes();
    chunks.source.begin = field_of(call, "begin");
    if (bytes->device() != host_device) throw nb::value_error("source lies on a GPU: expected host memory or a file");
  }

  const Operand out(call.attr("out"), "out", Operand::Use::write);
  chunks.out = {out.data(), out.size()};
  chunks.memory = out.memory();
  const std::string engine = text_of(call.attr("engine"), "engine");
  const auto stream = reinterpret_cast<Stream>(field_of(call, "stream"));
  ReadOptions options;
  options.threads = field_of(call, "threads");
  options.piece_len = field_of(call, "piece_size");
  options.check = Signals();

  std::optional<ReadFailure> failure;
  {
    const GilReleased released;
    const DeviceScope scope(out.device());
    failure = read_chunks(engine, chunks, stream, options);
  }
  return object_of(failure, chunks.first_number);
}

nb::object read_not_encrypted(int file, std::uint64_t begin, nb::handle out, std::uintptr_t stream) {
  const Descriptor descriptor(file);
  const Operand memory(out, "out", Operand::Use::write);
  ReadOptions options;
  options.check = Signals();
  std::optional<ReadFailure> failure;
  {
    const GilReleased released;
    const DeviceScope scope(memory.device());
    failure = read_plain("auto", {descriptor.number(), begin, memory.memory(), {memory.data(), memory.size()}},
                         reinterpret_cast<Stream>(stream), options);
  }
  return object_of(failure, 0);
}

}  // namespace

void bind_file(nb::module_& m) {
  m.def(
      "read_chunks", &read, nb::arg("call"),
      nb::sig("def read_chunks(call: object) -> tuple[str, int, int, int] | None"),
      "Fills `out` from the chunks of a FileChunksCall. None, or why not: \"tag\", \"ended\" or \"error\", the chunk, "
      "the place in the file and the errno; `out` is then zeros wherever the chunks go.");
  m.def("read_plain", &read_not_encrypted, nb::arg("file"), nb::arg("begin"), nb::arg("out"), nb::arg("stream"),
        nb::sig(
            "def read_plain(file: int, begin: int, out: typing.Any, stream: int) -> tuple[str, int, int, int] | None"),
        "Fills `out` with the bytes of a file from `begin` on. None, or why not, as of `read_chunks`.");
}

}  // namespace warpcipher::python
