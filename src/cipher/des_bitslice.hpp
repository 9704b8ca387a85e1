// SPDX-License-Identifier: Apache-2.0
// Bitsliced DES (Biham 1997): as many blocks at once as a word has bits, one word for each bit of the block. The
// S-boxes are logic, the permutations only names, so it is fast and its time depends on nothing secret. Word is
// std::uint32_t on a GPU; on the host std::uint64_t or a GCC vector of 64-bit elements.
//
// A block becomes planes: plane m holds bit m of every block read as a little-endian 64-bit number, that is bit m % 8
// of byte m / 8. No byte is swapped; FIPS 46-3's bit i (from 1, most significant first) is plane (i - 1) ^ 7:
//
//   FIPS 46-3   1  2  3  4  5  6  7  8 |  9 10 11 12 13 14 15 16 | ...
//   plane       7  6  5  4  3  2  1  0 | 15 14 13 12 11 10  9  8 | ...
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "cipher/circuits.hpp"
#include "cipher/des.hpp"
#include "core/bytes.hpp"

namespace warpcipher::des::bitslice {

inline constexpr int rounds = 16;
inline constexpr int subkey_bits = 48;
inline constexpr int schedule_bits = rounds * subkey_bits;  // of one pass, and so of single DES

// --- transposition ---------------------------------------------------------------------------------------------------

namespace detail {

template <class Word>
using Element = std::conditional_t<sizeof(Word) == 4, std::uint32_t, std::uint64_t>;

// Swaps the high half of each 2 Step bits of `a` with the low half of the same bits of `b`.
template <int Step, class Word>
WARPCIPHER_INLINE constexpr void exchange(Word& a, Word& b) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(Word) == 4 && Step >= 8) {  // whole bytes: two permutes
    if (!std::is_constant_evaluated()) {
      const std::uint32_t low = __byte_perm(a, b, Step == 16 ? 0x5410 : 0x6240);
      b = __byte_perm(a, b, Step == 16 ? 0x7632 : 0x7351);
      a = low;
      return;
    }
  }
#endif
  constexpr Element<Word> step = Step;
  constexpr Element<Word> low_halves = static_cast<Element<Word>>(~Element<Word>{0}) / ((Element<Word>{1} << Step) + 1);
  const Word difference = ((a >> step) ^ b) & low_halves;
  b ^= difference;
  a ^= difference << step;
}

template <int Step, int Count, class Word>
WARPCIPHER_INLINE constexpr void transpose_steps(Word* words) {
  WARPCIPHER_UNROLL
  for (int base = 0; base < Count; base += 2 * Step) {
    WARPCIPHER_UNROLL
    for (int k = base; k < base + Step; ++k) exchange<Step>(words[k], words[k + Step]);
  }
  if constexpr (Step > 1) transpose_steps<Step / 2, Count>(words);
}

}  // namespace detail

// Blocks to planes and back (it is its own inverse). Word of 64-bit elements: before, element e of words[j] is a block;
// after, bit j of element e of words[m] is bit m of that block. std::uint32_t: before, words[j] is the first and
// words[32 + j] the second half of block j, j from 0 to 31; after, bit j of words[m] is bit m of block j.
template <class Word>
WARPCIPHER_INLINE constexpr void transpose(Word (&words)[64]) {
  if constexpr (sizeof(Word) == 4) {
    detail::transpose_steps<16, 64>(words);
  } else {
    detail::transpose_steps<32, 64>(words);
  }
}

// --- keys ------------------------------------------------------------------------------------------------------------

// The plane of a key or block bit (numbered from 1 as in FIPS 46-3).
WARPCIPHER_HD constexpr int plane_of_bit(int bit) {
  return (bit - 1) ^ 7;
}

