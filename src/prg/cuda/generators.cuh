// SPDX-License-Identifier: Apache-2.0
// A lane's seeds and their children, in registers: AES from lane tables, of which a lane reads only its own bank,
// whatever the seed; ChaCha without tables. The bound of AES is shared memory: 160 loads a block, and 40 for a
// schedule.
#pragma once

#include "engine/cuda/aes/cipher.cuh"
#include "engine/cuda/runtime/device.hpp"
#include "engine/cuda/runtime/launch.hpp"
#include "engine/cuda/runtime/refusal.hpp"
#include "prg/point_keys.hpp"

namespace warpcipher::prg::cuda {

using namespace ::warpcipher::cuda::lane_table;
using ::warpcipher::cuda::Block, ::warpcipher::cuda::current_device, ::warpcipher::cuda::Device,
    ::warpcipher::cuda::global, ::warpcipher::cuda::lane_index, ::warpcipher::cuda::launch,
    ::warpcipher::cuda::LaunchConfiguration, ::warpcipher::cuda::load_aligned, ::warpcipher::cuda::rotate_left,
    ::warpcipher::cuda::store_bytes, ::warpcipher::cuda::warp_index, ::warpcipher::cuda::warp_len;

// `b` where the mask has ones, else `a`. Word by word: a choice between arrays would put them in local memory, which
// nothing wipes.
__device__ __forceinline__ Block choose(const Block& a, const Block& b, std::uint32_t mask) {
  Block chosen;
#pragma unroll
  for (int w = 0; w < 4; ++w) chosen.words[w] = (a.words[w] & ~mask) | (b.words[w] & mask);
  return chosen;
}

__device__ __forceinline__ void add_if(Block& block, const Block& added, std::uint32_t mask) {
#pragma unroll
  for (int w = 0; w < 4; ++w) block.words[w] ^= added.words[w] & mask;
}

// A generator: `threads` of a block, bytes of shared memory before what a kernel wants of its own, begin(), which every
// thread of a block calls, make(): children `First` to `First` + N - 1 of a seed, and make_one(): child 1 where the
// mask `right` has ones, else 0. `fixed`: a kernel's parameter, so that its words become operands of the logic.
template <class Tables>
struct Mmo {
  static constexpr bool correlated = false;
  static constexpr std::uint32_t threads = 768;  // 80 registers a lane: the compiler makes two children at once
  static constexpr std::size_t shared_len = Tables::shared_len;

  struct Key {
    static constexpr bool in_registers = true;  // rounds are unrolled
    const std::uint32_t* words;

    __device__ __forceinline__ Block round(std::uint32_t r) const {
      return {{words[4 * r], words[4 * r + 1], words[4 * r + 2], words[4 * r + 3]}};
    }
  };

  struct ChosenKey {
    static constexpr bool in_registers = true;
    const FixedSchedules& fixed;
    std::uint32_t right;

    __device__ __forceinline__ Block round(std::uint32_t r) const {
      return choose(Key{fixed.words[0]}.round(r), Key{fixed.words[1]}.round(r), right);
    }
  };

  static __device__ __forceinline__ void begin() {
    fill_tables<Tables, false>();
    __syncthreads();
  }

  template <int First, int N>
  static __device__ __forceinline__ void make(const FixedSchedules& fixed, const Block& seed, Block (&children)[N]) {
#pragma unroll
    for (int c = 0; c < N; ++c) children[c] = hash(Key{fixed.words[First + c]}, seed);
  }

  static __device__ __forceinline__ Block make_one(const FixedSchedules& fixed, const Block& seed,
                                                   std::uint32_t right) {
    return hash(ChosenKey{fixed, right}, seed);
  }

 private:
  template <class AnyKey>
  static __device__ __forceinline__ Block hash(const AnyKey& key, const Block& seed) {
    const Block turned{{seed.words[2], seed.words[3], seed.words[0] ^ seed.words[2], seed.words[1] ^ seed.words[3]}};
    Block one[1] = {turned};
    LaneCipher<Tables, false, aes_rounds, AnyKey>(key, aes_rounds)(one);
    return one[0] ^ turned;
  }
};

// Children 0 and 1 are one hash.
template <class Tables>
struct Half : Mmo<Tables> {
  using Hash = Mmo<Tables>;
  static constexpr bool correlated = true;

  template <int First, int N>
  static __device__ __forceinline__ void make(const FixedSchedules& fixed, const Block& seed, Block (&children)[N]) {
    if constexpr (First == 0 && N >= 2) {
      Block hash[1];
      Hash::template make<0, 1>(fixed, seed, hash);
      children[0] = hash[0];
      children[1] = hash[0] ^ seed;
#pragma unroll
      for (int c = 2; c < N; ++c) {
        c == 2 ? Hash::template make<2, 1>(fixed, seed, hash) : Hash::template make<3, 1>(fixed, seed, hash);
        children[c] = hash[0];
      }
    } else {
      static_assert(First != 1, "child 1 is made with child 0");
      Hash::template make<First, N>(fixed, seed, children);
    }
  }

