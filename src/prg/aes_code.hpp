// SPDX-License-Identifier: Apache-2.0
// Generators of AES, a seed in each block of a vector, with eight vectors of children in flight. All of it is in an
// unnamed namespace, for the reason that cipher/simd/128.hpp gives.
#pragma once

#include "engine/cpu/aes_rounds.hpp"
#include "prg/lanes.hpp"

namespace warpcipher::prg {
namespace {

template <class Simd>
struct AesCode {
  using Vector = typename Simd::Vector;
  using Words [[gnu::vector_size(sizeof(Vector)), gnu::may_alias]] = std::uint32_t;
  using Longs [[gnu::vector_size(sizeof(Vector)), gnu::may_alias]] = std::uint64_t;
  static constexpr std::size_t vectors = 4;
  static constexpr std::size_t vector_len = 16 * Simd::blocks;
  static constexpr std::size_t group = vectors * Simd::blocks;  // seeds
  using Seeds = Vector[vectors];

  static Vector of_block(std::uint64_t low, std::uint64_t high) {
    return Simd::from_block(_mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low)));
  }

  // Children `first` and, of two, the next.
  template <Generator G, int Children>
  [[gnu::always_inline]] static inline void make(const Seeds& seeds, int first, Seeds (&out)[Children]) {
    if constexpr (G == Generator::aes128_keyed) {
      make_keyed(seeds, first, out);
    } else if (is_correlated(G) && first <= 1 && first + Children > 1) {  // child 1 is among them
      Seeds hashes[1];
      make<Generator::aes128_mmo, 1>(seeds, 0, hashes);
      for (int c = 0; c < Children; ++c) {
        if (first + c == 2) {
          make<Generator::aes128_mmo, 1>(seeds, 2, hashes);
        }
        for (std::size_t v = 0; v < vectors; ++v) {
          out[c][v] = first + c == 1 ? hashes[0][v] ^ seeds[v] : hashes[0][v];
        }
      }
    } else {
      Seeds turned;
      const Vector high = of_block(0, ~std::uint64_t{0});
      for (std::size_t v = 0; v < vectors; ++v) turned[v] = Simd::swap_halves(seeds[v]) ^ (seeds[v] & high);
      const auto key_of = [&](int child, int round) {
        const auto* const words = fixed_schedules.words[first + child] + 4 * round;
        return Simd::from_block(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words)));
      };
      for (int c = 0; c < Children; ++c) {
        const Vector key = key_of(c, 0);
        for (std::size_t v = 0; v < vectors; ++v) out[c][v] = turned[v] ^ key;
      }
#pragma GCC unroll 9
      for (int r = 1; r < aes_rounds; ++r) {
        for (int c = 0; c < Children; ++c) {
          const Vector key = key_of(c, r);
          for (std::size_t v = 0; v < vectors; ++v) out[c][v] = Simd::encrypt_round(out[c][v], key);
        }
      }
      for (int c = 0; c < Children; ++c) {
        const Vector key = key_of(c, aes_rounds);
        for (std::size_t v = 0; v < vectors; ++v) out[c][v] = Simd::encrypt_last(out[c][v], key ^ turned[v]);
      }
    }
  }

  // The schedule beside the rounds (FIPS 197, section 5.2). With four equal columns the last round is SubWord.
  template <int Children>
  [[gnu::always_inline]] static inline void make_keyed(const Seeds& seeds, int first, Seeds (&out)[Children]) {
    constexpr std::uint32_t round_constants[aes_rounds + 1] = {0,    0x01, 0x02, 0x04, 0x08, 0x10,
                                                               0x20, 0x40, 0x80, 0x1b, 0x36};
    const Vector rotated = Simd::broadcast(0x0c0f0e0d);
    Seeds keys;
    for (std::size_t v = 0; v < vectors; ++v) keys[v] = seeds[v];
    for (int c = 0; c < Children; ++c) {
      const Vector counter = of_block(0, static_cast<std::uint64_t>(first + c) << 56);
      for (std::size_t v = 0; v < vectors; ++v) out[c][v] = keys[v] ^ counter;
    }
#pragma GCC unroll 10
    for (int r = 1; r <= aes_rounds; ++r) {
      const Vector constant = Simd::broadcast(round_constants[r]);
      for (std::size_t v = 0; v < vectors; ++v) {
        const Vector word = Simd::encrypt_last(Simd::shuffle(keys[v], rotated), constant);
        keys[v] = keys[v] ^ Simd::template shift_bytes_left<4>(keys[v]);
        keys[v] = keys[v] ^ Simd::template shift_bytes_left<8>(keys[v]) ^ word;
        for (int c = 0; c < Children; ++c) {
          out[c][v] = r < aes_rounds ? Simd::encrypt_round(out[c][v], keys[v]) : Simd::encrypt_last(out[c][v], keys[v]);
        }
      }
    }
  }

  // Calls body(in, out) for groups of seeds; the last may be filled up with others. Each gives `per_seed` blocks.
  template <class Body>
  [[gnu::always_inline]] static inline void for_groups(const std::uint8_t* in, std::size_t count, std::size_t per_seed,
                                                       std::uint8_t* out, const Body& body) {
    for (; count >= group; count -= group, in += 16 * group, out += 16 * group * per_seed) body(in, out);
    if (count != 0) {
      alignas(64) std::uint8_t last[16 * group * (1 + most_children)] = {};
      std::memcpy(last, in, 16 * count);
      body(last, last + 16 * group);
      std::memcpy(out, last + 16 * group, 16 * count * per_seed);
      cpu::forget(last, sizeof last);
    }
    _mm256_zeroupper();
  }

  static void load(const std::uint8_t* from, Seeds& seeds) {
    for (std::size_t v = 0; v < vectors; ++v) seeds[v] = Simd::load(from + vector_len * v);
  }

  static void store_pairs(std::uint8_t* to, Seeds (&made)[2]) {
    for (std::size_t v = 0; v < vectors; ++v) {
      Simd::interleave_blocks(made[0][v], made[1][v]);
      Simd::store(to + 2 * vector_len * v, made[0][v]);
      Simd::store(to + 2 * vector_len * v + vector_len, made[1][v]);
    }
  }

  template <Generator G>
  static void expand(const std::uint8_t* seeds, std::size_t count, int first, int children, std::uint8_t* out) {
    for_groups(seeds, count, static_cast<std::size_t>(children), out, [&](const std::uint8_t* from, std::uint8_t* to) {
      Seeds loaded;
      load(from, loaded);
      if (children == 2) {
        Seeds made[2];
        make<G, 2>(loaded, first, made);
        return store_pairs(to, made);
      }
      for (int c = 0; c < children; ++c) {
        Seeds made[1];
        make<G, 1>(loaded, first + c, made);
        if (children == 1) {
          for (std::size_t v = 0; v < vectors; ++v) Simd::store(to + vector_len * v, made[0][v]);
        } else {
          alignas(64) std::uint8_t blocks[16 * group];
          for (std::size_t v = 0; v < vectors; ++v) Simd::store(blocks + vector_len * v, made[0][v]);
          for (std::size_t i = 0; i < group; ++i) {
            std::memcpy(to + 16 * (i * static_cast<std::size_t>(children) + static_cast<std::size_t>(c)),
                        blocks + 16 * i, 16);
          }
        }
      }
    });
  }

  // Takes the control bits out of nodes, or copies them, as masks of blocks. root_bit: in their place.
  static void take_controls(Seeds& nodes, Seeds& masks, bool stay, std::uint8_t root_bit) {
    const Vector root = of_block(root_bit, 0);
    const Vector one = of_block(1, 0);
    for (std::size_t v = 0; v < vectors; ++v) {
      const Vector control = nodes[v] & one;
      if (!stay) nodes[v] = nodes[v] ^ control ^ root;
      masks[v] = reinterpret_cast<Vector>(Longs{} - reinterpret_cast<Longs>(Simd::unpack_low64(control, control)));
    }
  }

  template <Generator G>
  static void grow(const std::uint8_t* nodes, std::size_t count, const LevelCorrection& correction, std::uint8_t* out) {
    Vector added[2];
    for (int c = 0; c < 2; ++c) added[c] = Simd::from_block(cpu::load_block(correction.children[c]));
    for_groups(nodes, count, 2, out, [&](const std::uint8_t* from, std::uint8_t* to) {
      Seeds seeds, masks, made[2];
      load(from, seeds);
      take_controls(seeds, masks, is_correlated(G), correction.root_bit);
      make<G, 2>(seeds, 0, made);
      for (int c = 0; c < 2; ++c) {
        for (std::size_t v = 0; v < vectors; ++v) made[c][v] = made[c][v] ^ (added[c] & masks[v]);
      }
      store_pairs(to, made);
    });
  }

  template <class Integers>
  static Vector add(Vector a, Vector b, bool negative) {
    const Integers sum = reinterpret_cast<Integers>(a) + reinterpret_cast<Integers>(b);
    return reinterpret_cast<Vector>(negative ? Integers{} - sum : sum);
  }

  template <Generator G>
  static void finish(const std::uint8_t* nodes, std::size_t count, const LeafCorrection& correction,
                     std::uint8_t* out) {
    constexpr int blocks = is_correlated(G) ? 2 : 1;
    Vector added[blocks];
    for (int b = 0; b < blocks; ++b) added[b] = Simd::from_block(cpu::load_block(correction.blocks[b]));
    for_groups(nodes, count, blocks, out, [&](const std::uint8_t* from, std::uint8_t* to) {
      Seeds seeds, masks, made[blocks];
      load(from, seeds);
      take_controls(seeds, masks, false, correction.root_bit);
      make<G, blocks>(seeds, 2, made);
      for (int b = 0; b < blocks; ++b) {
        for (std::size_t v = 0; v < vectors; ++v) {
          const Vector value = added[b] & masks[v];
          made[b][v] = correction.group == Group::gf2   ? made[b][v] ^ value
                       : correction.group == Group::u32 ? add<Words>(made[b][v], value, correction.negative)
                                                        : add<Longs>(made[b][v], value, correction.negative);
        }
      }
      if constexpr (blocks == 2) {
        store_pairs(to, made);
      } else {
        for (std::size_t v = 0; v < vectors; ++v) Simd::store(to + vector_len * v, made[0][v]);
      }
    });
  }
};