namespace detail {

constexpr std::array<std::uint8_t, schedule_bits> make_subkey_positions() {
  std::array<std::uint8_t, schedule_bits> positions{};
  unsigned turned = 0;
  for (std::size_t r = 0; r < rounds; ++r) {
    turned += key_rotations[r];
    for (std::size_t i = 0; i < subkey_bits; ++i) {
      const unsigned cd = permuted_choice_2[i] - 1u;
      positions[subkey_bits * r + i] = static_cast<std::uint8_t>(cd / 28 * 28 + (cd % 28 + turned) % 28);
    }
  }
  return positions;
}

}  // namespace detail

// Bit i of the subkey of round r (both from 0) is bit subkey_positions[48 r + i] of PC-1's output (from 0), 0 to 55.
inline constexpr std::array<std::uint8_t, schedule_bits> subkey_positions = detail::make_subkey_positions();

// The key plane of a bit of PC-1's output.
WARPCIPHER_HD constexpr int plane_of_position(int position) {
  return plane_of_bit(permuted_choice_1[static_cast<std::size_t>(position)]);
}

namespace detail {

constexpr std::array<std::uint8_t, 4 * schedule_bits> make_subkey_planes() {
  std::array<std::uint8_t, 4 * schedule_bits> planes{};
  for (std::size_t pass = 0; pass < 4; ++pass) {
    for (std::size_t r = 0; r < rounds; ++r) {
      const std::size_t row = rounds * pass + (pass % 2 == 0 ? r : rounds - 1 - r);
      for (std::size_t i = 0; i < subkey_bits; ++i) {
        planes[subkey_bits * row + i] =
            static_cast<std::uint8_t>(plane_of_position(subkey_positions[subkey_bits * r + i]));
      }
    }
  }
  return planes;
}

}  // namespace detail

// The key plane of each subkey bit, in the order of use, for four passes: forwards, backwards, forwards, backwards.
// Encryption starts at the first, decryption (of DES and triple DES alike) at the second, `schedule_bits` further. For
// PlaneSchedule on the host; a GPU reads a copy in its own memory.
inline constexpr std::array<std::uint8_t, 4 * schedule_bits> subkey_planes = detail::make_subkey_planes();

// One key for all blocks: for each pass 768 masks, all ones or all zeros, 48 a round in the order of use, from
// expand_masks. Mask: the Word, or the integer its elements are made of, which is then broadcast.
template <class Mask>
struct MaskSchedule {
  struct Subkey {
    const Mask* masks;
    template <int I>
    WARPCIPHER_INLINE constexpr Mask bit() const {
      return masks[I];
    }
  };

  const Mask* masks;

  WARPCIPHER_INLINE constexpr Subkey subkey(int round) const { return {masks + subkey_bits * round}; }
};

// A key for each block: for each pass in the order of use the 64 planes of the 8 key bytes it takes (`transpose`;
// parity planes are not read), and subkey_planes from the pass to start with.
template <class Word>
struct PlaneSchedule {
  struct Subkey {
    const Word* planes;
    const std::uint8_t* indices;
    template <int I>
    WARPCIPHER_INLINE constexpr Word bit() const {
      return planes[indices[I]];
    }
  };

  const Word* planes;
  const std::uint8_t* indices;

  WARPCIPHER_INLINE constexpr Subkey subkey(int round) const {
    return {planes + 64 * (round / rounds), indices + subkey_bits * round};
  }
};

namespace detail {

template <std::size_t Half, std::size_t... I>
WARPCIPHER_INLINE constexpr std::uint32_t select_half(std::uint64_t key, std::index_sequence<I...>) {
  std::uint32_t half = 0;
  ((half = half << 1 | static_cast<std::uint32_t>(
                           key >> std::integral_constant<int, 64 - permuted_choice_1[28 * Half + I]>::value & 1u)),
   ...);
  return half;
}

template <class Mask, std::size_t... I>
WARPCIPHER_INLINE constexpr void select_subkey(Mask* masks, std::uint64_t cd, std::index_sequence<I...>) {
  ((masks[I] = static_cast<Mask>(
        Mask{0} - static_cast<Mask>(cd >> std::integral_constant<int, 56 - permuted_choice_2[I]>::value & 1u))),
   ...);
}

constexpr std::uint32_t make_double_rotations() {
  std::uint32_t bits = 0;
  for (std::size_t r = 0; r < rounds; ++r) bits |= (key_rotations[r] - 1u) << r;
  return bits;
}

WARPCIPHER_INLINE constexpr std::uint32_t rotate_left28(std::uint32_t x, std::uint32_t n) {
  return (x << n | x >> (28 - n)) & 0x0fffffffu;
}

}  // namespace detail