  static __device__ __forceinline__ Block make_one(const FixedSchedules& fixed, const Block& seed,
                                                   std::uint32_t right) {
    Block child[1];
    Hash::template make<0, 1>(fixed, seed, child);
    add_if(child[0], seed, right);
    return child[0];
  }
};

struct Keyed {
  using Tables = Tables64;  // two blocks on a multiprocessor hide more than the other layout saves
  static constexpr bool correlated = false;
  static constexpr std::uint32_t threads = 512;  // 128 registers a lane: 44 are the schedule
  static constexpr std::size_t shared_len = Tables::shared_len;

  struct Key {
    static constexpr bool in_registers = true;
    Block rounds[aes_rounds + 1];

    __device__ __forceinline__ Block round(std::uint32_t r) const { return rounds[r]; }
  };

  static __device__ __forceinline__ void begin() { Mmo<Tables>::begin(); }

  template <int First, int N>
  static __device__ __forceinline__ void make(const FixedSchedules&, const Block& seed, Block (&children)[N]) {
#pragma unroll
    for (int c = 0; c < N; ++c) children[c] = {{0, 0, 0, static_cast<std::uint32_t>(First + c) << 24}};
    encrypt(seed, children);
  }

  static __device__ __forceinline__ Block make_one(const FixedSchedules&, const Block& seed, std::uint32_t right) {
    Block child[1] = {{{0, 0, 0, right & 1u << 24}}};
    encrypt(seed, child);
    return child[0];
  }

 private:
  template <int N>
  static __device__ __forceinline__ void encrypt(const Block& seed, Block (&blocks)[N]) {
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
    cipher(blocks);
  }
};

template <int DoubleRounds>
struct ChaCha {
  static constexpr bool correlated = false;
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

