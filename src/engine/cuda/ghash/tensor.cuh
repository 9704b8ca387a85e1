// SPDX-License-Identifier: Apache-2.0
// GHASH on tensor cores: a warp sums X_i H^(n-1-i) over n blocks with the one-bit matrix instruction, which counts the
// ones of A & B for 16 rows and 8 columns at a time. Multiplication by a power of H is a matrix B (matrix.hpp). Blocks
// are A, as they are in memory. Counts accumulate over a whole segment; only their parity matters.
//
// A step is 64 consecutive blocks: two loads of 16 bytes in each lane, where load o gives lane l block 32 o + l. The
// four blocks of a group of lanes share two rows of the instruction, one for even and one for odd words, and are
// multiplied by four powers of H:
//
//   load o   | block 32 o + 0, 1, 2, 3 | 4, 5, 6, 7 | ...  | 28, 29, 30, 31 |
//   rows       (o, even and odd, g = 0)   (g = 1)     ...    (g = 7)          times H^3, H^2, H^1, H^0
//
// A segment is Steps steps; step s multiplies by H^(64 (Steps - 1 - s)) as well. Between segments the parity of each
// row, which is again a block in memory order, is multiplied by H^(64 Steps) (Horner's rule). At the end each lane
// multiplies its row by the power of H that corresponds to the row's distance from the last block, and the products are
// added.
//
// Blocks are copied to a ring in shared memory in the background. Loads into registers would wait for each other,
// because the compiler has only six scoreboards to distinguish them.
//
// Text that does not begin at a multiple of 16 is copied as the aligned words that it lies in, and joined to blocks
// when it comes from the ring (realign.cuh), by its own kernel.
//
// The time depends only on the number of blocks: matrices are read by position, never by value.
#pragma once

#include "engine/cuda/ghash/counts.cuh"
#include "engine/cuda/ghash/matrices.cuh"

namespace warpcipher::cuda::ghash {

// The sums that a warp keeps in registers while it hashes a chunk on tensor cores.

// The rows of a warp: the sums so far.
template <int Steps>
class Rows {
 public:
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (std::uint32_t o = 0; o < loads_of_step; ++o) counts_[o].clear();
  }

  // The B operands of the first half of a step, which the step before loads.
  struct Ready {
    uint4 columns[4];
  };

  __device__ __forceinline__ static void load(const Matrices<Steps>& matrices, std::uint32_t s, std::uint32_t half,
                                              uint4 (&columns)[4]) {
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) columns[i] = matrices.step[s][4 * half + i][lane_index()];
  }

  // Runs step s of a segment. Before, `ready` has its own operands; afterwards the ones of step `next`.
  __device__ __forceinline__ void add(const Matrices<Steps>& matrices, std::uint32_t s, std::uint32_t next,
                                      Ready& ready, const uint4 (&x)[loads_of_step]) {
    uint4 second[4];
    load(matrices, s, 1, second);
    add_half(0, ready.columns, x);
    load(matrices, next, 0, ready.columns);
    add_half(1, second, x);
  }

  // Multiplies every row by H^(64 Steps), before the next segment.
  __device__ __forceinline__ void next_segment(const Matrices<Steps>& matrices) {
    std::uint32_t words[2 * loads_of_step];
    parities(words);
#pragma unroll
    for (std::uint32_t n = 0; n < tiles_of_product; ++n) {
      const std::uint32_t b = matrices.segment[n][lane_index()];
#pragma unroll
      for (std::uint32_t o = 0; o < loads_of_step; ++o) {
        counts_[o].begin(n, words[2 * o], words[2 * o + 1], b);
      }
    }
  }

  // The sum, in all lanes.
  __device__ __forceinline__ gf128::Element join(const Matrices<Steps>& matrices) const {
    std::uint32_t words[2 * loads_of_step];
    parities(words);
    transpose_quad(words);
    // Lane 4 g + t has the row (o = t / 2, even or odd = t % 2, g).
    const gf128::Element row = mend(to_element({{words[0], words[1], words[2], words[3]}}));
    gf128::Element sum = gf128::gcm_multiply(row, matrices.joining[lane_index()]);
#pragma unroll
    for (std::uint32_t distance = 16; distance > 0; distance /= 2) {
      sum = gf128::add(sum, from_lane_xor(sum, distance));
    }
    return sum;
  }

 private:
  __device__ __forceinline__ void add_half(std::uint32_t half, const uint4 (&columns)[4],
                                           const uint4 (&x)[loads_of_step]) {
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t n = 8 * half + 2 * i;
#pragma unroll
      for (std::uint32_t o = 0; o < loads_of_step; ++o) counts_[o].add(n, x[o], columns[i].x, columns[i].y);
#pragma unroll
      for (std::uint32_t o = 0; o < loads_of_step; ++o) counts_[o].add(n + 1, x[o], columns[i].z, columns[i].w);
    }
  }

  // Word t of the rows g, in lane 4 g + t: those of load o, even words and odd words, are words[2 o] and words[2 o +
  // 1].
  __device__ __forceinline__ void parities(std::uint32_t (&words)[2 * loads_of_step]) const {
#pragma unroll
    for (std::uint32_t o = 0; o < loads_of_step; ++o) counts_[o].parities(words[2 * o], words[2 * o + 1]);
  }

  // words[i] of lane t of each four becomes words[t] of lane i.
  __device__ __forceinline__ static void transpose_quad(std::uint32_t (&words)[2 * loads_of_step]) {
    static_assert(2 * loads_of_step == 4, "four lanes hold the words of a row");
#pragma unroll
    for (std::uint32_t distance = 2; distance > 0; distance /= 2) {
      const bool upper = (lane_index() & distance) != 0;
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i) {
        if (i & distance) continue;
        const std::uint32_t received = cuda::from_lane_xor(upper ? words[i] : words[i + distance], distance);
        (upper ? words[i] : words[i + distance]) = received;
      }
    }
  }

  Counts counts_[loads_of_step];
};

