// SPDX-License-Identifier: Apache-2.0
// The kernels that fill arrays: of ChaCha20 one for each distribution; of AES one of key stream, and for each
// distribution one that transforms key stream.
#pragma once

#include <cstdint>

#include "engine/stream.hpp"
#include "random/cuda/array.cuh"
#include "random/distribution.hpp"
#include "random/stream.hpp"

namespace warpcipher::random::cuda {

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

// As visit(), but for integers of the whole range and bytes, which are Plain; also calls visitor with the elements.
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
