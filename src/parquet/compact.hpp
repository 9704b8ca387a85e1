// SPDX-License-Identifier: Apache-2.0
// Thrift's compact protocol, for metadata that is partly read and written again: a field that nobody asks for stays the
// bytes that it is.
//
//   field   delta << 4 | type, or type and the number as a varint
//   varint  seven bits a byte, least significant first; integers are zigzag
//   list    size << 4 | type, or 15 << 4 | type and the size as a varint
//
// Everything comes from outside. A fault is an Error{invalid_argument} that says so; nothing is read beyond the
// text, and work and memory are linear in it. Specification: thrift-compact-protocol.md of Apache Thrift.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/wipe.hpp"

namespace warpcipher::parquet {

using Bytes = std::span<const std::uint8_t>;

enum class Kind : std::uint8_t { stop, yes, no, i8, i16, i32, i64, real, binary, list, set, map, structure, uuid };

constexpr bool is_integer(Kind kind) { return kind == Kind::i16 || kind == Kind::i32 || kind == Kind::i64; }

inline constexpr int max_depth = 48;  // of structs and containers in each other; a Parquet footer has 7

constexpr std::uint64_t zigzag(std::int64_t value) {
  return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}

constexpr std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

class CompactReader {
 public:
  struct Field {
    int number = 0;
    Kind kind = Kind::stop;
  };
  struct List {
    Kind kind;
    std::size_t count;
  };

  explicit CompactReader(Bytes text, std::size_t position = 0);

  std::size_t position() const noexcept { return position_; }
  std::size_t left() const noexcept { return text_.size() - position_; }
  Bytes since(std::size_t start) const { return text_.subspan(start, position_ - start); }

  std::uint8_t byte();
  std::uint64_t varint();  // of up to 64 bits
  std::int64_t integer() { return unzigzag(varint()); }
  Bytes take(std::size_t count);
  Bytes binary();

  // The head of the field after `field`, which begins as Field{}; false at the end of the struct.
  bool next(Field& field);

  // The head of a list or set. Each element has a byte at least: a count that lies costs nothing.
  List list();

  // Past a value; depth: of structs and containers around it.
  void skip(Kind kind, int depth);

  static void check_depth(int depth);

 private:
  void skip_integer();
  void skip_element(Kind kind, int depth);

  Bytes text_;
  std::size_t start_;
  std::size_t position_;
};

class CompactWriter {
 public:
  CompactWriter() = default;
  CompactWriter(CompactWriter&&) = default;
  CompactWriter& operator=(CompactWriter&&) = delete;
  ~CompactWriter() { secure_wipe(out_.data(), out_.size()); }  // headers hold statistics: values of the table

  void byte(std::uint8_t value) { out_.push_back(value); }
  void varint(std::uint64_t value, std::size_t size = 1);  // made `size` bytes long by bits that say nothing
  void bytes(Bytes value) { out_.insert(out_.end(), value.begin(), value.end()); }
  void field(int& last, int number, Kind kind);
  void list(Kind kind, std::size_t count);

  std::vector<std::uint8_t>& out() noexcept { return out_; }

 private:
  std::vector<std::uint8_t> out_;
};

// The struct that a text begins with. Of a module that is all that counts: parquet-java encrypts the whole buffer that
// it serialised a struct into, so that what the struct left of the buffer follows it.
Bytes first_struct(Bytes text);

// Bytes that a varint takes.
std::size_t varint_size(std::uint64_t value);

// The fields of one struct by their numbers, to be changed and written. Values are views of the text.
class CompactStruct {
 public:
  struct Field {
    int number;
    Kind kind;
    Bytes value;
    std::int64_t integer;  // of the kinds of integers, without a value: what was set
  };

  // Reads the struct that the text is. Refuses a number that is there twice.
  explicit CompactStruct(Bytes text);

  const std::vector<Field>& fields() const noexcept { return fields_; }
  const Field* find(int number) const;
  void erase(int number);

  // Sets an integer, with the type that the field has, or `kind`. Refuses where it has one of no integer.
  void set(int number, std::int64_t value, Kind kind = Kind::i64);

  // Puts a value that is encoded already.
  void put(int number, Kind kind, Bytes value);

  void write(CompactWriter& writer) const;

 private:
  void read(CompactReader& reader);
  Field& at(int number, Kind kind);

  std::vector<Field> fields_;
};

// The integer of a field. Empty: it is not there. Throws where it is negative or no integer; `what` names it.
std::optional<std::int64_t> integer_of(const CompactStruct& fields, int number, const char* what);

// The same for a field that must be there.
std::int64_t required_integer(const CompactStruct& fields, int number, const char* what);

// The numbers of fields in parquet.thrift that encryption touches.
namespace row_group {
enum : int { columns = 1, total_byte_size = 2, rows = 3, file_offset = 5, total_compressed_size = 6, ordinal = 7 };
}

namespace column_chunk {
enum : int {
  file_path = 1,
  file_offset = 2,
  metadata = 3,
  offset_index_offset = 4,
  offset_index_length = 5,
  column_index_offset = 6,
  column_index_length = 7,
  crypto_metadata = 8,
  encrypted_metadata = 9,
};
}

namespace column_metadata {
enum : int {
  values = 5,
  uncompressed_size = 6,
  compressed_size = 7,
  data_page_offset = 9,
  index_page_offset = 10,
  dictionary_page_offset = 11,
  bloom_filter_offset = 14,
  bloom_filter_length = 15,
};
}

namespace page_header {
enum : int { page_type = 1, uncompressed_size = 2, compressed_size = 3, checksum = 4 };
}

}  // namespace warpcipher::parquet
