// SPDX-License-Identifier: Apache-2.0
#include "parquet/page_header.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/wipe.hpp"
#include "parquet/fields.hpp"

namespace warpcipher::parquet {
namespace {

constexpr std::int64_t dictionary_page_type = 2;
constexpr std::size_t longest_i32 = 5;
constexpr std::uint8_t next_i32 = 0x15;  // the next number, type i32

// For headers as writers make them: fields in order, and no CRC. The size is overwritten where it is. Returns the
// header's bytes; 0: it is another header, or not of that page.
std::size_t shrink_usual(std::span<std::uint8_t> text, std::uint64_t sealed, std::uint64_t plain, bool is_dictionary) {
  using namespace page_header;
  CompactReader reader(text);
  CompactReader::Field field;
  std::optional<std::int64_t> type, size;
  std::size_t start = 0, end = 0;
  for (int last = 0; reader.next(field); last = field.number) {
    if (field.number <= last || field.number == checksum) return 0;
    const bool is_asked_for = field.number == page_type || field.number == compressed_size;
    if (!is_asked_for || !is_integer(field.kind)) {
      reader.skip(field.kind, 0);
      continue;
    }
    start = field.number == compressed_size ? reader.position() : start;
    (field.number == page_type ? type : size) = reader.integer();
    end = field.number == compressed_size ? reader.position() : end;
  }
  if (!type || !size || *size < 0 || static_cast<std::uint64_t>(*size) != sealed) return 0;
  if ((*type == dictionary_page_type) != is_dictionary || varint_size(plain << 1) > end - start) return 0;
  std::uint64_t value = plain << 1;
  for (std::size_t i = start; i + 1 < end; ++i, value >>= 7) text[i] = static_cast<std::uint8_t>(value | 128);
  text[end - 1] = static_cast<std::uint8_t>(value);
  return reader.position();
}

// The header made as long as it was: by longer varints, then by field numbers in full.
void write_padded(const CompactStruct& fields, std::span<std::uint8_t> header) {
  using namespace page_header;
  CompactWriter writer;
  writer.out().reserve(header.size());
  fields.write(writer);
  std::size_t missing = header.size() - std::min(header.size(), writer.out().size());
  const std::size_t all_missing = missing;
  writer.out().clear();
  int last = 0;
  for (const int number : {page_type, uncompressed_size, compressed_size}) {
    const std::uint64_t value = zigzag(required_integer(fields, number, "the size of the page"));
    const std::size_t size = varint_size(value);
    const std::size_t more = std::min(missing, longest_i32 - std::min(size, longest_i32));
    missing -= more;
    if (missing != 0) {
      writer.byte(static_cast<std::uint8_t>(Kind::i32));
      writer.varint(zigzag(number));
      --missing;
    } else {
      writer.byte(next_i32);
    }
    last = number;
    writer.varint(value, size + more);
  }
  if (missing != 0) refuse("a page header cannot be made " + std::to_string(all_missing) + " bytes longer");
  for (const CompactStruct::Field& field : fields.fields()) {
    if (field.number <= last) continue;
    writer.field(last, field.number, field.kind);
    writer.bytes(field.value);
  }
  writer.byte(0);
  if (writer.out().size() != header.size()) {
    refuse("a page header of " + std::to_string(header.size()) + " bytes becomes one of " +
           std::to_string(writer.out().size()));
  }
  std::copy(writer.out().begin(), writer.out().end(), header.begin());
}

}  // namespace

std::size_t shrink_header(std::span<std::uint8_t> text, std::uint64_t sealed, std::uint64_t plain, bool is_dictionary) {
  using namespace page_header;
  if (const std::size_t length = shrink_usual(text, sealed, plain, is_dictionary)) return length;
  const std::span<std::uint8_t> header = text.first(first_struct(text).size());
  const SecretBytes before(header);  // statistics in it are values of the table
  CompactStruct fields{Bytes(before.data(), before.size())};
  const std::int64_t type = required_integer(fields, page_type, "the type of the page");
  const auto size = static_cast<std::uint64_t>(required_integer(fields, compressed_size, "the size of the page"));
  if (size != sealed) {
    refuse("it is for a page of " + std::to_string(size) + " bytes, and the page has " + std::to_string(sealed));
  }
  if ((type == dictionary_page_type) != is_dictionary) refuse("it is for a page of type " + std::to_string(type));
  fields.erase(checksum);
  fields.set(compressed_size, static_cast<std::int64_t>(plain));
  write_padded(fields, header);
  return header.size();
}

}  // namespace warpcipher::parquet
