// SPDX-License-Identifier: Apache-2.0
// A lane's seeds and their children, in registers: AES from lane tables, of which a lane reads only its own bank,
// whatever the seed; ChaCha without tables. The bound of AES is shared memory: 160 loads a block, and 40 for a
// schedule.
#pragma once

#include "engine/cuda/aes/cipher.cuh"
#include "engine/cuda/runtime/device.hpp"
#include "engine/cuda/runtime/launch.hpp"
#include "prg/point_keys.hpp"

namespace warpcipher::prg::cuda {

using namespace ::warpcipher::cuda::lane_table;
using ::warpcipher::cuda::Block, ::warpcipher::cuda::current_device, ::warpcipher::cuda::Device,
    ::warpcipher::cuda::global, ::warpcipher::cuda::lane_index, ::warpcipher::cuda::launch,
    ::warpcipher::cuda::LaunchConfiguration, ::warpcipher::cuda::load_aligned, ::warpcipher::cuda::rotate_left,
    ::warpcipher::cuda::store_bytes, ::warpcipher::cuda::warp_index, ::warpcipher::cuda::warp_len;

// The smaller layout on every GPU: loads hide its rotation, and it leaves room for the nodes of trees.
using Tables = Tables64;

// A generator: `threads` of a block, bytes of shared memory before what a kernel wants of its own, begin(), which every
// thread of a block calls, and make(): children `First` to `First` + N - 1 of a seed. `fixed`: a kernel's parameter, so
// that its words become operands of the logic.
struct Mmo {
  static constexpr std::uint32_t threads = 1024;
  static constexpr std::size_t shared_len = Tables::shared_len;

  struct Key {
    static constexpr bool in_registers = false;
    const std::uint32_t* words;

    __device__ __forceinline__ Block round(std::uint32_t r) const {
      return {{words[4 * r], words[4 * r + 1], words[4 * r + 2], words[4 * r + 3]}};
    }
  };

  static __device__ __forceinline__ void begin() {
    fill_tables<Tables, false>();
    __syncthreads();
  }

  template <int First, int N>
  static __device__ __forceinline__ void make(const FixedSchedules& fixed, const Block& seed, Block (&children)[N]) {
    const Block turned{{seed.words[2], seed.words[3], seed.words[0] ^ seed.words[2], seed.words[1] ^ seed.words[3]}};
#pragma unroll
    for (int c = 0; c < N; ++c) {
      const Key key{fixed.words[First + c]};
      Block one[1] = {turned};
      LaneCipher<Tables, false, aes_rounds, Key>(key, aes_rounds)(one);
      children[c] = one[0] ^ turned;
    }
  }
};

struct Keyed {
  static constexpr std::uint32_t threads = 512;  // 128 registers a lane: 44 are the schedule
  static constexpr std::size_t shared_len = Tables::shared_len;

  struct Key {
    static constexpr bool in_registers = true;
    Block rounds[aes_rounds + 1];

    __device__ __forceinline__ Block round(std::uint32_t r) const { return rounds[r]; }
  };

  static __device__ __forceinline__ void begin() { Mmo::begin(); }

  template <int First, int N>
  static __device__ __forceinline__ void make(const FixedSchedules&, const Block& seed, Block (&children)[N]) {
    Key key;
    const LaneCipher<Tables, false, aes_rounds, Key> cipher(key, aes_rounds);
    key.rounds[0] = seed;
    std::uint32_t constant = 1;
#pragma unroll
    for (int r = 1; r <= aes_rounds; ++r) {
      Block& next = key.rounds[r];
      next = key.rounds[r - 1];
      next.words[0] ^= cipher.sub_word(rotate_left(next.words[3], 24)) ^ constant;
#pragma unroll
      for (int w = 1; w < 4; ++w) next.words[w] ^= next.words[w - 1];
      constant = (constant << 1) ^ (0x11bu * (constant >> 7));
    }
#pragma unroll
    for (int c = 0; c < N; ++c) children[c] = {{0, 0, 0, static_cast<std::uint32_t>(First + c) << 24}};
    cipher(children);
  }
};

template <int DoubleRounds>
struct ChaCha {
  static constexpr std::uint32_t threads = 256;
  static constexpr std::size_t shared_len = 0;

  static __device__ __forceinline__ void begin() {}

