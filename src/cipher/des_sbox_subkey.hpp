// SPDX-License-Identifier: Apache-2.0
// Subkeys of DES in the form that GPUs keep: eight bytes a round, one for each S-box, so that a table lookup finds its
// six bits of the subkey in a byte, and a lane that makes masks of them (des_bitslice.hpp) in one load.
//
//   byte         3     2     1     0
//   odd          S1    S3    S5    S7        each the six bits of the subkey that its S-box takes, the first bit
//   even         S2    S4    S6    S8        in place 5; bits 6 and 7 are zero
#pragma once

#include "cipher/des_bitslice.hpp"

namespace warpcipher::des {

struct SboxSubkey {
  std::uint32_t odd;
  std::uint32_t even;
};

namespace detail {

// How far the halves of the key have turned by round r, from 0.
WARPCIPHER_HD constexpr std::uint32_t rotations_before(std::uint32_t r) {
  std::uint32_t doubled = bitslice::detail::make_double_rotations() & ((2u << r) - 1);
  std::uint32_t turned = r + 1;
  for (; doubled != 0; doubled &= doubled - 1) ++turned;
  return turned;
}

template <std::size_t Parity, std::size_t... I>
WARPCIPHER_INLINE constexpr std::uint32_t pack_boxes(std::uint64_t cd, std::index_sequence<I...>) {
  std::uint32_t packed = 0;
  ((packed |=
    static_cast<std::uint32_t>(
        cd >> std::integral_constant<int, 56 - permuted_choice_2[12 * (I / 6) + 6 * Parity + I % 6]>::value & 1u)
    << (29 - 8 * (I / 6) - I % 6)),
   ...);
  return packed;
}

}  // namespace detail

// The subkey of a round, counted from 0 through all passes in the order of use. key_len: bytes, 8, 16 or 24. Constant
// time: bits move to places that do not depend on them.
WARPCIPHER_HD constexpr SboxSubkey sbox_subkey(const std::uint8_t* key, std::size_t key_len, bool decrypt,
                                        std::uint32_t round) {
  const bitslice::Pass pass = bitslice::pass_of(key_len, decrypt, static_cast<int>(round / bitslice::rounds));
  const std::uint32_t in_pass = round % bitslice::rounds;
  const std::uint32_t turned = detail::rotations_before(pass.backwards ? bitslice::rounds - 1 - in_pass : in_pass);
  const std::uint64_t bits = load_be64(key + pass.key_offset);
  const std::uint32_t c = bitslice::detail::select_half<0>(bits, std::make_index_sequence<28>{});
  const std::uint32_t d = bitslice::detail::select_half<1>(bits, std::make_index_sequence<28>{});
  const std::uint64_t cd =
      std::uint64_t{bitslice::detail::rotate_left28(c, turned)} << 28 | bitslice::detail::rotate_left28(d, turned);
  return {detail::pack_boxes<0>(cd, std::make_index_sequence<24>{}),
          detail::pack_boxes<1>(cd, std::make_index_sequence<24>{})};
}

// The mask of bit `bit` of a subkey, 0 to 47: all ones or zero.
WARPCIPHER_INLINE constexpr std::uint32_t mask_of_bit(const SboxSubkey& subkey, std::uint32_t bit) {
  const std::uint32_t box = bit / 6;
  const std::uint32_t word = box % 2 == 0 ? subkey.odd : subkey.even;
  return 0u - (word >> (29 - 8 * (box / 2) - bit % 6) & 1u);
}

}  // namespace warpcipher::des
