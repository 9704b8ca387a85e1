// SPDX-License-Identifier: Apache-2.0
#include "parquet/page_modules.hpp"

#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/wipe.hpp"
#include "flow/file/work.hpp"
#include "parquet/compact.hpp"

namespace warpcipher::parquet {
namespace {

enum ModuleType : std::uint8_t { data_page = 2, dictionary_page = 3, data_header = 4, dictionary_header = 5 };

// Of a file at first: a header is some 60 bytes, and the length and nonce of its page follow; with statistics in it,
// more. Then as many as headers had: each line of a cache that is read costs as much as what is done with it.
constexpr std::uint64_t first_look = 512;
constexpr std::uint64_t more_than_before = 16;

// The bytes of a chunk, of which a file's are read where they are looked at.
class Window {
 public:
  Window(const ChunkSource& source, std::uint64_t end, const std::function<void()>& interrupted)
      : source_(source), end_(end), interrupted_(interrupted) {}

  // Bytes before the end, until the next call.
  Bytes look(std::uint64_t position, std::uint64_t size) {
    if (source_.descriptor < 0) return source_.bytes.subspan(position - source_.begin, size);
    if (position < begin_ || position + size > begin_ + bytes_.size()) {
      begin_ = position;
      bytes_.resize(std::max(size, std::min(size_, end_ - position)));
      const auto read = [&](std::size_t done, std::size_t left) {
        return pread(source_.descriptor, bytes_.data() + done, left, static_cast<off_t>(begin_ + done));
      };
      const std::size_t done = move_all(bytes_.size(), read, interrupted_);
      if (done != bytes_.size()) throw ReadError{begin_ + done, errno};
    }
    return Bytes(bytes_).subspan(position - begin_, size);
  }

  // How much is read at once.
  void expect(std::uint64_t size) { size_ = size; }

