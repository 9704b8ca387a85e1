// SPDX-License-Identifier: Apache-2.0
#include "parquet/compact.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"

namespace warpcipher::parquet {
namespace {

constexpr std::size_t longest_varint = 10;

constexpr const char* expected = ": expected an integer that is not negative";

}  // namespace

CompactReader::CompactReader(Bytes text, std::size_t position)
    : text_(text), start_(std::min(position, text.size())), position_(start_) {}

std::uint8_t CompactReader::byte() { return take(1)[0]; }

Bytes CompactReader::take(std::size_t count) {
  if (count > left()) refuse("cut short after ", text_.size() - start_, " bytes");
  position_ += count;
  return text_.subspan(position_ - count, count);
}

std::uint64_t CompactReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 7 * longest_varint; shift += 7) {
    const std::uint64_t bits = byte();
    if (shift == 63 && bits > 1) break;
    value |= (bits & 127) << shift;
    if (bits < 128) return value;
  }
  refuse("an integer of more than 64 bits");
}

Bytes CompactReader::binary() {
  const std::uint64_t size = varint();
  if (size > left()) {
    refuse(size, " bytes of binary where ", left(), " are left");
  }
  return take(static_cast<std::size_t>(size));
}

bool CompactReader::next(Field& field) {
  const std::uint8_t head = byte();
  if (head == 0) return false;
  field.kind = static_cast<Kind>(head & 15);
  const std::int64_t number = head > 15 ? field.number + (head >> 4) : integer();
  if (number < std::numeric_limits<std::int16_t>::min() || number > std::numeric_limits<std::int16_t>::max()) {
    refuse("a field of number ", number);
  }
  field.number = static_cast<int>(number);
  return true;
}

CompactReader::List CompactReader::list() {
  const std::uint8_t head = byte();
  std::uint64_t count = head >> 4;
  if (count == 15) count = varint();
  if (count > left()) {
    refuse("a list of ", count, " elements in ", left(), " bytes");
  }
  return {static_cast<Kind>(head & 15), static_cast<std::size_t>(count)};
}

void CompactReader::check_depth(int depth) {
  if (depth > max_depth) refuse("nested more than ", max_depth, " deep");
}

void CompactReader::skip_integer() {
  for (std::size_t i = 0; byte() > 127; ++i) {
    if (i + 1 == longest_varint) refuse("an integer of more than 64 bits");
  }
}

// In a container a bool has a byte of its own.
void CompactReader::skip_element(Kind kind, int depth) {
  skip(kind == Kind::yes || kind == Kind::no ? Kind::i8 : kind, depth);
}

void CompactReader::skip(Kind kind, int depth) {
  switch (kind) {
    case Kind::yes:
    case Kind::no: return;
    case Kind::i8: take(1); return;
    case Kind::i16:
    case Kind::i32:
    case Kind::i64: return skip_integer();
    case Kind::real: take(8); return;
    case Kind::uuid: take(16); return;
    case Kind::binary: binary(); return;
    case Kind::structure: {
      check_depth(depth + 1);
      Field field;
      while (next(field)) skip(field.kind, depth + 1);
      return;
    }
    case Kind::list:
    case Kind::set: {
      check_depth(depth + 1);
      const List head = list();
      for (std::size_t i = 0; i < head.count; ++i) skip_element(head.kind, depth + 1);
      return;
    }
    case Kind::map: {
      check_depth(depth + 1);
      const std::uint64_t count = varint();
      if (count == 0) return;
      if (count > left()) {
        refuse("a map of ", count, " entries in ", left(), " bytes");
      }
      const std::uint8_t kinds = byte();
      for (std::uint64_t i = 0; i < count; ++i) {
        skip_element(static_cast<Kind>(kinds >> 4), depth + 1);
        skip_element(static_cast<Kind>(kinds & 15), depth + 1);
      }
      return;
    }
    case Kind::stop: break;
  }
  refuse("unknown type ", static_cast<int>(kind));
}

Bytes first_struct(Bytes text) {
  constexpr int nothing_around = -1;
  CompactReader reader(text);
  reader.skip(Kind::structure, nothing_around);
  return reader.since(0);
}

