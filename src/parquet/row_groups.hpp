// SPDX-License-Identifier: Apache-2.0
// The row groups of a footer as an index of its bytes: which chunks there are, where they lie, and the same row groups
// rewritten for a plain file. Fields and their numbers are from parquet.thrift; a field without a part in encryption
// passes through as it is. Errors as in compact.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "parquet/compact.hpp"
#include "parquet/page_modules.hpp"

namespace warpcipher::parquet {

inline constexpr std::uint64_t absent = UINT64_MAX;  // of an offset that is not there

// Where a chunk lies in its file.
struct ChunkRange {
  std::uint64_t start = 0, size = 0;
  std::uint64_t data = 0;     // where its data pages begin
  std::uint64_t ordinal = 0;  // of its row group
  bool dictionary = false;    // it begins with a dictionary page
  std::uint64_t offset_index = absent, offset_index_size = 0;
  std::uint64_t column_index = absent, column_index_size = 0;
  std::uint64_t bloom = absent;  // its Bloom filter
};

// A chunk in a plain image: where it lies, and what belongs to it.
struct PlainChunk {
  bool is_there = false;  // false: an empty chunk stands for it
  bool was_encrypted = false;
  std::uint64_t start = 0, size = 0;
  std::uint64_t data = 0;    // its first data page
  std::uint64_t shrunk = 0;  // what the headers of its pages lost
  std::uint64_t column_index = absent, column_index_size = 0;
  std::uint64_t offset_index = absent, offset_index_size = 0;
  std::uint64_t bloom = absent, bloom_size = 0;
};

class RowGroups {
 public:
  // list: the encoded list of RowGroup, which is kept. names: of the columns.
  RowGroups(std::vector<std::uint8_t> list, std::vector<std::string> names);
  RowGroups(const RowGroups&) = delete;
  RowGroups& operator=(const RowGroups&) = delete;

  std::size_t size() const noexcept { return groups_.size(); }
  std::size_t columns() const noexcept { return names_.size(); }

  // Of a chunk: its ColumnChunk, and its ColumnMetaData as it is in there or was set; empty without one.
  Bytes chunk(std::size_t group, std::size_t column) const { return at(group, column).fields; }
  Bytes metadata(std::size_t group, std::size_t column) const;

  // Its ColumnCryptoMetaData, and its encrypted ColumnMetaData, a module; nothing without one.
  std::optional<Bytes> crypto(std::size_t group, std::size_t column) const { return at(group, column).crypto; }
  std::optional<Bytes> sealed_metadata(std::size_t group, std::size_t column) const;

  std::uint64_t rows(std::size_t group) const;
  std::uint64_t ordinal(std::size_t group) const;  // its own number where it names none

  // Gives a chunk the ColumnMetaData that a decrypted module holds.
  void set_metadata(std::size_t group, std::size_t column, std::vector<std::uint8_t> text);

  // Where a chunk lies in a file of that size. Refuses what is not in it.
  ChunkRange locate(std::size_t group, std::size_t column, std::uint64_t file_size) const;

  // The list of these row groups without encryption. chunks: one for each column of each of them, one group after
  // another. stubs: for each column the ColumnMetaData of an empty chunk up to its codec (4), without the end.
  std::vector<std::uint8_t> write_plain(std::span<const std::uint64_t> groups, std::span<const PlainChunk> chunks,
                                        std::span<const std::vector<std::uint8_t>> stubs) const;

 private:
  struct Group {
    Bytes fields;
    std::optional<std::int64_t> rows, ordinal;
  };
  struct Chunk {
    Bytes fields;
    std::optional<Bytes> metadata, crypto;
    std::optional<std::vector<std::uint8_t>> decrypted;
  };

  const Group& group_at(std::size_t group) const;
  const Chunk& at(std::size_t group, std::size_t column) const;

  // Adds the name of the chunk to the refusals of `call`.
  template <class Call>
  auto named(std::size_t group, std::size_t column, const Call& call) const {
    try {
      return call();
    } catch (const Error& error) {
      refuse("column ", names_[column], ", row group ", group, ": ", error.what());
    }
  }

  const std::vector<std::uint8_t> text_;
  const std::vector<std::string> names_;
  std::vector<Group> groups_;
  std::vector<Chunk> chunks_;
};

}  // namespace warpcipher::parquet