 private:
  const ChunkSource& source_;
  const std::uint64_t end_;
  const std::function<void()>& interrupted_;
  std::uint64_t size_ = first_look;
  std::uint64_t begin_ = 0;
  std::vector<std::uint8_t> bytes_;
};

std::uint64_t text_size(std::uint64_t module, std::uint64_t overhead) {
  if (module < overhead) refuse("a module is shorter than its nonce and tag");
  return module - overhead;
}

[[noreturn]] void refuse_modules(std::uint64_t count) {
  refuse(count, " modules: expected a header and a page for each of up to ", most_ordinal + 1, " pages");
}

// Appends the AAD of a module. number: of the page, where it is not a dictionary.
void append_page_aad(std::vector<std::uint8_t>& to, Bytes prefix, bool is_head, bool is_dictionary,
                     std::int16_t row_group, std::int16_t column, std::uint64_t number) {
  const auto add_le16 = [&](std::uint64_t value) {
    to.push_back(static_cast<std::uint8_t>(value));
    to.push_back(static_cast<std::uint8_t>(value >> 8));
  };
  to.insert(to.end(), prefix.begin(), prefix.end());
  to.push_back(is_dictionary ? (is_head ? dictionary_header : dictionary_page) : (is_head ? data_header : data_page));
  add_le16(static_cast<std::uint16_t>(row_group));
  add_le16(static_cast<std::uint16_t>(column));
  if (!is_dictionary) add_le16(number);
}

}  // namespace

PageModules scan_pages(const ChunkSource& source, const SealedChunk& chunk, std::uint64_t page_overhead,
                       const std::function<void()>& interrupted) {
  const std::uint64_t end = chunk.position + chunk.size;
  Window window(source, end, interrupted);
  const auto module_size = [&](std::uint64_t at) {
    const bool has_length = end - at >= length_size;
    const std::uint64_t length = has_length ? load_le32(window.look(at, length_size).data()) : 0;
    if (has_length && length < nonce_size) {
      refuse("a module of ", length, " bytes is shorter than its nonce");
    }
    if (!has_length || length_size + length > end - at) {
      refuse("the lengths of its modules do not add up to its ", chunk.size, " bytes");
    }
    return length_size + length;
  };
  PageModules found;
  const std::uint64_t most_pages = most_ordinal + (chunk.dictionary ? 2 : 1);
  std::uint64_t longest = 0;
  for (std::uint64_t at = chunk.position; at != end;) {
    const std::uint64_t head = module_size(at);
    if (head == end - at) refuse_modules(2 * found.pages.size() + 1);
    const Bytes text = window.look(at, head);
    found.heads.insert(found.heads.end(), text.begin(), text.end());
    const std::uint64_t page = module_size(at + head);
    if (found.pages.size() == most_pages) refuse_modules(2 * found.pages.size() + 2);
    found.pages.push_back({at, text_size(head, gcm_overhead), text_size(page, page_overhead)});
    const Bytes nonce = window.look(at + head + length_size, nonce_size);
    found.nonces.insert(found.nonces.end(), nonce.begin(), nonce.end());
    longest = std::max(longest, head);
    window.expect(longest + head_size + more_than_before);
    at += head + page;
  }
  return found;
}

PageAads page_aads(Bytes prefix, std::int16_t row_group, std::int16_t column, bool dictionary, std::size_t count) {
  PageAads found;
  found.sizes.assign(count, prefix.size() + 7);
  if (dictionary && count != 0) found.sizes[0] -= 2;
  for (const bool is_head : {true, false}) {
    std::vector<std::uint8_t>& to = is_head ? found.heads : found.pages;
    to.reserve(count * (prefix.size() + 7));
    for (std::size_t i = 0; i < count; ++i) {
      append_page_aad(to, prefix, is_head, dictionary && i == 0, row_group, column, i - (dictionary ? 1 : 0));
    }
  }
  return found;
}

ModuleTexts write_heads(std::span<std::uint8_t> out, std::span<const std::uint64_t> modules,
                        std::span<const std::uint64_t> lengths, Bytes nonces, bool counter_mode) {
  if (lengths.size() != modules.size() || nonces.size() != nonce_size * modules.size()) {
    refuse(lengths.size(), " lengths and ", nonces.size(), " bytes of nonces for ", modules.size(), " modules");
  }
  ModuleTexts found;
  found.texts.reserve(modules.size());
  for (std::size_t i = 0; i < modules.size(); ++i) {
    if (out.size() < head_size || modules[i] > out.size() - head_size) {
      refuse("a module at ", modules[i], " in ", out.size(), " bytes");
    }
    const std::uint64_t length = lengths[i] + nonce_size + (counter_mode ? 0 : tag_size);
    if (length > UINT32_MAX) refuse("a module of ", length, " bytes: its length has 32 bits");
    store_le32(out.data() + modules[i], static_cast<std::uint32_t>(length));
    const Bytes nonce = nonces.subspan(nonce_size * i, nonce_size);
    std::copy(nonce.begin(), nonce.end(), out.begin() + static_cast<std::ptrdiff_t>(modules[i] + length_size));
    found.texts.push_back(modules[i] + head_size);
    found.ivs.insert(found.ivs.end(), nonce.begin(), nonce.end());
    if (counter_mode) found.ivs.insert(found.ivs.end(), {0, 0, 0, 1});
  }
  return found;
}

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
  if (missing != 0) refuse("a page header cannot be made ", all_missing, " bytes longer");
  for (const CompactStruct::Field& field : fields.fields()) {
    if (field.number <= last) continue;
    writer.field(last, field.number, field.kind);
    writer.bytes(field.value);
  }
  writer.byte(0);
  if (writer.out().size() != header.size()) {
    refuse("a page header of ", header.size(), " bytes becomes one of ", writer.out().size());
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
    refuse("it is for a page of ", size, " bytes, and the page has ", sealed);
  }
  if ((type == dictionary_page_type) != is_dictionary) refuse("it is for a page of type ", type);
  fields.erase(checksum);
  fields.set(compressed_size, static_cast<std::int64_t>(plain));
  write_padded(fields, header);
  return header.size();
}

}  // namespace warpcipher::parquet
