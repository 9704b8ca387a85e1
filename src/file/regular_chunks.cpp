// SPDX-License-Identifier: Apache-2.0
#include "file/regular_chunks.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "core/thread_pool.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t chunks_at_once = 16384;  // of a core; fewer take less time than another takes to wake
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
  const std::size_t count = last - first_ + 1;
  file_offsets_.resize(count);
  lengths_.resize(count);
  ivs_.resize(count * iv_len_);
  ThreadPool::instance().parallel_for(count, chunks_at_once, [&](std::size_t from, std::size_t to) {
    for (std::size_t k = from; k < to; ++k) make(layout, nonces, first_ + k);
  });
  const std::uint64_t skip = begin - (first_ == 0 ? 0 : first_ * layout.chunk_len - layout.first_lacks);
  const std::uint64_t last_begin = last == 0 ? 0 : last * layout.chunk_len - layout.first_lacks;
  const std::uint64_t last_end = begin + len - last_begin;
  if (skip == 0 && last_end == lengths_.back()) return;
  skips_.assign(count, 0);
  takes_ = lengths_;
  takes_.back() = last_end;
  skips_.front() = skip;
  takes_.front() -= skip;
}

void RegularChunks::make(const RegularLayout& layout, const RegularNonces& nonces, std::uint64_t i) {
  const std::size_t k = i - first_;
  const std::uint64_t begin = i == 0 ? 0 : i * layout.chunk_len - layout.first_lacks;
  file_offsets_[k] = layout.header_len + begin + i * layout.overhead;
  const bool is_final = i + 1 == layout.count;
  const std::uint64_t full_end = (i + 1) * layout.chunk_len - layout.first_lacks;
  lengths_[k] = std::min(full_end, layout.text_len) - begin;
  std::uint8_t* const nonce = ivs_.data() + k * iv_len_;
  std::copy(nonces.base.begin(), nonces.base.end(), nonce);
  add_counter(nonce, iv_len_, i, nonces.counter_shift);
  if (is_final && nonces.final_shift >= 0) {
    const auto shift = static_cast<std::size_t>(nonces.final_shift);
    nonce[iv_len_ - 1 - shift / 8] ^= static_cast<std::uint8_t>(1u << (shift % 8));
  }
}

void RegularChunks::fill(FileChunks& chunks) const {
  chunks.count = lengths_.size();
  chunks.first_number = first_;
  chunks.file_offsets = file_offsets_;
  chunks.lengths = lengths_;
  chunks.ivs = ivs_;
  chunks.iv_len = iv_len_;
  chunks.skips = skips_;
  chunks.takes = takes_;
}

}  // namespace warpcipher
