// SPDX-License-Identifier: Apache-2.0
// ChaCha20 four blocks at a time, on 128-bit vectors: SSE2 and NEON, which every 64-bit x86 and ARM processor has.

#include "engine/cpu/chacha_lanes_code.hpp"

namespace warpcipher::cpu {
namespace {

struct FourBlocks {
  using Vector [[gnu::vector_size(16)]] = std::uint32_t;
  static constexpr std::size_t blocks = 4;

  static Vector broadcast(std::uint32_t word) { return Vector{word, word, word, word}; }
  static Vector numbers() { return Vector{0, 1, 2, 3}; }
  static Vector load(const std::uint8_t* p) {
    Vector v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(std::uint8_t* p, Vector v) { std::memcpy(p, &v, sizeof v); }
  static Vector add(Vector a, Vector b) { return a + b; }
  static Vector exclusive_or(Vector a, Vector b) { return a ^ b; }

  template <int Bits>
  static Vector rotate(Vector v) {
    return v << Bits | v >> (32 - Bits);
  }

  // Vectors 4 j to 4 j + 3 are block j.
  template <class Sink>
  [[gnu::always_inline]] static inline void to_blocks(Vector (&x)[16], const Sink& sink) {
#pragma GCC unroll 4
    for (std::size_t quarter = 0; quarter < 4; ++quarter) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) sink(4 * static_cast<std::size_t>(j) + quarter, row(x + 4 * quarter, 1, j));
    }
  }

  static void to_columns(Vector (&x)[16]) {
    Vector from[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) from[i] = x[i];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) x[i] = row(from + i / 4, 4, i % 4);
  }

 private:
  // Word `lane` of four vectors.
  static Vector row(const Vector* from, int step, int lane) {
    return Vector{from[0][lane], from[step][lane], from[2 * step][lane], from[3 * step][lane]};
  }
};

}  // namespace

constinit const ChaChaLanes chacha_lanes_baseline = make_chacha_lanes<FourBlocks>("baseline");

}  // namespace warpcipher::cpu
