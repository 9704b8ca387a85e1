// SPDX-License-Identifier: Apache-2.0
// Parquet's metadata, its modules, and its chunks decrypted into memory of the host or of a GPU, for
// python/warpcipher/parquet. Columns go to Python as bytes of 64-bit integers in native order.
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bind.hpp"
#include "file_call.hpp"
#include "gil.hpp"
#include "mode/algorithm.hpp"
#include "operand.hpp"
#include "parquet/open_chunks.hpp"
#include "parquet/page_modules.hpp"
#include "parquet/row_groups.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

using parquet::Bytes;
using parquet::PlainChunk;
using parquet::RowGroups;

nb::bytes as_bytes(Bytes value) { return nb::bytes(value.data(), value.size()); }

nb::bytes as_bytes(const parquet::Column& column) {
  return nb::bytes(column.data(), sizeof(std::uint64_t) * column.size());
}

std::tuple<nb::bytes, nb::bytes, nb::bytes> aads(nb::handle prefix, std::int16_t row_group, std::int16_t column,
                                                 bool dictionary, std::size_t count) {
  if (count > parquet::most_ordinal + 2) throw nb::value_error("more pages than the format numbers");
  const Operand bytes(prefix, "prefix", Operand::Use::read);
  const parquet::PageAads found = parquet::page_aads(bytes.bytes(), row_group, column, dictionary, count);
  return {as_bytes(Bytes(found.heads)), as_bytes(Bytes(found.pages)), as_bytes(found.sizes)};
}

std::tuple<nb::bytes, nb::bytes> heads(nb::handle out, nb::handle modules, nb::handle lengths, nb::handle nonces,
                                       bool counter_mode) {
  const Operand bytes(out, "out", Operand::Use::write);
  const Operand random(nonces, "nonces", Operand::Use::read);
  const Integers positions(modules, "modules"), sizes(lengths, "lengths");
  const parquet::ModuleTexts found = parquet::write_heads({bytes.data(), bytes.size()}, positions.values(),
                                                          sizes.values(), random.bytes(), counter_mode);
  return {as_bytes(found.texts), as_bytes(Bytes(found.ivs))};
}

constexpr std::size_t plain_chunk_len = 12;  // integers: the fields of a PlainChunk

// Calls make() with each `len` integers, the fields of a struct.
template <std::size_t len, class Make>
auto rows_of(nb::handle given, const char* name, Make&& make) {
  const Integers numbers(given, name);
  const std::span<const std::uint64_t> values = numbers.values();
  if (values.size() % len != 0) refuse(name, " has ", values.size(), " integers: expected ", len, " each");
  std::vector<decltype(make(values.data()))> rows;
  for (std::size_t i = 0; i < values.size(); i += len) rows.push_back(make(values.data() + i));
  return rows;
}

template <class Each>
void for_all(nb::handle groups_given, nb::handle columns_given, const Each& each) {
  const Integers groups(groups_given, "groups");
  const Integers columns(columns_given, "columns");
  for (const std::uint64_t group : groups.values()) {
    for (const std::uint64_t column : columns.values()) each(group, column);
  }
}

// Of each chunk the bytes that a member function gives.
template <std::optional<Bytes> (RowGroups::*member)(std::size_t, std::size_t) const>
std::vector<std::optional<nb::bytes>> bytes_of(const RowGroups& self, nb::handle groups, nb::handle columns) {
  std::vector<std::optional<nb::bytes>> found;
  for_all(groups, columns, [&](auto group, auto column) {
    const std::optional<Bytes> value = (self.*member)(group, column);
    found.push_back(value ? std::optional(as_bytes(*value)) : std::nullopt);
  });
  return found;
}

nb::bytes locate(const RowGroups& self, nb::handle groups, nb::handle columns, std::uint64_t file_size) {
  parquet::Column found;
  for_all(groups, columns, [&](auto group, auto column) {
    const parquet::ChunkRange range = self.locate(group, column, file_size);
    found.insert(found.end(),
                 {range.start, range.size, range.data, range.ordinal, range.dictionary ? 1u : 0u, range.offset_index,
                  range.offset_index_size, range.column_index, range.column_index_size, range.bloom});
  });
  return as_bytes(found);
}

