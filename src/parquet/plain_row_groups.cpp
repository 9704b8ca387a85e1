// SPDX-License-Identifier: Apache-2.0
// Row groups written anew for a plain image: without what speaks of encryption, with every offset and size as it is
// there.
#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "parquet/fields.hpp"
#include "parquet/row_groups.hpp"

namespace warpcipher::parquet {
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
  // It counts what the encryption of the page headers added, but not that of the pages.
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
    refuse(std::to_string(chunks.size()) + " chunks and " + std::to_string(stubs.size()) + " stubs for " +
           std::to_string(groups.size()) + " row groups of " + std::to_string(columns()) + " columns");
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