  template <int First, int N>
  static __device__ __forceinline__ void make(const FixedSchedules&, const Block& seed, Block (&children)[N]) {
    const std::uint32_t words[4] = {seed.words[0], seed.words[1], seed.words[2], seed.words[3]};
    std::uint32_t x[16];
    chacha_block(words, DoubleRounds, x);
#pragma unroll
    for (int c = 0; c < N; ++c) {
#pragma unroll
      for (int w = 0; w < 4; ++w) children[c].words[w] = x[4 * (First + c) + w];
    }
  }
};

// Calls visitor(generator).
template <class Visitor>
void visit(Generator generator, const Visitor& visitor) {
  switch (generator) {
    case Generator::aes128_mmo:
      return visitor(Mmo());
    case Generator::aes128_keyed:
      return visitor(Keyed());
    case Generator::chacha20:
      return visitor(ChaCha<10>());
    case Generator::chacha12:
      return visitor(ChaCha<6>());
    case Generator::chacha8:
      return visitor(ChaCha<4>());
  }
}

// Blocks that fill the GPU, or fewer for fewer lanes. own_len: bytes of shared memory of the kernel's own.
template <class G>
LaunchConfiguration configuration_of(const Device& device, std::uint64_t lanes, std::size_t own_len) {
  constexpr std::uint32_t of_multiprocessor = G::shared_len == 0 ? 8 : G::threads == 512 ? 2 : 1;
  LaunchConfiguration made = ::warpcipher::cuda::configuration_of_lanes(device, lanes, G::threads, of_multiprocessor);
  made.shared_len = G::shared_len + own_len;
  return made;
}

__device__ __forceinline__ void store_block(std::uint8_t* p, const Block& block) {
  *reinterpret_cast<uint4*>(p) = make_uint4(block.words[0], block.words[1], block.words[2], block.words[3]);
}

// --- nodes of point functions (point_keys.hpp) -----------------------------------------------------------------------

// The control bit of a node, as a mask; it is taken out.
__device__ __forceinline__ std::uint32_t take_control(Block& node) {
  const std::uint32_t control = node.words[0] & 1;
  node.words[0] ^= control;
  return 0u - control;
}

__device__ __forceinline__ void add_if(Block& block, const Block& added, std::uint32_t mask) {
#pragma unroll
  for (int w = 0; w < 4; ++w) block.words[w] ^= added.words[w] & mask;
}

// Both corrected children of a node of `level`.
template <class G>
__device__ __forceinline__ void grow(const FixedSchedules& fixed, const std::uint8_t* record, int depth, int level,
                                     Block node, Block (&children)[2]) {
  const std::uint32_t mask = take_control(node);
  G::template make<0, 2>(fixed, node, children);
  Block added = load_aligned(record + RecordLayout::correction(level));
  const std::uint8_t right_bits = record[RecordLayout{depth}.right_bits() + static_cast<unsigned>(level) / 8];
  add_if(children[0], added, mask);
  added.words[0] = (added.words[0] & ~1u) | (right_bits >> (level % 8) & 1u);
  add_if(children[1], added, mask);
}

// The output of a node of the last level.
template <class G>
__device__ __forceinline__ Block finish(const FixedSchedules& fixed, const std::uint8_t* record, const Domain& domain,
                                        bool negative, Block node) {
  const std::uint32_t mask = take_control(node);
  Block made[1];
  G::template make<2, 1>(fixed, node, made);
  const Block added = load_aligned(record + RecordLayout{domain.depth()}.value());
  if (domain.group == Group::gf2) {
    add_if(made[0], added, mask);
    return made[0];
  }
  Block sum;
  if (domain.group == Group::u32) {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      sum.words[w] = made[0].words[w] + (added.words[w] & mask);
      if (negative) sum.words[w] = 0u - sum.words[w];
    }
    return sum;
  }
#pragma unroll
  for (int w = 0; w < 4; w += 2) {
    const std::uint64_t a = std::uint64_t{made[0].words[w + 1]} << 32 | made[0].words[w];
    const std::uint64_t b = std::uint64_t{added.words[w + 1] & mask} << 32 | (added.words[w] & mask);
    const std::uint64_t value = negative ? 0 - (a + b) : a + b;
    sum.words[w] = static_cast<std::uint32_t>(value);
    sum.words[w + 1] = static_cast<std::uint32_t>(value >> 32);
  }
  return sum;
}

}  // namespace warpcipher::prg::cuda