// Work of a pass (from 0): which 8 bytes of the key it takes (as an offset) and whether it runs backwards. One pass:
// DES. Three: triple DES (SP 800-67), encryption E(K1) D(K2) E(K3), decryption D(K3) E(K2) D(K1), where a key of 16
// bytes means K3 = K1.
struct Pass {
  std::size_t key_offset;
  bool backwards;
};

WARPCIPHER_HD constexpr int pass_count(std::size_t key_len) { return key_len == 8 ? 1 : 3; }

WARPCIPHER_HD constexpr Pass pass_of(std::size_t key_len, bool decrypt, int pass) {
  const int key = decrypt ? pass_count(key_len) - 1 - pass : pass;
  return {8 * static_cast<std::size_t>(key) % key_len, decrypt != (key == 1)};
}

// The masks of one pass: 768, rounds in the order of encryption or backwards. key: 8 bytes, parity bits ignored. Mask:
// std::uint32_t or std::uint64_t. Constant time.
template <class Mask>
WARPCIPHER_HD constexpr void expand_masks(Mask* masks, const std::uint8_t* key, bool backwards) {
  constexpr std::uint32_t double_rotations = detail::make_double_rotations();
  const std::uint64_t key_bits = load_be64(key);
  std::uint32_t c = detail::select_half<0>(key_bits, std::make_index_sequence<28>{});
  std::uint32_t d = detail::select_half<1>(key_bits, std::make_index_sequence<28>{});
  for (int r = 0; r < rounds; ++r) {
    const std::uint32_t turn = 1u + (double_rotations >> r & 1u);
    c = detail::rotate_left28(c, turn);
    d = detail::rotate_left28(d, turn);
    detail::select_subkey(masks + subkey_bits * (backwards ? rounds - 1 - r : r), std::uint64_t{c} << 28 | d,
                          std::make_index_sequence<subkey_bits>{});
  }
}

// The masks of all passes: 768 pass_count(key_len), in the order of use. key_len: bytes, 8, 16 or 24. Constant time.
template <class Mask>
WARPCIPHER_HD constexpr void expand_key(Mask* masks, const std::uint8_t* key, std::size_t key_len, bool decrypt) {
  for (int i = 0; i < pass_count(key_len); ++i) {
    const Pass pass = pass_of(key_len, decrypt, i);
    expand_masks(masks + schedule_bits * i, key + pass.key_offset, pass.backwards);
  }
}

// --- the cipher ------------------------------------------------------------------------------------------------------

namespace detail {

// Where S-box output bit `bit` (from 0, S1 first) arrives: P backwards.
constexpr int destination(std::size_t bit) {
  for (std::size_t i = 0; i < round_permutation.size(); ++i) {
    if (round_permutation[i] == bit + 1) return static_cast<int>(i);
  }
  return -1;
}

template <int Box, class Word, class Subkey, std::size_t... In, std::size_t... Out>
WARPCIPHER_INLINE constexpr void add_sbox(Word (&left)[32], const Word (&right)[32], const Subkey& subkey,
                               std::index_sequence<In...>, std::index_sequence<Out...>) {
  constexpr std::size_t box = Box - 1;
  const Word in[6] = {(right[std::integral_constant<int, expansion[6 * box + In] - 1>::value] ^
                       subkey.template bit<static_cast<int>(6 * box + In)>())...};
  Word out[4];
  circuits::run<circuits::DesSbox<Box>>(in, out);
  ((left[std::integral_constant<int, destination(4 * box + Out)>::value] ^= out[Out]), ...);
}

template <class Word, std::size_t... I>
WARPCIPHER_INLINE constexpr void split(Word (&left)[32], Word (&right)[32], const Word (&planes)[64], std::index_sequence<I...>) {
  ((left[I] = planes[std::integral_constant<int, plane_of_bit(initial_permutation[I])>::value]), ...);
  ((right[I] = planes[std::integral_constant<int, plane_of_bit(initial_permutation[32 + I])>::value]), ...);
}

template <class Word, std::size_t... I>
WARPCIPHER_INLINE constexpr void join(Word (&planes)[64], const Word (&left)[32], const Word (&right)[32],
                           std::index_sequence<I...>) {
  ((planes[std::integral_constant<int, plane_of_bit(initial_permutation[I])>::value] = left[I]), ...);
  ((planes[std::integral_constant<int, plane_of_bit(initial_permutation[32 + I])>::value] = right[I]), ...);
}

}  // namespace detail

