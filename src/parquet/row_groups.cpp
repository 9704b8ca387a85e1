// SPDX-License-Identifier: Apache-2.0
#include "parquet/row_groups.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "parquet/compact.hpp"

namespace warpcipher::parquet {
namespace {

// The structs of a list.
std::vector<Bytes> structs_of(CompactReader& reader, int depth, const std::string& what) {
  const CompactReader::List head = reader.list();
  if (head.count != 0 && head.kind != Kind::structure) refuse(what, ": expected a list of structs");
  std::vector<Bytes> found;
  found.reserve(head.count);
  for (std::size_t i = 0; i < head.count; ++i) {
    const std::size_t start = reader.position();
    reader.skip(Kind::structure, depth);
    found.push_back(reader.since(start));
  }
  return found;
}

}  // namespace

RowGroups::RowGroups(std::vector<std::uint8_t> list, std::vector<std::string> names)
    : text_(std::move(list)), names_(std::move(names)) {
  CompactReader reader{Bytes(text_)};
  const std::vector<Bytes> texts = structs_of(reader, 1, "the row groups");
  for (std::size_t group = 0; group < texts.size(); ++group) {
    const CompactStruct fields(texts[group]);
    groups_.push_back({texts[group], integer_of(fields, row_group::rows, "the rows of a row group"),
                       integer_of(fields, row_group::ordinal, "an ordinal")});
    const CompactStruct::Field* columns = fields.find(row_group::columns);
    const std::string what = "the columns of row group " + std::to_string(group);
    if (columns == nullptr || columns->kind != Kind::list) refuse(what, ": expected a list of structs");
    CompactReader list_reader(columns->value);
    const std::vector<Bytes> chunks = structs_of(list_reader, 2, what);
    if (chunks.size() != names_.size()) {
      refuse("row group ", group, " has ", chunks.size(), " columns, the schema has ", names_.size());
    }
    for (const Bytes& chunk : chunks) {
      const CompactStruct chunk_fields(chunk);
      Chunk& added = chunks_.emplace_back();
      added.fields = chunk;
      const auto structure = [&](int number) -> std::optional<Bytes> {
        const CompactStruct::Field* field = chunk_fields.find(number);
        if (field == nullptr || field->kind != Kind::structure) return {};
        return field->value;
      };
      added.metadata = structure(column_chunk::metadata);
      added.crypto = structure(column_chunk::crypto_metadata);
    }
  }
}

const RowGroups::Chunk& RowGroups::at(std::size_t group, std::size_t column) const {
  group_at(group);
  if (column >= names_.size()) refuse("no column ", column);
  return chunks_[group * names_.size() + column];
}

Bytes RowGroups::metadata(std::size_t group, std::size_t column) const {
  const Chunk& chunk = at(group, column);
  if (chunk.decrypted) return *chunk.decrypted;
  return named(group, column, [&]() -> Bytes {
    if (!chunk.metadata) refuse("there is no metadata");
    return *chunk.metadata;
  });
}

std::optional<Bytes> RowGroups::sealed_metadata(std::size_t group, std::size_t column) const {
  const CompactStruct fields(at(group, column).fields);
  const CompactStruct::Field* field = fields.find(column_chunk::encrypted_metadata);
  if (field == nullptr) return {};
  return named(group, column, [&]() -> std::optional<Bytes> {
    if (field->kind != Kind::binary) {
      refuse("encrypted column metadata has type ", static_cast<int>(field->kind), ": expected binary");
    }
    return CompactReader(field->value).binary();
  });
}

const RowGroups::Group& RowGroups::group_at(std::size_t group) const {
  if (group >= groups_.size()) refuse("no row group ", group);
  return groups_[group];
}

std::uint64_t RowGroups::rows(std::size_t group) const {
  const std::optional<std::int64_t> rows = group_at(group).rows;
  if (!rows) refuse("the rows of a row group is missing: expected an integer that is not negative");
  return static_cast<std::uint64_t>(*rows);
}

std::uint64_t RowGroups::ordinal(std::size_t group) const {
  return static_cast<std::uint64_t>(group_at(group).ordinal.value_or(static_cast<std::int64_t>(group)));
}

void RowGroups::set_metadata(std::size_t group, std::size_t column, std::vector<std::uint8_t> text) {
  at(group, column);
  text.resize(named(group, column, [&] { return first_struct(text).size(); }));
  chunks_[group * columns() + column].decrypted = std::move(text);
}

ChunkRange RowGroups::locate(std::size_t group, std::size_t column, std::uint64_t file_size) const {
  const Bytes text = metadata(group, column);
  return named(group, column, [&] {
    const CompactStruct fields(at(group, column).fields);
    if (const CompactStruct::Field* path = fields.find(column_chunk::file_path)) {
      if (path->kind != Kind::binary) refuse("the path of its file is not text");
      if (!CompactReader(path->value).binary().empty()) refuse("its data lies in another file");
    }
    const CompactStruct meta(text);
    const auto value = [](std::int64_t number) { return static_cast<std::uint64_t>(number); };
    ChunkRange range;
    range.data = value(required_integer(meta, column_metadata::data_page_offset, "the offset of its data"));
    const std::uint64_t dictionary =
        value(integer_of(meta, column_metadata::dictionary_page_offset, "an offset").value_or(0));
    range.size = value(required_integer(meta, column_metadata::compressed_size, "its size"));
    // A dictionary without a data page after it, of a row group without rows, leaves that at 0.
    range.dictionary = dictionary > 0 && (dictionary < range.data || range.data == 0);
    range.start = range.dictionary ? dictionary : range.data;
    if (range.start > file_size || range.size > file_size - range.start) {
      refuse(range.size, " bytes at ", range.start, " are not in the file, which has ", file_size);
    }
    if (range.data > range.start + range.size) {
      refuse("its data pages begin at ", range.data, ", after its end");
    }
    range.ordinal = ordinal(group);
    const auto place = [&](const CompactStruct& from, int number, const char* what) {
      const std::optional<std::int64_t> found = integer_of(from, number, what);
      return found ? value(*found) : absent;
    };
    range.offset_index = place(fields, column_chunk::offset_index_offset, "the offset of its offset index");
    range.offset_index_size = place(fields, column_chunk::offset_index_length, "the length of its offset index");
    range.column_index = place(fields, column_chunk::column_index_offset, "the offset of its column index");
    range.column_index_size = place(fields, column_chunk::column_index_length, "the length of its column index");
    range.bloom = place(meta, column_metadata::bloom_filter_offset, "the offset of its Bloom filter");
    return range;
  });
}

// Row groups rewritten for a plain image: without what speaks of encryption, with every offset and size as it is
// there.
namespace {

std::int64_t as_integer(std::uint64_t value) { return static_cast<std::int64_t>(value); }

// ColumnMetaData of a chunk in the image; range: where it lay.
void write_metadata(CompactWriter& writer, Bytes text, const ChunkRange& range, const PlainChunk& plain,
                    std::uint64_t& unpacked) {
  using namespace column_metadata;
  CompactStruct meta(text);
  meta.erase(bloom_filter_offset);
  meta.erase(bloom_filter_length);
  if (plain.bloom != absent) {
    meta.set(bloom_filter_offset, as_integer(plain.bloom));
    meta.set(bloom_filter_length, as_integer(plain.bloom_size), Kind::i32);
  }
  // It counts the bytes that encryption added to the page headers, but not to the pages.
  const std::int64_t counted = required_integer(meta, uncompressed_size, "its size");
  const std::int64_t size = std::max<std::int64_t>(counted - as_integer(plain.shrunk), 0);
  unpacked += static_cast<std::uint64_t>(size);
  meta.set(uncompressed_size, size);
  meta.set(compressed_size, as_integer(plain.size));
  if (range.data != 0) meta.set(data_page_offset, as_integer(plain.data));
  if (range.dictionary) meta.set(dictionary_page_offset, as_integer(plain.start));
  if (meta.find(index_page_offset) != nullptr) {
    const auto index = static_cast<std::uint64_t>(required_integer(meta, index_page_offset, "an offset"));
    if (plain.was_encrypted || index < range.start || index - range.start >= range.size) {
      meta.erase(index_page_offset);
    } else {
      meta.set(index_page_offset, as_integer(index - range.start + plain.start));
    }
  }
  meta.write(writer);
}

// ColumnChunk of a chunk in the image; metadata: its ColumnMetaData there.
void write_chunk(CompactWriter& writer, Bytes text, Bytes metadata, const PlainChunk& plain) {
  CompactStruct fields(text);
  for (int number = column_chunk::metadata; number <= column_chunk::encrypted_metadata; ++number) fields.erase(number);
  const bool had_offset = integer_of(fields, column_chunk::file_offset, "an offset").value_or(0) != 0;
  fields.set(column_chunk::file_offset, had_offset ? as_integer(plain.start) : 0);
  fields.put(column_chunk::metadata, Kind::structure, metadata);
  if (plain.offset_index != absent) {
    fields.set(column_chunk::offset_index_offset, as_integer(plain.offset_index));
    fields.set(column_chunk::offset_index_length, as_integer(plain.offset_index_size), Kind::i32);
  }
  if (plain.column_index != absent) {
    fields.set(column_chunk::column_index_offset, as_integer(plain.column_index));
    fields.set(column_chunk::column_index_length, as_integer(plain.column_index_size), Kind::i32);
  }
  fields.write(writer);
}

// An empty chunk of a column that the image leaves out.
void write_stub(CompactWriter& writer, Bytes stub, std::uint64_t rows) {
  constexpr int codec = 4, first_offset = 4;
  CompactWriter meta;
  meta.bytes(stub);
  int last = codec;
  for (const auto& [number, value] : {std::pair{column_metadata::values + 0, as_integer(rows)},
                                      std::pair{column_metadata::uncompressed_size + 0, std::int64_t{0}},
                                      std::pair{column_metadata::compressed_size + 0, std::int64_t{0}},
                                      std::pair{column_metadata::data_page_offset + 0, std::int64_t{first_offset}}}) {
    meta.field(last, number, Kind::i64);
    meta.varint(zigzag(value));
  }
  meta.byte(0);
  const std::uint8_t empty = 0;
  CompactStruct fields{Bytes(&empty, 1)};
  fields.set(column_chunk::file_offset, 0);
  fields.put(column_chunk::metadata, Kind::structure, meta.out());
  fields.write(writer);
}

}  // namespace

std::vector<std::uint8_t> RowGroups::write_plain(std::span<const std::uint64_t> groups,
                                                 std::span<const PlainChunk> chunks,
                                                 std::span<const std::vector<std::uint8_t>> stubs) const {
  if (chunks.size() != groups.size() * columns() || stubs.size() != columns()) {
    refuse(chunks.size(), " chunks and ", stubs.size(), " stubs for ", groups.size(), " row groups of ", columns(),
           " columns");
  }
  CompactWriter writer, list, metadata;
  writer.list(Kind::structure, groups.size());
  for (std::size_t number = 0; number < groups.size(); ++number) {
    const std::size_t group = groups[number];
    CompactStruct fields(group_at(group).fields);
    std::uint64_t unpacked = 0, packed = 0, first = absent;
    list.out().clear();
    list.list(Kind::structure, columns());
    for (std::size_t column = 0; column < columns(); ++column) {
      const PlainChunk& plain = chunks[number * columns() + column];
      if (!plain.is_there) {
        write_stub(list, stubs[column], rows(group));
        continue;
      }
      const ChunkRange range = locate(group, column, absent);
      metadata.out().clear();
      named(group, column, [&] { write_metadata(metadata, this->metadata(group, column), range, plain, unpacked); });
      named(group, column, [&] { write_chunk(list, at(group, column).fields, metadata.out(), plain); });
      packed += plain.size;
      first = std::min(first, plain.start);
    }
    fields.put(row_group::columns, Kind::list, list.out());
    fields.set(row_group::total_byte_size, as_integer(unpacked));
    const auto replace = [&](int field, std::uint64_t value) {
      if (fields.find(field) != nullptr) fields.set(field, as_integer(value));
    };
    replace(row_group::file_offset, first == absent || first == 0 ? 4 : first);
    replace(row_group::total_compressed_size, packed);
    replace(row_group::ordinal, number);
    fields.write(writer);
  }
  return std::move(writer.out());
}

}  // namespace warpcipher::parquet
