// SPDX-License-Identifier: Apache-2.0
#include "parquet/page_stream.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "core/bytes.hpp"
#include "core/error.hpp"

namespace warpcipher::parquet {
namespace {

// Of Zen 3: a core's cache holds that and its plaintext.
constexpr std::uint64_t piece_len = std::uint64_t{128} << 10;

constexpr std::size_t most_kept = std::size_t{4} << 20;

// A header is some 60 bytes, and the length of its page follows: with that the next piece is read in one go.
constexpr std::uint64_t look_ahead = 256;

// On Zen 3 the system copies to an address that is 1 to 31 bytes behind the one in the file, modulo 4096, three times
// as slowly. A buffer holds bytes at the place in a page of memory that they have in the file.
constexpr std::uint64_t page_size = 4096;

}  // namespace

void read_at(int descriptor, std::uint64_t position, std::span<std::uint8_t> out,
             const std::function<void()>& interrupted) {
  while (!out.empty()) {
    const ssize_t got = pread(descriptor, out.data(), out.size(), static_cast<off_t>(position));
    if (got < 0 && errno == EINTR) {
      interrupted();
      continue;
    }
    if (got <= 0) throw ReadError{position, got < 0 ? errno : 0};
    position += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

std::uint8_t* PageBuffer::room(std::size_t size) {
  if (size > size_) {
    bytes_.reset();
    bytes_.reset(static_cast<std::uint8_t*>(::operator new[](size, alignment)));
    size_ = size;
  }
  return bytes_.get();
}

void PageBuffer::trim() {
  if (size_ <= most_kept) return;
  bytes_.reset();
  size_ = 0;
}

PageStream::PageStream(const ChunkSource& source, const SealedChunk& chunk, Bytes prefix, std::uint64_t page_overhead)
    : source_(source), chunk_(chunk), prefix_(prefix), page_overhead_(page_overhead) {}

bool PageStream::next(PagePiece& piece, const std::function<void()>& interrupted) {
  const std::lock_guard lock(mutex_);
  piece.pages.clear();
  piece.aads.clear();
  piece.aad_ends.clear();
  piece.first_page = pages_.size();
  const std::uint64_t left = chunk_.size - done_;
  for (piece.len = 0; left != 0 && piece.len == 0;) {
    const Bytes text = look(std::min(left, std::max(piece_len, needed_ + look_ahead)), piece.buffer, interrupted);
    piece.len = take_pages(text, piece);
    if (source_.descriptor >= 0) ahead_.assign(text.begin() + static_cast<std::ptrdiff_t>(piece.len), text.end());
  }
  done_ += piece.len;
  return piece.len != 0;
}

void PageStream::set_padding(std::uint64_t page, std::uint64_t padding) {
  const std::lock_guard lock(mutex_);
  pages_[page].padding = padding;
}

// The next bytes of the chunk.
Bytes PageStream::look(std::uint64_t size, PageBuffer& buffer, const std::function<void()>& interrupted) {
  const std::uint64_t position = chunk_.position + done_;
  if (source_.descriptor < 0) return source_.bytes.subspan(position - source_.begin, size);
  const std::uint64_t skipped = position % page_size;
  std::uint8_t* const begin = buffer.room(skipped + size) + skipped;
  std::copy(ahead_.begin(), ahead_.end(), begin);
  read_at(source_.descriptor, position + ahead_.size(), {begin + ahead_.size(), size - ahead_.size()}, interrupted);
  return {begin, size};
}

// Adds the pages that are whole in the text, and returns the bytes that their modules take.
std::uint64_t PageStream::take_pages(Bytes text, PagePiece& piece) {
  const std::uint64_t left = chunk_.size - done_;
  std::uint64_t at = 0;
  for (needed_ = 0; at < left; needed_ = 0) {
    const std::uint64_t head = module_size(text, at);
    if (head != 0 && head == left - at) refuse_modules(2 * pages_.size() + 1);
    const std::uint64_t page = head == 0 ? 0 : module_size(text, at + head);
    needed_ = head + page;
    if (page == 0 || needed_ > text.size() - at) break;
    add(piece, text, at, head, page);
    at += head + page;
  }
  return at;
}

// Of a module at a place in the text; 0: its length is not in the text.
std::uint64_t PageStream::module_size(Bytes text, std::uint64_t at) const {
  const std::uint64_t left = chunk_.size - done_;
  const auto lie = [&] {
    refuse("the lengths of its modules do not add up to its " + std::to_string(chunk_.size) + " bytes");
  };
  if (at > left || left - at < length_size) lie();
  if (at > text.size() || text.size() - at < length_size) return 0;
  const std::uint64_t length = load_le32(text.data() + at);
  if (length < nonce_size) refuse("a module of " + std::to_string(length) + " bytes is shorter than its nonce");
  if (length_size + length > left - at) lie();
  return length_size + length;
}

void PageStream::add(PagePiece& piece, Bytes text, std::uint64_t at, std::uint64_t head, std::uint64_t page) {
  const bool is_dictionary = chunk_.dictionary && pages_.empty();
  const std::uint64_t number = pages_.size() - (chunk_.dictionary ? 1 : 0);
  if (!is_dictionary && number > most_ordinal) refuse_modules(2 * pages_.size() + 2);
  const std::uint64_t head_text = text_size(head, gcm_overhead), page_text = text_size(page, page_overhead_);
  const std::uint8_t* const from = text.data() + at;
  piece.pages.push_back({{from, head_text, out_}, {from + head, page_text, out_ + head_text}, is_dictionary});
  for (const bool is_head : {true, false}) {
    append_page_aad(piece.aads, prefix_, is_head, is_dictionary, chunk_.row_group, chunk_.column, number);
    piece.aad_ends.push_back(piece.aads.size());
  }
  pages_.push_back({done_ + at, out_, head_text + page_text, head_text});
  out_ += head_text + page_text;
}

}  // namespace warpcipher::parquet
