// SPDX-License-Identifier: Apache-2.0
#include "random/host.hpp"

#include <algorithm>
#include <cstring>

#include "core/processor.hpp"
#include "core/thread_pool.hpp"
#include "engine/cpu/lanes.hpp"

namespace warpcipher::random {
namespace {

constexpr std::uint64_t grain_len = std::uint64_t{1} << 18;  // stream bytes that a thread takes at a time

const HostCode& best_code() {
#if defined(__x86_64__)
  if (has_instruction_set(host_avx2.name)) return host_avx2;
#endif
  return host_baseline;
}

// Blocks n to n + count - 1 of ChaCha20, in parts where the counter carries.
void make_chacha(const ChaChaStream& stream, std::uint64_t n, std::size_t count, std::uint8_t* out) {
  const cpu::ChaChaLanes& code = *cpu::chacha_lanes_list().front();
  while (count != 0) {
    const std::uint64_t to_carry = (std::uint64_t{1} << 32) - static_cast<std::uint32_t>(n);
    const auto made = static_cast<std::size_t>(std::min<std::uint64_t>(count, to_carry));
    const Secret<chacha::State> first(stream.of_block(n));
    code.generate(*first, out, made);
    n += made;
    out += line_len * made;
    count -= made;
  }
}

// The definition, for any function of distributions.hpp: each group by itself, from the words of its own blocks.
template <class Stream>
struct ByDefinition {
  const HostFill& fill;
  const Stream& stream;

  template <class Word>
  Word word(std::uint64_t index) const {
    const std::uint64_t at = index * sizeof(Word);
    std::uint32_t words[Stream::block_len / 4];
    stream.block(domain::of_attempt(fill.attempt) + at / Stream::block_len, words);
    std::uint8_t bytes[Stream::block_len];
    chacha::store_words(bytes, words, Stream::block_len / 4);
    Word value = 0;
    for (std::size_t i = 0; i < sizeof(Word); ++i) {
      value = static_cast<Word>(value | static_cast<Word>(bytes[at % Stream::block_len + i]) << 8 * i);
    }
    return value;
  }

  template <class F>
  void operator()(const F& function) const {
    using Word = typename F::Word;
    using Value = typename F::Value;
    for (std::uint64_t i = 0; i < fill.count; ++i) {
      const std::uint64_t index = fill.position / sizeof(Word) + i;
      const std::uint64_t first = index - index % F::group;
      Word words[F::group];
      Value values[F::group];
      for (int k = 0; k < F::group; ++k) words[k] = word<Word>(first + static_cast<unsigned>(k));
      if (function(words, values)) {
        if constexpr (has_rejections<F>) {
          function.finish(words, values, FurtherWords<Stream>(stream, first * sizeof(Word)));
        }
      }
      std::memcpy(fill.data + i * sizeof(Value), values + index % F::group, sizeof(Value));
    }
  }
};

}  // namespace

struct Lines::AesLanes {
  const cpu::AesLanes& code;
  Secret<cpu::AesLaneKey> key;
};

Lines::Lines(const StreamKey& key, std::uint32_t attempt)
    : cipher_(key.cipher), first_block_(domain::of_attempt(attempt)) {
  if (cipher_ == StreamCipher::chacha20) {
    *chacha_ = key.chacha();
    return;
  }
  *aes_ = key.aes();
  const auto list = cpu::aes_lanes_list();
  if (list.empty()) return;
  lanes_ = new AesLanes{*list.front(), {}};
  lanes_->code.make_key(key.key, nullptr, key_len, *lanes_->key);
}

Lines::~Lines() { delete lanes_; }

void Lines::make(std::uint64_t line, std::size_t count, std::uint8_t* out) const {
  if (cipher_ == StreamCipher::chacha20) return make_chacha(*chacha_, first_block_ + line, count, out);
  const std::uint64_t n = first_block_ + 4 * line;
  if (lanes_ == nullptr) {
    for (std::uint64_t i = 0; i < 4 * count; ++i) {
      std::uint32_t words[4];
      aes_->block(n + i, words);
      chacha::store_words(out + 16 * i, words, 4);
    }
    return;
  }
  std::uint8_t counter[16];
  store_be64(counter, aes_->number);
  store_be64(counter + 8, n);
  std::memset(out, 0, line_len * count);
  lanes_->code.ctr(*lanes_->key, counter, out, out, line_len * count, false);
}

void fill_by_threads(const HostFill& fill) {
  if (fill.count == 0) return;
  const Lines lines(fill.key, fill.attempt);
  const HostCode& code = best_code();
  const std::size_t width = fill.distribution.width();
  ThreadPool::instance().parallel_for(fill.count, grain_len / width, [&](std::size_t begin, std::size_t end) {
    code.fill_part(fill, lines, begin, end);
  });
}

void fill_by_definition(const HostFill& fill) {
  if (fill.key.cipher == StreamCipher::chacha20) {
    const Secret<ChaChaStream> stream(fill.key.chacha());
    visit(fill.distribution, ByDefinition<ChaChaStream>{fill, *stream});
  } else {
    const Secret<AesStream> stream(fill.key.aes());
    visit(fill.distribution, ByDefinition<AesStream>{fill, *stream});
  }
}

}  // namespace warpcipher::random