// Whose matrices: one key for all messages, filled once by the whole block; or each warp has its own, and fills them
// again for each new key.
enum class Sharing { one_key, many_keys };

// Steps: of a segment. Depth: steps of the ring, for the step in use and those in flight. Threads: of a block; with
// many keys the most, because there may be too little shared memory.
template <int Steps, int Depth, Sharing Keys, std::uint32_t Threads = 256>
struct TensorPolicy {
  static constexpr int steps = Steps;
  static constexpr int depth = Depth;
  static constexpr Sharing keys = Keys;
  static constexpr std::uint32_t threads = Threads;
  static constexpr std::uint32_t warps = threads / warp_len;

  struct Ring {
    uint4 blocks[Depth][blocks_of_step];
  };

  static constexpr std::size_t shared_len_of(std::uint32_t warps_of_block) {
    return (Keys == Sharing::one_key ? 1 : warps_of_block) * sizeof(Matrices<Steps>) + warps_of_block * sizeof(Ring);
  }
  static constexpr std::size_t shared_len = shared_len_of(warps);
};

// A chunk in steps. The first has `missing` blocks of zeros in front; the last is step Steps - 1 of its segment. Step i
// lies at step i % Depth of the ring. A lane reads from the ring only its own copies, so lanes never wait
// for each other. Aligned: for text at multiples of 16, and slow for other text.
template <class Policy, bool Aligned>
class ChunkHash {
 public:
  __device__ __forceinline__ ChunkHash(const Chunk& chunk, const Matrices<Policy::steps>& matrices,
                                       const typename Policy::Ring& ring)
      : chunk_(chunk), matrices_(matrices), ring_(shared_address(&ring.blocks[0][lane_index()])) {
    const auto steps = static_cast<int>((chunk.blocks + blocks_of_step - 1) / blocks_of_step);
    first_ = (steps_ - steps % steps_) % steps_;
    end_ = first_ + steps;
    missing_ = std::uint64_t{blocks_of_step} * static_cast<std::uint32_t>(end_) - chunk.blocks;
    const Chunk::Direct direct = chunk.template direct<Aligned>();
    past_ = Aligned ? 0 : cuda::from_lane(direct.past, 0);
    // Of text that is not aligned, a lane copies the second word of its blocks.
    origin_ = direct.origin - sizeof(uint4) * (missing_ - lane_index()) + (past_ != 0 ? sizeof(uint4) : 0);
    direct_begin_ = static_cast<int>((direct.begin + missing_ + blocks_of_step - 1) / blocks_of_step);
    direct_end_ = static_cast<int>((direct.end + missing_) / blocks_of_step);
  }

