// SPDX-License-Identifier: Apache-2.0
#include "prg/lanes.hpp"

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

}  // namespace

constinit const Code definition = code_by_passes<&expand_by_definition>;

std::span<const Code* const> codes_of(Generator generator) {
  if (is_aes(generator)) return runnable<&Lanes::aes>();
  return runnable<&Lanes::chacha>();
}

std::span<const Accumulate> accumulate_codes() { return runnable<&Lanes::accumulate>(); }

const Code& code_of(Generator generator) {
  const auto found = codes_of(generator);
  return found.empty() ? definition : *found.front();
}

}  // namespace warpcipher::prg