// The chunks of these columns where they lie in the encrypted file, as if they were as long there.
nb::bytes in_place(const RowGroups& self, nb::handle groups_given, nb::handle columns_given, std::uint64_t file_size) {
  const Integers groups(groups_given, "groups");
  const Integers columns(columns_given, "columns");
  parquet::Column places(plain_chunk_len * self.columns() * groups.values().size());
  std::uint64_t* place = places.data();
  for (const std::uint64_t group : groups.values()) {
    for (const std::uint64_t column : columns.values()) {
      const parquet::ChunkRange range = self.locate(group, column, file_size);
      const std::uint64_t begin[] = {1, self.crypto(group, column) ? 1u : 0u, range.start, range.size, range.data};
      std::uint64_t* const entry = place + plain_chunk_len * column;
      std::ranges::copy(begin, entry);
      for (const int offset : {6, 8, 10}) entry[offset] = parquet::absent;  // indexes and Bloom filter
    }
    place += plain_chunk_len * self.columns();
  }
  return as_bytes(places);
}

nb::bytes write_plain(const RowGroups& self, nb::handle groups_given, nb::handle chunks_given,
                      const std::vector<nb::bytes>& stubs_given) {
  const Integers groups(groups_given, "groups");
  const auto chunks = rows_of<plain_chunk_len>(chunks_given, "chunks", [](const std::uint64_t* v) {
    return PlainChunk{v[0] != 0, v[1] != 0, v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11]};
  });
  std::vector<std::vector<std::uint8_t>> stubs;
  for (const nb::bytes& stub : stubs_given) stubs.push_back(copy_of(stub, "stubs"));
  const std::vector<std::uint8_t> list = self.write_plain(groups.values(), chunks, stubs);
  return as_bytes(Bytes(list));
}

// --- chunks opened ------------------------------------------------------------------------------

using parquet::OpenFailure;

// The keys of the modules of one kind, of any size.
struct ModuleKeys {
  ModuleKeys(nb::handle given, const char* mode) {
    for (nb::handle each : nb::iter(given)) {
      const Operand bytes(each, "keys", Operand::Use::read);
      const Algorithm& algorithm = find_algorithm("aes-" + std::to_string(8 * bytes.size()) + mode);
      keys.push_back(std::make_unique<Key>(algorithm, bytes.bytes()));
      pointers.push_back(keys.back().get());
    }
  }

  std::vector<std::unique_ptr<Key>> keys;
  std::vector<const Key*> pointers;
};

using OpenOutcome =
    std::optional<std::tuple<const char*, std::size_t, std::optional<std::uint64_t>, std::string, std::uint64_t, int>>;

OpenOutcome outcome_of(const std::optional<OpenFailure>& failure) {
  if (!failure) return std::nullopt;
  const auto& [kind, chunk, number, why, read] = *failure;
  const char* const kinds[] = {"tag", "wrong", "file"};
  const auto module = number == OpenFailure::no_module ? std::nullopt : std::optional(number);
  return {{kinds[static_cast<std::size_t>(kind)], chunk, module, why, read.position, read.error}};
}

std::tuple<nb::bytes, nb::bytes, OpenOutcome> open(nb::handle source, nb::handle chunks_given, nb::handle keys_given,
                                                   nb::handle key_index_given, bool counter_mode, nb::handle prefix,
                                                   nb::handle out_given, std::uintptr_t stream, nb::handle engine_given,
                                                   std::size_t threads) {
  parquet::ChunksToOpen wanted;
  const auto chunks = rows_of<6>(chunks_given, "chunks", [](const std::uint64_t* v) {
    return parquet::SealedChunk{v[0],      v[1],     static_cast<std::int16_t>(v[2]), static_cast<std::int16_t>(v[3]),
                                v[4] != 0, v[5] != 0};
  });
  wanted.chunks = chunks;
  const Integers numbers(key_index_given, "key_index");
  if (numbers.values().size() != chunks.size()) throw nb::value_error("key_index: expected a number for each chunk");
  const std::vector<std::uint32_t> key_index = narrow(numbers.values());
  wanted.key_index = key_index;
  const ModuleKeys head_keys(keys_given, "-gcm");
  const ModuleKeys page_keys(keys_given, counter_mode ? "-ctr" : "-gcm");
  wanted.head_keys = head_keys.pointers;
  wanted.page_keys = page_keys.pointers;
  const Operand aad(prefix, "prefix", Operand::Use::read);
  wanted.prefix = aad.bytes();

  const Source from(source, 0);
  const Operand out(out_given, "out", Operand::Use::write);
  wanted.source = from.get();
  wanted.out = {out.data(), out.size()};
  wanted.memory = out.memory();
  const std::string engine = text_of(engine_given, "engine");
  parquet::OpenResult found;
  {
    const GilReleased released;
    const DeviceScope scope(out.device());
    found = parquet::open_chunks(engine, wanted, reinterpret_cast<Stream>(stream), threads, Signals());
  }
  std::vector<std::uint64_t> outs, pages;
  for (const parquet::OpenedChunk& chunk : found.chunks) {
    outs.insert(outs.end(), {chunk.out, chunk.size, pages.size() / 3, chunk.pages.size()});
    for (const parquet::OpenedPage& page : chunk.pages) {
      pages.insert(pages.end(), {page.position, page.out, page.size});
    }
  }
  return {as_bytes(outs), as_bytes(pages), outcome_of(found.failure)};
}

}  // namespace

