// SPDX-License-Identifier: Apache-2.0
// A part of an array from lines of key stream, some lines at a time in a cache. Everything is in an unnamed namespace,
// or inlined, for the reason that cipher/simd/128.hpp gives.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/wipe.hpp"
#include "random/host.hpp"

namespace warpcipher::random {
namespace {

constexpr std::size_t lines_at_once = 128;

// If one of this many groups rejects its word, all of them take the slow way.
constexpr std::uint64_t groups_at_once = 64;

// A value at any address.
template <class Value>
struct [[gnu::packed, gnu::may_alias]] Unaligned {
  Value value;
};

// Words and values are arrays of one or two: written out, for a loop inside keeps compilers from making vectors.
template <class F>
[[gnu::always_inline]] inline bool run_group(const F& function, const typename F::Word* words,
                                             typename F::Value (&made)[F::group]) {
  if constexpr (F::group == 1) {
    const typename F::Word of_group[1] = {words[0]};
    return function(of_group, made);
  } else {
    const typename F::Word of_group[2] = {words[0], words[1]};
    return function(of_group, made);
  }
}

// The rare rest of a group whose word was rejected. It takes functions of other headers in: their copies of this file
// must not be the ones that the linker keeps.
template <class F, class Stream>
[[gnu::noinline, gnu::flatten]] void finish_group(const F& function, const Stream& stream, std::uint64_t first,
                                                  typename F::Word word, typename F::Value (&made)[F::group]) {
  const typename F::Word of_group[1] = {word};
  function.finish(of_group, made, FurtherWords<Stream>(stream, first * sizeof(word)));
}

// Elements [begin, end) of the stream, counted from its beginning, of which `words` has [origin, ...), origin even.
template <class F, class Stream>
void transform(const F& function, const Stream& stream, const typename F::Word* words, std::uint64_t origin,
               std::uint64_t begin, std::uint64_t end, std::uint8_t* out) {
  using Word = typename F::Word;
  using Value = typename F::Value;
  constexpr std::uint64_t group = F::group;
  auto* const values = reinterpret_cast<Unaligned<Value>*>(out);
  const auto run_one = [&](std::uint64_t first, Value(&made)[group]) {
    if (run_group(function, words + (first - origin), made)) {
      if constexpr (has_rejections<F>) finish_group(function, stream, first, words[first - origin], made);
    }
  };
  std::uint64_t at = begin;
  Value made[group];
  if (at % group != 0) {
    run_one(at - 1, made);
    values[0].value = made[group - 1];
    ++at;
  }
  while (end - at >= group) {
    const std::uint64_t groups = std::min((end - at) / group, groups_at_once);
    const Word* const from = words + (at - origin);
    Unaligned<Value>* const to = values + (at - begin);
    bool is_rejected = false;
    for (std::uint64_t i = 0; i < groups; ++i) {
      Value of_group[group];
      is_rejected |= run_group(function, from + group * i, of_group);
      to[group * i].value = of_group[0];
      if constexpr (group == 2) to[group * i + 1].value = of_group[1];
    }
    if (is_rejected) {
      for (std::uint64_t i = 0; i < groups; ++i) {
        run_one(at + i * group, made);
        to[group * i].value = made[0];
      }
    }
    at += groups * group;
  }
  if (at < end) {
    run_one(at, made);
    values[at - begin].value = made[0];
  }
}

// Whole lines go to the caller's memory at once.
void copy_bytes(const Lines& lines, std::uint64_t begin, std::uint64_t end, std::uint8_t* out) {
  alignas(64) std::uint8_t line[line_len];
  while (begin < end) {
    const std::uint64_t offset = begin % line_len, left = end - begin;
    std::uint64_t len = std::min(left, line_len - offset);
    if (offset == 0 && left >= line_len) {
      len = left / line_len * line_len;
      lines.make(begin / line_len, len / line_len, out);
    } else {
      lines.make(begin / line_len, 1, line);
      std::memcpy(out, line + offset, len);
    }
    begin += len;
    out += len;
  }
  secure_wipe(line, sizeof line);
}

struct PartFunction {
  const HostFill& fill;
  const Lines& lines;
  std::uint64_t begin, end;

  template <class F>
  void operator()(const F& function) const {
    using Word = typename F::Word;
    constexpr std::uint64_t of_line = line_len / sizeof(Word);
    const std::uint64_t first = fill.position / sizeof(Word) + begin, last = first + (end - begin);
    std::uint8_t* out = fill.data + begin * sizeof(typename F::Value);
    if (fill.distribution.kind == Kind::bytes) return copy_bytes(lines, first, last, out);
    alignas(64) Word words[lines_at_once * of_line];
    lines.visit_stream([&](const auto& stream) {
      for (std::uint64_t at = first; at < last;) {
        const std::uint64_t line = at / of_line;
        const std::uint64_t count = std::min<std::uint64_t>(lines_at_once, (last - 1) / of_line + 1 - line);
        const std::uint64_t stop = std::min(last, (line + count) * of_line);
        lines.make(line, count, reinterpret_cast<std::uint8_t*>(words));
        transform(function, stream, words, line * of_line, at, stop, out);
        out += (stop - at) * sizeof(typename F::Value);
        at = stop;
      }
    });
    secure_wipe(words, sizeof words);
  }
};

void fill_part(const HostFill& fill, const Lines& lines, std::uint64_t begin, std::uint64_t end) {
  visit(fill.distribution, PartFunction{fill, lines, begin, end});
}

}  // namespace
}  // namespace warpcipher::random