std::size_t varint_size(std::uint64_t value) {
  std::size_t size = 1;
  for (; value > 127; value >>= 7) ++size;
  return size;
}

void CompactWriter::varint(std::uint64_t value, std::size_t size) {
  for (std::size_t written = 1; value > 127 || written < size; ++written) {
    byte(static_cast<std::uint8_t>((value & 127) | 128));
    value >>= 7;
  }
  byte(static_cast<std::uint8_t>(value));
}

void CompactWriter::field(int& last, int number, Kind kind) {
  const int delta = number - last;
  last = number;
  const auto type = static_cast<std::uint8_t>(kind);
  if (delta > 0 && delta < 16) return byte(static_cast<std::uint8_t>(delta << 4 | type));
  byte(type);
  varint(zigzag(number));
}

void CompactWriter::list(Kind kind, std::size_t count) {
  const auto type = static_cast<std::uint8_t>(kind);
  if (count < 15) return byte(static_cast<std::uint8_t>(count << 4 | type));
  byte(static_cast<std::uint8_t>(15 << 4 | type));
  varint(count);
}

CompactStruct::CompactStruct(Bytes text) {
  CompactReader reader(text);
  read(reader);
  if (reader.left() != 0) refuse(reader.left(), " bytes follow its end");
}

void CompactStruct::read(CompactReader& reader) {
  CompactReader::Field field;
  fields_.reserve(16);
  bool sorted = true;
  while (reader.next(field)) {
    const std::size_t start = reader.position();
    reader.skip(field.kind, 0);
    sorted = sorted && (fields_.empty() || fields_.back().number < field.number);
    fields_.push_back({field.number, field.kind, reader.since(start), 0});
  }
  if (sorted) return;
  const auto by_number = [](const Field& a, const Field& b) { return a.number < b.number; };
  std::stable_sort(fields_.begin(), fields_.end(), by_number);
  for (std::size_t i = 1; i < fields_.size(); ++i) {
    if (fields_[i].number == fields_[i - 1].number) {
      refuse("field ", fields_[i].number, " is there twice");
    }
  }
}

const CompactStruct::Field* CompactStruct::find(int number) const {
  for (const Field& field : fields_) {
    if (field.number >= number) return field.number == number ? &field : nullptr;
  }
  return nullptr;
}

void CompactStruct::erase(int number) {
  if (const Field* field = find(number)) fields_.erase(fields_.begin() + (field - fields_.data()));
}

CompactStruct::Field& CompactStruct::at(int number, Kind kind) {
  auto place = fields_.begin();
  while (place != fields_.end() && place->number < number) ++place;
  if (place == fields_.end() || place->number != number) place = fields_.insert(place, Field{number, kind, {}, 0});
  return *place;
}

void CompactStruct::set(int number, std::int64_t value, Kind kind) {
  Field& field = at(number, kind);
  if (!is_integer(field.kind)) {
    refuse("field ", number, " of the metadata has type ", static_cast<int>(field.kind), ": expected an integer");
  }
  field.value = {};
  field.integer = value;
}

void CompactStruct::put(int number, Kind kind, Bytes value) {
  Field& field = at(number, kind);
  field.kind = kind;
  field.value = value;
}

void CompactStruct::write(CompactWriter& writer) const {
  int last = 0;
  for (const Field& field : fields_) {
    writer.field(last, field.number, field.kind);
    if (is_integer(field.kind) && field.value.empty()) {
      writer.varint(zigzag(field.integer));
    } else {
      writer.bytes(field.value);
    }
  }
  writer.byte(0);
}

std::optional<std::int64_t> integer_of(const CompactStruct& fields, int number, const char* what) {
  const CompactStruct::Field* field = fields.find(number);
  if (field == nullptr) return {};
  if (!is_integer(field->kind)) {
    refuse(what, " has type ", static_cast<int>(field->kind), expected);
  }
  const std::int64_t value = field->value.empty() ? field->integer : CompactReader(field->value).integer();
  if (value < 0) refuse(what, " is ", value, expected);
  return value;
}

std::int64_t required_integer(const CompactStruct& fields, int number, const char* what) {
  if (const std::optional<std::int64_t> value = integer_of(fields, number, what)) return *value;
  refuse(what, " is missing", expected);
}

}  // namespace warpcipher::parquet
