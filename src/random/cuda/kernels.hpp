// SPDX-License-Identifier: Apache-2.0
// The kernels that fill arrays: of ChaCha20 one for each distribution; of AES one of key stream, and for each
// distribution one that transforms key stream.
#pragma once

#include <cstdint>

#include "engine/cuda/runtime/intrinsics.cuh"
#include "engine/stream.hpp"
#include "random/distribution.hpp"
#include "random/distributions.hpp"
#include "random/stream.hpp"

namespace warpcipher::random::cuda {

// A lane's work on a line of 64 bytes of key stream: the distribution, and the stores. All in registers: every
// loop is unrolled.

// Elements [first, last) of the stream, counted in words of the distribution from the stream's beginning.
struct Elements {
  std::uint8_t* data;  // of element `first`
  std::uint64_t first, last;
};

// The stream itself, each word with `pattern` added: integers of the whole range and bytes, of any width.
template <bool HasPattern>
struct Plain {
  using Word = std::uint8_t;
  using Value = std::uint8_t;

  std::uint32_t pattern[2];
};

// Number i of `words` as T, whichever its width.
template <class T>
__device__ __forceinline__ T value_at(const std::uint32_t* words, int i) {
  if constexpr (sizeof(T) == 8) {
    return std::uint64_t{words[2 * i + 1]} << 32 | words[2 * i];
  } else {
    constexpr int of_word = 4 / sizeof(T);
    return static_cast<T>(words[i / of_word] >> 8 * sizeof(T) * (i % of_word));
  }
}

// The same, to be written. `words` is zero before.
template <class T>
__device__ __forceinline__ void put_value(std::uint32_t* words, int i, T value) {
  if constexpr (sizeof(T) == 8) {
    words[2 * i] = static_cast<std::uint32_t>(value);
    words[2 * i + 1] = static_cast<std::uint32_t>(value >> 32);
  } else {
    constexpr int of_word = 4 / sizeof(T);
    words[i / of_word] |= static_cast<std::uint32_t>(value) << 8 * sizeof(T) * (i % of_word);
  }
}

template <class F>
inline constexpr int items_of_line = line_len / sizeof(typename F::Word);

// The 32-bit words of a line's values.
template <class F>
inline constexpr int value_words = items_of_line<F> * sizeof(typename F::Value) / 4;

// The values of line `line`. stream: the source of further words.
template <class F, class Stream>
__device__ __forceinline__ void make_values(const F& function, const Stream& stream, std::uint64_t line,
                                            const std::uint32_t (&x)[16], std::uint32_t (&values)[value_words<F>]) {
  using Word = typename F::Word;
#pragma unroll
  for (int i = 0; i < value_words<F>; ++i) values[i] = 0;
#pragma unroll
  for (int i = 0; i < items_of_line<F>; i += F::group) {
    Word words[F::group];
    typename F::Value made[F::group];
#pragma unroll
    for (int k = 0; k < F::group; ++k) words[k] = value_at<Word>(x, i + k);
    if (function(words, made)) {
      if constexpr (has_rejections<F>) {
        function.finish(words, made, FurtherWords<Stream>(stream, line * line_len + i * sizeof(Word)));
      }
    }
#pragma unroll
    for (int k = 0; k < F::group; ++k) put_value(values, i + k, made[k]);
  }
}

template <bool HasPattern, class Stream>
__device__ __forceinline__ void make_values(const Plain<HasPattern>& function, const Stream&, std::uint64_t,
                                            const std::uint32_t (&x)[16], std::uint32_t (&values)[16]) {
#pragma unroll
  for (int i = 0; i < 16; ++i) values[i] = HasPattern ? x[i] ^ function.pattern[i % 2] : x[i];
}

// Stores a line: whole and aligned in units of 16 bytes, else element by element.
template <class F>
__device__ __forceinline__ void store_line(const Elements& elements, std::uint64_t line,
                                           const std::uint32_t (&values)[value_words<F>]) {
  using Value = typename F::Value;
  constexpr int count = items_of_line<F>, words = value_words<F>;
  const std::uint64_t begin = line * count;
  const bool is_whole = begin >= elements.first && begin + count <= elements.last;
  // Of element `begin`: before the array where that begins later.
  std::uint8_t* const out =
      elements.data + static_cast<std::int64_t>(begin - elements.first) * static_cast<std::int64_t>(sizeof(Value));
  const auto address = reinterpret_cast<std::uintptr_t>(out);
  if (is_whole && address % 16 == 0) {
    static_assert(words % 4 == 0, "lines are stored 16 bytes at a time");
#pragma unroll
    for (int i = 0; i < words; i += 4) {
      reinterpret_cast<uint4*>(out)[i / 4] = make_uint4(values[i], values[i + 1], values[i + 2], values[i + 3]);
    }
  } else if (is_whole && address % 4 == 0) {
#pragma unroll
    for (int i = 0; i < words; ++i) reinterpret_cast<std::uint32_t*>(out)[i] = values[i];
  } else {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (begin + i >= elements.first && begin + i < elements.last) {
        reinterpret_cast<Value*>(out)[i] = value_at<Value>(values, i);
      }
    }
  }
}

struct LineRange {
  std::uint64_t begin, end;
};

struct ArrayFill {
  const Distribution& distribution;
  std::uint8_t* data;
  std::uint64_t first, last;  // elements, counted from the stream's beginning
  LineRange lines;            // that have them
  std::uint32_t attempt;
  std::uint64_t least_of_hybrid, most_of_piece;  // lines (fill.hpp)
};

void fill_chacha(const StreamKey& key, const ArrayFill& fill, Stream stream);
void fill_aes(const StreamKey& key, const ArrayFill& fill, Stream stream);

template <class F>
inline constexpr bool is_plain = false;
template <class T>
inline constexpr bool is_plain<Full<T>> = true;

// As visit(), except for integers of the whole range and bytes, which are Plain; also calls visitor with the elements.
template <class Visitor>
void visit_on_device(const ArrayFill& fill, const Visitor& visitor) {
  const Distribution& d = fill.distribution;
  const std::size_t len = d.item_len();
  const bool is_full = d.kind == Kind::integers && d.span == (len == 8 ? 0 : std::uint64_t{1} << 8 * len % 64);
  if (d.kind != Kind::bytes && !is_full) {
    const Elements elements{fill.data, fill.first, fill.last};
    return visit(d, [&](const auto& function) {
      if constexpr (!is_plain<std::decay_t<decltype(function)>>) visitor(function, elements);
    });
  }
  const Elements elements{fill.data, fill.first * len, fill.last * len};
  if (d.low == 0) return visitor(Plain<false>{}, elements);
  std::uint64_t pattern = 0;
  for (std::size_t at = 0; at < 8; at += len) {
    pattern |= (len == 8 ? d.low : d.low & ((std::uint64_t{1} << 8 * len) - 1)) << 8 * at;
  }
  visitor(Plain<true>{{static_cast<std::uint32_t>(pattern), static_cast<std::uint32_t>(pattern >> 32)}}, elements);
}

}  // namespace warpcipher::random::cuda
