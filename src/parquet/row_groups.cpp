// SPDX-License-Identifier: Apache-2.0
#include "parquet/row_groups.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "parquet/fields.hpp"

namespace warpcipher::parquet {
namespace {

// The structs of a list.
std::vector<Bytes> structs_of(CompactReader& reader, int depth, const std::string& what) {
  const CompactReader::List head = reader.list();
  if (head.count != 0 && head.kind != Kind::structure) refuse(what + ": expected a list of structs");
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
    if (columns == nullptr || columns->kind != Kind::list) refuse(what + ": expected a list of structs");
    CompactReader list_reader(columns->value);
    const std::vector<Bytes> chunks = structs_of(list_reader, 2, what);
    if (chunks.size() != names_.size()) {
      refuse("row group " + std::to_string(group) + " has " + std::to_string(chunks.size()) +
             " columns, the schema has " + std::to_string(names_.size()));
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
  if (column >= names_.size()) refuse("no column " + std::to_string(column));
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
      refuse("encrypted column metadata has type " + std::to_string(static_cast<int>(field->kind)) +
             ": expected binary");
    }
    return CompactReader(field->value).binary();
  });
}

const RowGroups::Group& RowGroups::group_at(std::size_t group) const {
  if (group >= groups_.size()) refuse("no row group " + std::to_string(group));
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
      if (path->kind != Kind::binary) refuse("the path of its file is no text");
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
      refuse(std::to_string(range.size) + " bytes at " + std::to_string(range.start) +
             " are not in the file, which has " + std::to_string(file_size));
    }
    if (range.data > range.start + range.size) {
      refuse("its data pages begin at " + std::to_string(range.data) + ", after its end");
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

}  // namespace warpcipher::parquet
