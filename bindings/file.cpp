// SPDX-License-Identifier: Apache-2.0
// Chunks of files given as columns, and files that are not encrypted: read into memory of the host or of a GPU, and
// written from a GPU.
#include <climits>

#include "bind.hpp"
#include "core/wipe.hpp"
#include "dispatch/select.hpp"
#include "engine/device_engine.hpp"
#include "file_call.hpp"
#include "flow/file/read_chunks.hpp"
#include "flow/file/write_chunks.hpp"
#include "gil.hpp"
#include "mode/algorithm.hpp"
#include "operand.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

const char* name_of(ReadFailure::Kind kind) {
  switch (kind) {
    case ReadFailure::Kind::bad_tag: return "tag";
    case ReadFailure::Kind::ended: return "ended";
    case ReadFailure::Kind::error: return "error";
  }
  return "";
}

// An argument that may be left out, of `count` entries. The call has a copy: another thread may change the caller's
// meanwhile, and an output may be the same memory.
struct Column : Integers {
  Column(nb::handle given, const char* name, std::size_t count) : Integers(given, name) {
    own();
    check_given(given, *this, name, count, "chunks");
  }
};

// The arguments of both directions, as SealedChunks.
struct ChunkColumns {
  ChunkColumns(nb::handle algorithm, nb::handle keys, nb::handle offsets, nb::handle lengths, nb::handle key_index,
               nb::handle ivs, nb::handle iv_length, nb::handle tag_length)
      : keys_(find_algorithm(text_of(algorithm, "algorithm")), keys),
        lengths_(lengths, "lengths"),
        count(lengths_.values().size()),
        offsets_(offsets, "offsets", count),
        key_numbers_(narrow(Column(key_index, "key_index", count).values())),
        ivs_(ivs, "ivs", Operand::Use::read_or_none) {
    lengths_.own();
    chunks.keys = keys_.pointers();
    chunks.count = count;
    chunks.file_offsets = offsets_.values();
    chunks.lengths = lengths_.values();
    chunks.key_index = key_numbers_;
    chunks.ivs = ivs_.bytes();
    chunks.iv_len = number_of(iv_length, "iv_length");
    chunks.tag_len = number_of(tag_length, "tag_length");
  }

 private:
  const Keys keys_;
  Integers lengths_;

 public:
  const std::size_t count;
  SealedChunks chunks;

 private:
  const Column offsets_;
  const std::vector<std::uint32_t> key_numbers_;
  const Operand ivs_;
};

ReadOutcome read(nb::handle source, nb::handle algorithm, nb::handle keys, nb::handle out, nb::handle offsets,
                 nb::handle lengths, nb::handle key_index, nb::handle ivs, nb::handle iv_length, nb::handle aad,
                 nb::handle aad_offsets, nb::handle aad_lengths, nb::handle tags, nb::handle tag_length,
                 nb::handle out_offsets, nb::handle skips, nb::handle takes, nb::handle engine, std::uintptr_t stream,
                 nb::handle threads, nb::handle piece_size) {
  const ChunkColumns given(algorithm, keys, offsets, lengths, key_index, ivs, iv_length, tag_length);
  const Column outs(out_offsets, "out_offsets", given.count), skipped(skips, "skips", given.count),
      taken(takes, "takes", given.count), aad_begins(aad_offsets, "aad_offsets", given.count),
      aad_lens(aad_lengths, "aad_lengths", given.count);
  const Operand aad_bytes(aad, "aad", Operand::Use::read_or_none), tag_bytes(tags, "tags", Operand::Use::read_or_none);
  const Source from(source, 0);
  const Operand to(out, "out", Operand::Use::write);
  FileChunks chunks;
  static_cast<SealedChunks&>(chunks) = given.chunks;
  chunks.source = from.get();
  chunks.aad = aad_bytes.bytes();
  chunks.aad_offsets = aad_begins.values();
  chunks.aad_lengths = aad_lens.values();
  chunks.tags = tag_bytes.bytes();
  chunks.out_offsets = outs.values();
  chunks.skips = skipped.values();
  chunks.takes = taken.values();
  chunks.memory = to.memory();
  chunks.out = {to.data(), to.size()};
  const std::string engine_name = text_of(engine, "engine");
  const std::size_t thread_count = number_of(threads, "threads"), piece_len = number_of(piece_size, "piece_size");
  return read_to(to, [&](ReadOptions options) {
    options.threads = thread_count;
    options.piece_len = piece_len;
    return read_chunks(engine_name, chunks, reinterpret_cast<Stream>(stream), options);
  });
}

WriteOutcome write(int target, nb::handle algorithm, nb::handle keys, nb::handle texts, nb::handle streams,
                   nb::handle device, nb::handle offsets, nb::handle lengths, nb::handle key_index, nb::handle ivs,
                   nb::handle iv_length, nb::handle tags, nb::handle tag_length, nb::handle engine) {
  const ChunkColumns given(algorithm, keys, offsets, lengths, key_index, ivs, iv_length, tag_length);
  const Operand tag_bytes(tags, "tags", Operand::Use::write);
  if (tag_bytes.device() != host_device) throw nb::value_error("tags lies on a GPU: expected host memory");
  const Descriptor descriptor(target);
  const Texts parts(texts, streams, device);
  const ChunksToWrite chunks{given.chunks, descriptor.number(), parts.parts(), {tag_bytes.data(), tag_bytes.size()}};
  const std::string engine_name = text_of(engine, "engine");
  const WriteOptions options{.check = Signals()};
  return parts.write_by(engine_name, [&] { return write_chunks(engine_name, chunks, options); });
}