  // The sum of X_i H^(n-1-i) over the chunk's blocks, in all lanes.
  __device__ __forceinline__ gf128::Element sum() {
    rows_.clear();
    rows_.load(matrices_, static_cast<std::uint32_t>(first_ % steps_), 0, ready_.columns);
    int step = first_ - depth_;
#pragma unroll 1
    while (step < end_) {
      const int fetched = step + depth_;  // the first step that a group starting here fetches
      const bool group = step % depth_ == 0 && step >= first_ && fetched <= end_ &&
                         (fetched == end_ || (fetched >= direct_begin_ && fetched + depth_ <= direct_end_));
      if (group) {
        run_group(step, fetched != end_);
        step += depth_;
      } else {
        run_step(step);
        step += 1;
      }
    }
    wait_for_copy_groups<0>();
    return rows_.join(matrices_);
  }

 private:
  static constexpr int depth_ = Policy::depth;
  static constexpr int steps_ = Policy::steps;
  static_assert(steps_ % depth_ == 0 || depth_ % steps_ == 0, "segments start at fixed places of a group");

  __device__ __forceinline__ SharedAddress in_ring(int step, std::uint32_t o) const {
    constexpr auto block_len = static_cast<std::uint32_t>(sizeof(uint4));
    return ring_ + block_len * (blocks_of_step * (static_cast<std::uint32_t>(step) % depth_) + warp_len * o);
  }

  // Takes the step after `step` from the ring.
  __device__ __forceinline__ void take_next(int step, uint4 (&next)[loads_of_step]) {
    wait_for_copy_groups<depth_ - 2>();
#pragma unroll
    for (std::uint32_t o = 0; o < loads_of_step; ++o) next[o] = load_shared(in_ring(step + 1, o));
    if constexpr (!Aligned) join_words(step + 1, next);
  }

  // Makes blocks of the words that copy() has copied, of each step in turn.
  __device__ __forceinline__ void join_words(int step, uint4 (&x)[loads_of_step]) {
    if (past_ == 0 || step < direct_begin_ || step >= direct_end_) return;
    Block rows[loads_of_step];
#pragma unroll
    for (std::uint32_t o = 0; o < loads_of_step; ++o) rows[o] = {{x[o].x, x[o].y, x[o].z, x[o].w}};
    if (step == direct_begin_) {  // the word before lane 0's
      before_ = load_aligned(reinterpret_cast<const std::uint8_t*>(blocks_of(step) - lane_index() - 1));
    }
    const Block last = rows[loads_of_step - 1];
    join_rows(rows, before_, lane_index() == warp_len - 1, past_);
    before_ = last;
#pragma unroll
    for (std::uint32_t o = 0; o < loads_of_step; ++o) {
      x[o] = make_uint4(rows[o].words[0], rows[o].words[1], rows[o].words[2], rows[o].words[3]);
    }
  }

  // Where the lane's first block of a direct step is.
  __device__ __forceinline__ const uint4* blocks_of(int step) const {
    return reinterpret_cast<const uint4*>(origin_ + sizeof(uint4) * blocks_of_step * static_cast<std::uint32_t>(step));
  }

  // Copies the blocks at `blocks` to where `step` has them in the ring.
  __device__ __forceinline__ void copy(int step, const uint4* blocks) const {
#pragma unroll
    for (std::uint32_t o = 0; o < loads_of_step; ++o) copy_in_background(in_ring(step, o), blocks + warp_len * o);
  }

  // Runs Depth steps from a multiple of Depth; all steps that they fetch are direct.
  __device__ __forceinline__ void run_group(int group, bool fetch) {
    const std::uint32_t first_place = steps_ > depth_ ? static_cast<std::uint32_t>(group) % steps_ : 0;
    const uint4* const fetched = blocks_of(group + depth_);
#pragma unroll
    for (int d = 0; d < depth_; ++d) {
      if (d % steps_ == 0 && first_place == 0 && group + d != first_) rows_.next_segment(matrices_);
      uint4 next[loads_of_step];
      take_next(Aligned ? d : group + d, next);
      const std::uint32_t place = first_place + d % steps_;
      const bool last = (d + 1) % steps_ == 0 || (d + 1 == depth_ && place + 1 == steps_);
      rows_.add(matrices_, place, last ? 0 : place + 1, ready_, x_);
      if (fetch) copy(d, fetched + blocks_of_step * d);
      end_copy_group();
#pragma unroll
      for (std::uint32_t o = 0; o < loads_of_step; ++o) x_[o] = next[o];
    }
  }

