// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/gcm_constants.hpp"

#include "core/wipe.hpp"
#include "engine/cpu/piece.hpp"

namespace warpcipher {
namespace {

// a^(2^128 - 2) = 1 / a (Fermat): the product of the squares a^2, a^4, ... a^(2^127).
gf128::Element invert(gf128::Element a) {
  gf128::Element result = gf128::gcm_one;
  for (int i = 1; i < 128; ++i) {
    a = gf128::gcm_square(a);
    result = gf128::gcm_multiply(result, a);
  }
  return result;
}

}  // namespace

GcmConstants make_gcm_constants(const std::function<gf128::Element(gf128::Element)>& encrypt) {
  Secret<GcmConstants> constants;
  constants->hash_key = encrypt({0, 0});
  constants->inverse = invert(constants->hash_key);
  constants->tile_power = gf128::gcm_power(constants->hash_key, cpu_tile_units);
  constants->hash_only_mask = encrypt({0, 1});
  return *constants;
}

gf128::Element length_block(std::uint64_t first_bytes, std::uint64_t second_bytes) {
  return {8 * first_bytes, 8 * second_bytes};
}

gf128::Element solve_iv(const GcmConstants& constants, gf128::Element counter0) {
  const gf128::Element hashed = gf128::gcm_multiply(counter0, constants.inverse);
  return gf128::gcm_multiply(gf128::add(hashed, length_block(0, 16)), constants.inverse);
}

gf128::Element advance_counter(gf128::Element counter, std::uint64_t n) {
  const std::uint64_t high_part = counter.low & 0xffffffff00000000u;
  return {counter.high, high_part | ((counter.low + n) & 0xffffffffu)};
}

}  // namespace warpcipher