// Calls call() with the generator as a constant.
template <class Call>
[[gnu::always_inline]] inline void visit_aes(Generator generator, const Call& call) {
  switch (generator) {
    case Generator::aes128_keyed: return call.template operator()<Generator::aes128_keyed>();
    case Generator::aes128_half: return call.template operator()<Generator::aes128_half>();
    default: return call.template operator()<Generator::aes128_mmo>();
  }
}

template <class Simd>
constexpr Code aes_lanes{
    [](Generator generator, const std::uint8_t* seeds, std::size_t count, int first, int children, std::uint8_t* out) {
      visit_aes(generator,
                [&]<Generator G>() { AesCode<Simd>::template expand<G>(seeds, count, first, children, out); });
    },
    [](Generator generator, const std::uint8_t* nodes, std::size_t count, const LevelCorrection& correction,
       std::uint8_t* out) {
      visit_aes(generator, [&]<Generator G>() { AesCode<Simd>::template grow<G>(nodes, count, correction, out); });
    },
    [](Generator generator, const std::uint8_t* nodes, std::size_t count, const LeafCorrection& correction,
       std::uint8_t* out) {
      visit_aes(generator, [&]<Generator G>() { AesCode<Simd>::template finish<G>(nodes, count, correction, out); });
    }};

}  // namespace
}  // namespace warpcipher::prg