// left ^= the bits of f(right, subkey) that come from S-box `Box`, 1 to 8. left[i] and right[i] hold bit i + 1 of the
// half blocks. subkey.bit<i>() gives bit i of the subkey, from 0.
template <int Box, class Word, class Subkey>
WARPCIPHER_INLINE constexpr void add_sbox(Word (&left)[32], const Word (&right)[32], const Subkey& subkey) {
  detail::add_sbox<Box>(left, right, subkey, std::make_index_sequence<6>{}, std::make_index_sequence<4>{});
}

// left ^= f(right, subkey).
template <class Word, class Subkey>
WARPCIPHER_INLINE constexpr void add_round(Word (&left)[32], const Word (&right)[32], const Subkey& subkey) {
  add_sbox<1>(left, right, subkey);
  add_sbox<2>(left, right, subkey);
  add_sbox<3>(left, right, subkey);
  add_sbox<4>(left, right, subkey);
  add_sbox<5>(left, right, subkey);
  add_sbox<6>(left, right, subkey);
  add_sbox<7>(left, right, subkey);
  add_sbox<8>(left, right, subkey);
}

// IP: planes to half blocks.
template <class Word>
WARPCIPHER_INLINE constexpr void split(Word (&left)[32], Word (&right)[32], const Word (&planes)[64]) {
  detail::split(left, right, planes, std::make_index_sequence<32>{});
}

// IP's inverse: half blocks to planes.
template <class Word>
WARPCIPHER_INLINE constexpr void join(Word (&planes)[64], const Word (&left)[32], const Word (&right)[32]) {
  detail::join(planes, left, right, std::make_index_sequence<32>{});
}

// DES (passes 1) or triple DES (passes 3), in place. schedule: a MaskSchedule or a PlaneSchedule; its subkey(n) serves
// round n, counted through all passes. Between passes IP's inverse and IP cancel; the exchange of the halves remains.
template <class Word, class Schedule>
WARPCIPHER_INLINE constexpr void transform(Word (&planes)[64], const Schedule& schedule, int passes) {
  Word left[32];
  Word right[32];
  split(left, right, planes);
  for (int first = 0; first < rounds * passes; first += rounds) {
    // Two rounds a turn, so that the halves change places by name; more would outgrow the instruction cache.
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (int r = first; r < first + rounds; r += 2) {
      add_round(left, right, schedule.subkey(r));
      add_round(right, left, schedule.subkey(r + 1));
    }
    WARPCIPHER_UNROLL
    for (int i = 0; i < 32; ++i) {
      const Word half = left[i];
      left[i] = right[i];
      right[i] = half;
    }
  }
  join(planes, left, right);
}

}  // namespace warpcipher::des::bitslice

namespace warpcipher::des {

// Subkeys of DES in the form that GPUs keep: eight bytes a round, one for each S-box, so that a table lookup finds its
// six bits of the subkey in a byte, and a lane that makes masks of them (des_bitslice.hpp) in one load.
//
//   byte         3     2     1     0
//   odd          S1    S3    S5    S7        each the six bits of the subkey that its S-box takes, the first bit
//   even         S2    S4    S6    S8        in place 5; bits 6 and 7 are zero

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
