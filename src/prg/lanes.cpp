// SPDX-License-Identifier: Apache-2.0
#include "prg/lanes.hpp"

#include "core/fork.hpp"
#include "core/processor.hpp"
#include "core/wipe.hpp"
#include "prg/node_passes.hpp"

namespace warpcipher::prg {
namespace {

void expand_by_definition(Generator generator, const std::uint8_t* seeds, std::size_t count, int first, int children,
                          std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint8_t seed[block_len];  // `out` may be there
    std::memcpy(seed, seeds + block_len * i, block_len);
    for (int c = 0; c < children; ++c) {
      make_child(generator, seed, first + c,
                 out + block_len * (i * static_cast<std::size_t>(children) + static_cast<std::size_t>(c)));
    }
    secure_wipe(seed, sizeof seed);
  }
}

// The fastest first.
constexpr const Lanes* all[] = {
#if defined(__x86_64__)
    &lanes_vaes512, &lanes_vaes, &lanes_aesni, &lanes_avx512, &lanes_avx2,
#endif
    &lanes_baseline};

template <auto Family>
auto list() {
  static constinit FirstUse<decltype(runnable<Family>(std::span(all)))> found;
  return std::span(found.get([] { return runnable<Family>(std::span(all)); }));
}

}  // namespace

constinit const Code definition = code_by_passes<&expand_by_definition>;

std::span<const Code* const> codes_of(Generator generator) {
  if (is_aes(generator)) return list<&Lanes::aes>();
  return list<&Lanes::chacha>();
}

std::span<const Accumulate> accumulate_codes() { return list<&Lanes::accumulate>(); }

const Code& code_of(Generator generator) {
  const auto found = codes_of(generator);
  return found.empty() ? definition : *found.front();
}

}  // namespace warpcipher::prg