ReadOutcome read_not_encrypted(int file, std::uint64_t begin, nb::handle out, std::uintptr_t stream) {
  const Descriptor descriptor(file);
  const Operand memory(out, "out", Operand::Use::write);
  const PlainBytes bytes{descriptor.number(), begin, memory.memory(), {memory.data(), memory.size()}};
  return read_to(memory, [&](const ReadOptions& options) {
    return read_plain("auto", bytes, reinterpret_cast<Stream>(stream), options);
  });
}

WriteOutcome write_not_encrypted(int target, nb::handle texts, nb::handle streams, nb::handle device) {
  const Descriptor descriptor(target);
  const Texts parts(texts, streams, device);
  const WriteOptions options{.check = Signals()};
  return parts.write_by("auto", [&] { return write_plain("auto", descriptor.number(), parts.parts(), options); });
}

}  // namespace

ReadOutcome read_to(const Operand& out, const std::function<std::optional<ReadFailure>(const ReadOptions&)>& read) {
  std::optional<ReadFailure> failure;
  {
    const ReadOptions options{.check = Signals()};
    const GilReleased released;
    const DeviceScope scope(out.device());
    failure = read(options);
  }
  if (!failure) return std::nullopt;
  return {{name_of(failure->kind), failure->chunk, failure->position, failure->error}};
}

Source::Source(nb::handle given, std::uint64_t begin) {
  if (PyLong_Check(given.ptr())) {
    source_.descriptor = descriptor_.emplace(static_cast<int>(number_of(given, "source", INT_MAX))).number();
    return;
  }
  source_.bytes = bytes_.emplace(given, "source", Operand::Use::read).bytes();
  source_.begin = begin;
  if (bytes_->device() != host_device) throw nb::value_error("source lies on a GPU: expected host memory or a file");
}

Texts::Texts(nb::handle texts, nb::handle streams, nb::handle device)
    : device_(device.is_none() ? host_device : static_cast<int>(number_of(device, "device", INT_MAX))) {
  for (const nb::handle text : texts) {
    const Operand& taken = *operands_.emplace_back(std::make_unique<Operand>(text, "a text", Operand::Use::read));
    parts_.push_back({taken.data(), taken.size(), taken.memory()});
  }
  for (const nb::handle pair : streams) {
    streams_.emplace_back(static_cast<int>(number_of(pair[0], "a device", INT_MAX)),
                          reinterpret_cast<Stream>(number_of(pair[1], "a stream")));
  }
}

WriteOutcome Texts::write_by(const std::string& engine,
                             const std::function<std::optional<WriteFailure>()>& write) const {
  std::optional<WriteFailure> failure;
  {
    const GilReleased released;
    for (const auto& [place, stream] : streams_) {
      const DeviceScope scope(place);
      select_device_engine(engine).wait(stream);
    }
    const DeviceScope scope(device_);
    failure = write();
  }
  if (!failure) return std::nullopt;
  return {{failure->position, failure->error}};
}

void bind_file(nb::module_& m) {
  // Whatever it is: a wrong one is refused by its name.
  const auto any = [](const char* name) { return nb::arg(name).none(); };
  const auto none = [](const char* name) { return nb::arg(name).none() = nb::none(); };
  m.def(
      "read_chunks", &read, any("source"), any("algorithm"), any("keys"), any("out"), nb::kw_only(), any("offsets"),
      any("lengths"), none("key_index"), none("ivs"), any("iv_length") = 12, none("aad"), none("aad_offsets"),
      none("aad_lengths"), none("tags"), any("tag_length") = 16, none("out_offsets"), none("skips"), none("takes"),
      any("engine") = "auto", nb::arg("stream") = 0, any("threads") = 0, any("piece_size") = 0,
      "As `warpcipher.formats.read_chunks`. None, or why not: \"tag\", \"ended\" or \"error\", the chunk, the place in "
      "the file and the errno; `out` is then zeros wherever the chunks go.");
  m.def(
      "write_chunks", &write, nb::arg("target"), any("algorithm"), any("keys"), any("texts"), any("streams"),
      any("device"), nb::kw_only(), any("offsets"), any("lengths"), any("key_index"), any("ivs"), any("iv_length") = 12,
      any("tags"), any("tag_length") = 16, any("engine") = "auto",
      "Encrypts texts on a GPU, writes the ciphertexts at their offsets, and fills `tags`. None, or why not: the place "
      "in the file and the errno.");
  m.def("read_plain", &read_not_encrypted, nb::arg("file"), nb::arg("begin"), any("out"), nb::arg("stream"),
        "Fills `out` with the bytes of a file from `begin` on. None, or why not, as of `read_chunks`.");
  m.def("write_plain", &write_not_encrypted, nb::arg("target"), any("texts"), any("streams"), any("device"),
        "Writes texts to a file from its beginning on. None, or why not, as of `write_chunks`.");
}

}  // namespace warpcipher::python