void bind_parquet(nb::module_& m) {
  m.def("page_aads", &aads, nb::arg("prefix"), nb::arg("row_group"), nb::arg("column"), nb::arg("dictionary"),
        nb::arg("count"), "The AADs of a chunk's page headers, the AADs of its pages, and the sizes of both.");
  m.def("write_module_heads", &heads, nb::arg("out"), nb::arg("modules"), nb::arg("lengths"), nb::arg("nonces"),
        nb::arg("counter_mode"), "Writes the lengths and nonces of modules. Where their texts go, and their IVs.");
  nb::class_<RowGroups>(m, "RowGroups", "The row groups of a footer. ValueError says what is wrong in them.")
      .def(
          "__init__",
          [](RowGroups* self, nb::handle list, std::vector<std::string> names) {
            new (self) RowGroups(copy_of(list, "list"), std::move(names));
          },
          nb::arg("list"), nb::arg("names"))
      .def("__len__", &RowGroups::size)
      .def("rows", &RowGroups::rows, nb::arg("group"))
      .def(
          "chunk",
          [](const RowGroups& self, std::size_t group, std::size_t column) {
            return as_bytes(self.chunk(group, column));
          },
          nb::arg("group"), nb::arg("column"))
      .def(
          "metadata",
          [](const RowGroups& self, std::size_t group, std::size_t column) {
            return as_bytes(self.metadata(group, column));
          },
          nb::arg("group"), nb::arg("column"))
      .def(
          "set_metadata",
          [](RowGroups& self, std::size_t group, std::size_t column, nb::handle text) {
            self.set_metadata(group, column, copy_of(text, "text"));
          },
          nb::arg("group"), nb::arg("column"), nb::arg("text"))
      .def("crypto", &bytes_of<&RowGroups::crypto>, nb::arg("groups"), nb::arg("columns"))
      .def("sealed_metadata", &bytes_of<&RowGroups::sealed_metadata>, nb::arg("groups"), nb::arg("columns"))
      .def("ordinal", &RowGroups::ordinal, nb::arg("group"))
      .def("locate", &locate, nb::arg("groups"), nb::arg("columns"), nb::arg("file_size"), "ChunkRange of each.")
      .def("in_place", &in_place, nb::arg("groups"), nb::arg("columns"), nb::arg("file_size"),
           "The chunks of write_plain where they lie in the encrypted file.")
      .def("write_plain", &write_plain, nb::arg("groups"), nb::arg("chunks"), nb::arg("stubs"),
           "The list of these row groups without encryption. chunks: twelve integers for each column of each.");
  m.def("open_chunks", &open, nb::arg("source"), nb::arg("chunks"), nb::arg("keys"), nb::arg("key_index"),
        nb::arg("counter_mode"), nb::arg("prefix"), nb::arg("out"), nb::arg("stream"), nb::arg("engine"),
        nb::arg("threads"),
        "Decrypts chunks (SealedChunk, six integers each) into `out`, back to back. source: a descriptor, or the bytes "
        "of a file. keys: for headers and pages. Of each chunk its place, its size, its first page and "
        "how many it has; of each page where its header is in the chunk and goes, and the size of both; and None, or "
        "why nothing is in `out`: \"tag\", \"wrong\" or \"file\", the chunk, the module, what is wrong, the place in "
        "the file and the errno.");
}

}  // namespace warpcipher::python
