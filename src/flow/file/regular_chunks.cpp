// SPDX-License-Identifier: Apache-2.0
#include "flow/file/regular_chunks.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "core/thread_pool.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t most_iv_len = 16;

void check(const RegularLayout& layout, const RegularNonces& nonces, std::uint64_t begin, std::uint64_t len) {
  const std::uint64_t most = most_buffer_len;
  const bool is_sound = layout.chunk_len != 0 && layout.chunk_len <= most && layout.overhead <= most &&
                        layout.header_len <= most && layout.first_lacks < layout.chunk_len && layout.text_len <= most &&
                        layout.count != 0 && layout.count <= most / layout.chunk_len + 1 &&
                        layout.text_len + layout.first_lacks <= layout.count * layout.chunk_len;
  if (!is_sound) throw Error(Status::invalid_argument, "no file has chunks of this layout");
  if (nonces.base.size() > most_iv_len || nonces.counter_shift % 8 != 0 ||
      nonces.counter_shift >= 8 * nonces.base.size() ||
      nonces.final_shift >= static_cast<int>(8 * nonces.base.size())) {
    throw Error(Status::invalid_argument, "no chunks have nonces of this rule");
  }
  if (begin > layout.text_len || len > layout.text_len - begin) {
    throw Error(Status::invalid_argument, "the range [" + std::to_string(begin) + ", +" + std::to_string(len) +
                                              ") leaves the file, which has " + std::to_string(layout.text_len) +
                                              " bytes");
  }
}

// Of the plaintext: where a chunk begins, and its length.
std::uint64_t begin_of(const RegularLayout& layout, std::uint64_t i) {
  return i == 0 ? 0 : i * layout.chunk_len - layout.first_lacks;
}

std::uint64_t length_of(const RegularLayout& layout, std::uint64_t i) {
  const std::uint64_t full_end = (i + 1) * layout.chunk_len - layout.first_lacks;
  return std::min(full_end, layout.text_len) - begin_of(layout, i);
}

// XORs a number into a big-endian one, `shift` bits (a multiple of 8) from its end.
void add_counter(std::uint8_t* nonce, std::size_t len, std::uint64_t number, unsigned shift) {
  for (std::size_t at = len - shift / 8; at-- > 0 && number != 0; number >>= 8) {
    nonce[at] ^= static_cast<std::uint8_t>(number);
  }
}

}  // namespace

RegularChunks::RegularChunks(const RegularLayout& layout, const RegularNonces& nonces, std::uint64_t begin,
                             std::uint64_t len)
    : iv_len_(nonces.base.size()) {
  check(layout, nonces, begin, len);
  if (len == 0) return;
  const std::uint64_t shifted = begin + layout.first_lacks, end = shifted + len;
  first_ = shifted < layout.chunk_len ? 0 : shifted / layout.chunk_len;
  const std::uint64_t last = (end - 1) / layout.chunk_len;
  count_ = last - first_ + 1;
  const std::uint64_t skip = begin - begin_of(layout, first_);
  const std::uint64_t last_end = begin + len - begin_of(layout, last);
  const bool are_whole = skip == 0 && last_end == length_of(layout, last);
  file_offsets_ = std::make_unique_for_overwrite<std::uint64_t[]>(count_);
  lengths_ = std::make_unique_for_overwrite<std::uint64_t[]>(count_);
  ivs_ = std::make_unique_for_overwrite<std::uint8_t[]>(count_ * iv_len_);
  if (!are_whole) {
    skips_ = std::make_unique_for_overwrite<std::uint64_t[]>(count_);
    takes_ = std::make_unique_for_overwrite<std::uint64_t[]>(count_);
  }
  ThreadPool::instance().parallel_for(count_, chunks_at_once, [&](std::size_t from, std::size_t to) {
    for (std::size_t k = from; k < to; ++k) make(layout, nonces, first_ + k);
  });
  if (are_whole) return;
  takes_[count_ - 1] = last_end;
  skips_[0] = skip;
  takes_[0] -= skip;
}

void RegularChunks::make(const RegularLayout& layout, const RegularNonces& nonces, std::uint64_t i) {
  const std::size_t k = i - first_;
  file_offsets_[k] = layout.header_len + begin_of(layout, i) + i * layout.overhead;
  const bool is_final = i + 1 == layout.count;
  lengths_[k] = length_of(layout, i);
  if (takes_ != nullptr) {
    skips_[k] = 0;
    takes_[k] = lengths_[k];
  }
  std::uint8_t* const nonce = ivs_.get() + k * iv_len_;
  std::copy(nonces.base.begin(), nonces.base.end(), nonce);
  add_counter(nonce, iv_len_, i, nonces.counter_shift);
  if (is_final && nonces.final_shift >= 0) {
    const auto shift = static_cast<std::size_t>(nonces.final_shift);
    nonce[iv_len_ - 1 - shift / 8] ^= static_cast<std::uint8_t>(1u << (shift % 8));
  }
}

void RegularChunks::fill(FileChunks& chunks) const {
  chunks.count = count_;
  chunks.first_number = first_;
  chunks.file_offsets = {file_offsets_.get(), count_};
  chunks.lengths = {lengths_.get(), count_};
  chunks.ivs = {ivs_.get(), count_ * iv_len_};
  chunks.iv_len = iv_len_;
  const std::size_t parts = takes_ != nullptr ? count_ : 0;
  chunks.skips = {skips_.get(), parts};
  chunks.takes = {takes_.get(), parts};
}

}  // namespace warpcipher