  static __device__ __forceinline__ Block make_one(const FixedSchedules& fixed, const Block& seed,
                                                   std::uint32_t right) {
    Block children[2];
    make<0, 2>(fixed, seed, children);
    return choose(children[0], children[1], right);
  }
};

// Calls visitor(generator) for tables of 128 KiB, whose addresses leave the logic pipe free, where the GPU has room for
// them and for the nodes of two levels; else of 64.
template <class Visitor>
void visit(Generator generator, const Device& device, const Visitor& visitor) {
  using ::warpcipher::cuda::PickedTables;
  const bool small = ::warpcipher::cuda::overrides().tables == PickedTables::tables_64 ||
                     device.shared_len < Tables128ByProduct::shared_len + 32 * 1024;
  switch (generator) {
    case Generator::aes128_mmo: return small ? visitor(Mmo<Tables64>()) : visitor(Mmo<Tables128ByProduct>());
    case Generator::aes128_keyed: return visitor(Keyed());
    case Generator::chacha20: return visitor(ChaCha<10>());
    case Generator::chacha12: return visitor(ChaCha<6>());
    case Generator::chacha8: return visitor(ChaCha<4>());
    case Generator::aes128_half: return small ? visitor(Half<Tables64>()) : visitor(Half<Tables128ByProduct>());
  }
}

template <class G>
constexpr std::uint32_t blocks_of_multiprocessor = G::shared_len == 0  ? 8
                                                   : G::threads == 512 ? 2
                                                                       : 1;

// Lanes of a launch that fills the GPU.
template <class G>
std::uint64_t lanes_of(const Device& device) {
  return std::uint64_t{G::threads} * blocks_of_multiprocessor<G> * device.multiprocessors;
}

// Blocks that fill the GPU, or one for each warp. own_len: bytes of shared memory of the kernel's own.
template <class G>
LaunchConfiguration configuration_of(const Device& device, std::uint64_t lanes, std::size_t own_len) {
  const std::uint64_t most = std::uint64_t{blocks_of_multiprocessor<G>} * device.multiprocessors;
  const std::uint64_t warps = (lanes + warp_len - 1) / warp_len;
  return {static_cast<std::uint32_t>(warps < most ? warps : most), G::threads, G::shared_len + own_len};
}

// The number of this lane among all. Warps of different blocks follow each other, so that few lanes, and what is left
// at the end of many, are on all multiprocessors.
__device__ __forceinline__ std::uint64_t lane_of_launch() {
  return (std::uint64_t{warp_index()} * gridDim.x + blockIdx.x) * warp_len + lane_index();
}

__device__ __forceinline__ void store_block(std::uint8_t* p, const Block& block) {
  *reinterpret_cast<uint4*>(p) = make_uint4(block.words[0], block.words[1], block.words[2], block.words[3]);
}

// --- nodes of point functions (point_keys.hpp) -----------------------------------------------------------------------

// Blocks of a node of the last level (Domain::blocks).
template <class G>
constexpr int blocks_of = G::correlated ? 2 : 1;

// Keys of one domain and party: public numbers, computed before the launch.
struct Layout {
  std::uint32_t len;  // bytes of a record
  std::uint32_t right_bits, root_bit, value;
  int depth;
  Group group;
  bool negative;
};

inline Layout layout_of(const Domain& domain, int party) {
  const RecordLayout layout(domain);
  return {static_cast<std::uint32_t>(domain.record_len()),
          static_cast<std::uint32_t>(layout.right_bits()),
          static_cast<std::uint32_t>(layout.root_bit()),
          static_cast<std::uint32_t>(layout.value()),
          layout.depth,
          domain.group,
          party == 1};
}

// The control bit of a node, as a mask; it is taken out.
__device__ __forceinline__ std::uint32_t take_control(Block& node) {
  const std::uint32_t control = node.words[0] & 1;
  node.words[0] ^= control;
  return 0u - control;
}

// Both corrected children of a node of `level`.
template <class G>
__device__ __forceinline__ void grow(const FixedSchedules& fixed, const std::uint8_t* record, const Layout& layout,
                                     int level, Block node, Block (&children)[2]) {
  if constexpr (G::correlated) {
    Block hash[1];
    G::template make<0, 1>(fixed, node, hash);
    add_if(hash[0], load_aligned(record + RecordLayout::correction(level)), 0u - (node.words[0] & 1));
    children[0] = hash[0];
    children[1] = hash[0] ^ node;
  } else {
    const std::uint32_t mask = take_control(node);
    if (level == 0) node.words[0] |= record[layout.root_bit];
    G::template make<0, 2>(fixed, node, children);
    Block added = load_aligned(record + RecordLayout::correction(level));
    const std::uint8_t right_bits = record[layout.right_bits + static_cast<unsigned>(level) / 8];
    add_if(children[0], added, mask);
    added.words[0] = (added.words[0] & ~1u) | (right_bits >> (level % 8) & 1u);
    add_if(children[1], added, mask);
  }
}

// The right one where the mask has ones, else the left one.
template <class G>
__device__ __forceinline__ Block grow_one(const FixedSchedules& fixed, const std::uint8_t* record, const Layout& layout,
                                          int level, Block node, std::uint32_t right) {
  Block added = load_aligned(record + RecordLayout::correction(level));
  std::uint32_t mask = 0u - (node.words[0] & 1);
  if constexpr (!G::correlated) {
    take_control(node);
    if (level == 0) node.words[0] |= record[layout.root_bit];
    const std::uint8_t right_bits = record[layout.right_bits + static_cast<unsigned>(level) / 8];
    added.words[0] = (added.words[0] & ~(right & 1)) | (right_bits >> (level % 8) & right & 1u);
  }
  Block child = G::make_one(fixed, node, right);
  add_if(child, added, mask);
  return child;
}

// A block of output with its correction.
__device__ __forceinline__ void add_value(Block& made, const Block& added, std::uint32_t mask, Group group,
                                          bool negative) {
  if (group == Group::gf2) {
    add_if(made, added, mask);
  } else if (group == Group::u32) {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      made.words[w] += added.words[w] & mask;
      if (negative) made.words[w] = 0u - made.words[w];
    }
  } else {
#pragma unroll
    for (int w = 0; w < 4; w += 2) {
      const std::uint64_t a = std::uint64_t{made.words[w + 1]} << 32 | made.words[w];
      const std::uint64_t b = std::uint64_t{added.words[w + 1] & mask} << 32 | (added.words[w] & mask);
      const std::uint64_t value = negative ? 0 - (a + b) : a + b;
      made.words[w] = static_cast<std::uint32_t>(value);
      made.words[w + 1] = static_cast<std::uint32_t>(value >> 32);
    }
  }
}

// The output of a node of the last level.
template <class G>
__device__ __forceinline__ void finish(const FixedSchedules& fixed, const std::uint8_t* record, const Layout& layout,
                                       Block node, Block (&made)[blocks_of<G>]) {
  const std::uint32_t mask = take_control(node);
  if (!G::correlated && layout.depth == 0) node.words[0] |= record[layout.root_bit];
  G::template make<2, blocks_of<G>>(fixed, node, made);
#pragma unroll
  for (int b = 0; b < blocks_of<G>; ++b) {
    const Block added = load_aligned(record + layout.value + block_len * b);
    add_value(made[b], added, mask, layout.group, layout.negative);
  }
}

}  // namespace warpcipher::prg::cuda