  // Runs any step, also one before the first, which only fetches.
  __device__ __forceinline__ void run_step(int step) {
    uint4 next[loads_of_step] = {};
    if (step + 1 >= first_) take_next(step, next);
    if (step >= first_) {
      const std::uint32_t place = static_cast<std::uint32_t>(step) % steps_;
      if (place == 0 && step != first_) rows_.next_segment(matrices_);
      rows_.add(matrices_, place, (place + 1) % steps_, ready_, x_);
    }
    const int fetched = step + depth_;
    if (fetched < end_) {
      if (fetched >= direct_begin_ && fetched < direct_end_) {
        copy(fetched, blocks_of(fetched));
      } else {
#pragma unroll 1
        for (std::uint32_t o = 0; o < loads_of_step; ++o) {
          const std::uint64_t i =
              std::uint64_t{blocks_of_step} * static_cast<std::uint32_t>(fetched) + warp_len * o + lane_index();
          const Block block = i < missing_ ? Block{} : chunk_.load(i - missing_);
          store_shared(in_ring(fetched, o), make_uint4(block.words[0], block.words[1], block.words[2], block.words[3]));
        }
      }
    }
    end_copy_group();
#pragma unroll
    for (std::uint32_t o = 0; o < loads_of_step; ++o) x_[o] = next[o];
  }

  const Chunk& chunk_;
  const Matrices<steps_>& matrices_;
  SharedAddress ring_;  // where step 0 has the lane's first block
  Rows<steps_> rows_;
  typename Rows<steps_>::Ready ready_;
  uint4 x_[loads_of_step];  // of the step to be run
  std::uintptr_t origin_;   // where the lane's block of a direct step 0 would be; may be before the text
  std::uint64_t missing_;
  int first_;
  int end_;
  int direct_begin_;
  int direct_end_;
  std::uint32_t past_;  // how far text lies past multiples of 16
  Block before_{};      // the lane's last word of the step before
};

// Dynamic, of Policy::shared_len bytes.
extern __shared__ uint4 shared_memory[];

template <class Policy, bool Aligned>
__global__ void __launch_bounds__(Policy::threads, 1) hash_chunks_by_matrix(const __grid_constant__ ChunkList list) {
#if !defined(__CUDA_ARCH__) || (__CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 1000)
  const std::uint32_t warp = threadIdx.x / warp_len;
  constexpr bool one_key = Policy::keys == Sharing::one_key;
  auto* const all_matrices = reinterpret_cast<Matrices<Policy::steps>*>(shared_memory);
  Matrices<Policy::steps>& matrices = all_matrices[one_key ? 0 : warp];
  const std::uint32_t warps_of_block = blockDim.x / warp_len;
  auto& ring = reinterpret_cast<typename Policy::Ring*>(all_matrices + (one_key ? 1 : warps_of_block))[warp];
  [[maybe_unused]] std::uint32_t key = 0xffffffffu;  // the key whose matrices the warp has
  if constexpr (one_key) {
    matrices.template fill<Policy::warps>(list.powers, warp, list.is_polyval());
    __syncthreads();
  }
  const std::uint64_t warps = std::uint64_t{gridDim.x} * warps_of_block;
  for (std::uint64_t number = blockIdx.x + std::uint64_t{gridDim.x} * warp; number < list.chunks; number += warps) {
    const Chunk chunk = find_chunk(list, number);
    if constexpr (!one_key) {
      if (key != chunk.view.key) {
        key = chunk.view.key;
        __syncwarp();
        matrices.fill(list.powers_of(key), list.is_polyval());
        __syncwarp();
      }
    }
    const gf128::Element sum = ChunkHash<Policy, Aligned>(chunk, matrices, ring).sum();
    if (lane_index() == 0) list.sums[number] = sum;
  }
  __syncthreads();  // shared memory still has values that reveal the key
  for (std::uint32_t i = threadIdx.x; i < Policy::shared_len_of(warps_of_block) / sizeof(uint4); i += blockDim.x)
    shared_memory[i] = {};
#else
  __trap();  // choose_ghash() never chooses it for such a device
#endif
}

}  // namespace warpcipher::cuda::ghash
