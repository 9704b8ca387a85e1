// SPDX-License-Identifier: Apache-2.0
// In a file and its own library: code for sm_90a runs only on compute capability 9.0.
#include "engine/cuda/ghash/counts.cuh"
#include "engine/cuda/ghash/launches.hpp"
#include "engine/cuda/ghash/matrices.cuh"
#include "engine/cuda/ghash/warpgroup_instructions.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::ghash {

// GHASH by the asynchronous products of compute capability 9.0: as tensor.cuh, but four warps, a warpgroup, share each
// read of the matrices. So shared memory is not the limit, and text goes from memory directly to registers:
//
//   step      32 consecutive blocks of a chunk, lane l with block l, as fragment A of matrix.hpp: 16 rows a warp
//   segment   Steps steps; step s multiplies by H^(32 (Steps - 1 - s)) as well
//
// Text that does not begin at a multiple of 16 is loaded as the aligned words that it lies in, and joined to blocks
// before it is multiplied (realign.cuh). A separate kernel does so: it has four registers less for other things.
//
// Each warp hashes its own chunk. The four warps of a warpgroup run as many segments as the longest chunk needs;
// shorter chunks have zeros in front. Steps are in groups: while one group is multiplied, the next is loaded.
inline constexpr std::uint32_t warps_of_group = 4;

// The matrices and powers of one key, in shared memory.
template <int Steps>
struct SharedMatrices : MatrixParts {
  static constexpr std::uint32_t log_blocks = 5;  // of a step
  static constexpr std::uint32_t blocks_of_segment = Steps << log_blocks;
  static constexpr std::uint32_t squares = log_blocks + log_2(Steps) + 1;
  static_assert((Steps & (Steps - 1)) == 0, "H^(32 Steps) is one of the squares");

  // In the layout of multiply_by_shared(). The last is for H^(32 Steps), for rows in the lower half of k.
  std::uint32_t matrix[Steps + 1][shared_matrix_len / 4];
  // Lane 4 g + t: the factor of row g of the even (t = 0) or odd words (t = 1) at the end.
  gf128::Element joining[warp_len];

  // Called by all lanes of Warps warps, of which this is number `warp`; fill_rest() by those of one more.
  // powers_of_two[j] is H^(2^j), j below `squares`.
  template <std::uint32_t Warps>
  __device__ __forceinline__ void fill(const gf128::Element* powers_of_two, std::uint32_t warp, bool is_polyval) {
    constexpr std::uint32_t share = Steps / Warps;
    static_assert(share * Warps == Steps, "every warp makes as many: warp, warp + Warps, ...");
    constexpr std::uint32_t width = powers_of_step * share;
    const std::uint32_t lane = lane_index();
    const std::uint32_t own_step = lane % width / powers_of_step * Warps + warp;
    const std::uint32_t exponent = ((Steps - 1 - own_step) << log_blocks) + 3 - lane % powers_of_step;
    const Sequence own = sequence_of(power<width, (2 + log_2(Steps) + 1) / 2>(
        powers_of_two, exponent, [](std::uint32_t pair) { return pair == 0 ? 0 : log_blocks + 2 * (pair - 1); }));
#pragma unroll 1
    for (std::uint32_t i = 0; i < share; ++i) {
      const StepWords words(own, i, is_polyval);
      auto& to = matrix[i * Warps + warp];
#pragma unroll
      for (std::uint32_t n = 0; n < tiles_of_product; ++n) {
#pragma unroll
        for (std::uint32_t half = 0; half < 2; ++half) to[place(half, n)] = words.mask(n, half);
      }
    }
  }

  __device__ __forceinline__ void fill_rest(const gf128::Element* powers_of_two, bool is_polyval) {
    const std::uint32_t lane = lane_index();
    const SegmentWords words(sequence_of(powers_of_two[squares - 1]));
#pragma unroll
    for (std::uint32_t n = 0; n < tiles_of_product; ++n) {
      matrix[Steps][place(0, n)] = words.mask(n);
      matrix[Steps][place(1, n)] = 0;
    }
    const gf128::Element of_rows =
        power<warp_len / 4, 2>(powers_of_two, 4 * (7 - lane % 8), [](std::uint32_t pair) { return 2 + 2 * pair; });
    joining[lane] = times_x(from_lane(of_rows, lane / 4), 32 * (lane % 2 ^ (is_polyval ? 1 : 0)));
  }

 private:
  // Where lane 4 g + t has word t of the row of column g of n-tile n, in half `half` of k.
  __device__ __forceinline__ static std::uint32_t place(std::uint32_t half, std::uint32_t n) {
    return half * shared_matrix_half / 4 + warp_len * n + lane_index();
  }
};

// InFlight: steps of a group.
template <int Steps, int InFlight, std::uint32_t Threads>
struct WarpgroupPolicy {
  static constexpr int steps = Steps;
  static constexpr int in_flight = InFlight;
  static constexpr std::uint32_t threads = Threads;
  static constexpr std::uint32_t warps = threads / warp_len;
  static constexpr std::size_t shared_len = sizeof(SharedMatrices<Steps>);
  static_assert(Steps == 2 * InFlight, "a segment is two groups, one in each set of registers");
  static_assert(Threads % (warps_of_group * warp_len) == 0, "whole warpgroups");
};

// A warp's chunk, with blocks of zeros in front that fill the segments. Without a chunk there are only zeros. Aligned:
// for text at multiples of 16, and slow for other text.
template <class Policy, bool Aligned>
class WarpgroupHash {
 public:
  using Shared = SharedMatrices<Policy::steps>;

  __device__ __forceinline__ WarpgroupHash(const Chunk& chunk, bool is_there, std::uint32_t segments,
                                           const Shared& matrices)
      : chunk_(chunk),
        matrices_(matrices),
        address_(shared_address(&matrices)),
        segments_(segments),
        missing_(std::uint64_t{Shared::blocks_of_segment} * segments - (is_there ? chunk.blocks : 0)) {
    const Chunk::Direct direct = chunk.template direct<Aligned>();
    past_ = Aligned ? 0 : cuda::from_lane(direct.past, 0);
    // Of text that is not aligned, a lane loads the second word of its blocks.
    origin_ = direct.origin - sizeof(uint4) * (missing_ - lane_index()) + (past_ != 0 ? sizeof(uint4) : 0);
    direct_begin_ = static_cast<std::uint32_t>((direct.begin + missing_ + blocks_of_group_ - 1) / blocks_of_group_);
    direct_end_ = is_there ? static_cast<std::uint32_t>((direct.end + missing_) / blocks_of_group_) : 0;
  }

  // The sum of X_i H^(n-1-i) over the chunk's blocks, in all lanes.
  __device__ __forceinline__ gf128::Element sum() {
    Counts counts;
    counts.clear();
    uint4 x[Policy::in_flight];
    uint4 y[Policy::in_flight];
    load(0, x);
#pragma unroll 1
    for (std::uint32_t segment = 0; segment < segments_; ++segment) {
      const uint4 rows = words_of(counts);
      begin_products();
      multiply_by_shared<false>(counts.of_tile, rows, address_ + shared_matrix_len * Policy::steps);
      end_products();
      load(2 * segment + 1, y);
      if constexpr (!Aligned) join_words(2 * segment, x);
      multiply(counts, x, 0);
      if (segment + 1 < segments_) load(2 * segment + 2, x);
      if constexpr (!Aligned) join_words(2 * segment + 1, y);
      multiply(counts, y, Policy::in_flight);
    }
    return join(words_of(counts));
  }

 private:
  static constexpr std::uint32_t blocks_of_group_ = Policy::in_flight * warp_len;

  // The lane's blocks of a group.
  __device__ __forceinline__ void load(std::uint32_t group, uint4 (&x)[Policy::in_flight]) const {
    const std::uint64_t first = std::uint64_t{blocks_of_group_} * group;
    if (group >= direct_begin_ && group < direct_end_) {
      const auto* const p = reinterpret_cast<const std::uint8_t*>(origin_ + sizeof(uint4) * first);
#pragma unroll
      for (int n = 0; n < Policy::in_flight; ++n) x[n] = load_ahead(p + sizeof(uint4) * warp_len * n);
      return;
    }
#pragma unroll 1
    for (std::uint64_t i = first + lane_index(); i < first + blocks_of_group_; i += warp_len) {
      const Block block = i < missing_ ? Block{} : chunk_.load(i - missing_);
#pragma unroll
      for (int n = 0; n + 1 < Policy::in_flight; ++n) x[n] = x[n + 1];
      x[Policy::in_flight - 1] = make_uint4(block.words[0], block.words[1], block.words[2], block.words[3]);
    }
  }

  // Makes blocks of the words that load() has loaded, of each group in turn.
  __device__ __forceinline__ void join_words(std::uint32_t group, uint4 (&x)[Policy::in_flight]) {
    if (past_ == 0 || group < direct_begin_ || group >= direct_end_) return;
    const std::uint32_t lane = lane_index();
    Block rows[Policy::in_flight];
#pragma unroll
    for (int n = 0; n < Policy::in_flight; ++n) rows[n] = {{x[n].x, x[n].y, x[n].z, x[n].w}};
    if (group == direct_begin_) {  // the word before lane 0's
      const std::uint64_t first = std::uint64_t{blocks_of_group_} * group;
      before_ = load_aligned(global_at<const std::uint8_t>(origin_ + sizeof(uint4) * (first - lane) - sizeof(uint4)));
    }
    const Block last = rows[Policy::in_flight - 1];
    join_rows(rows, before_, lane == warp_len - 1, past_);
    before_ = last;
#pragma unroll
    for (int n = 0; n < Policy::in_flight; ++n) {
      x[n] = make_uint4(rows[n].words[0], rows[n].words[1], rows[n].words[2], rows[n].words[3]);
    }
  }

  // Adds the products of a group, whose first step is `step` of the segment.
  __device__ __forceinline__ void multiply(Counts& counts, const uint4 (&x)[Policy::in_flight],
                                           std::uint32_t step) const {
    begin_products();
#pragma unroll
    for (std::uint32_t n = 0; n < Policy::in_flight; ++n) {
      multiply_by_shared<true>(counts.of_tile, x[n], address_ + shared_matrix_len * (step + n));
    }
    end_products();
    wait_for_products();
  }

  // Word t of row g, even words and odd words, in lane 4 g + t: fragment A of the lower half of k.
  __device__ __forceinline__ static uint4 words_of(const Counts& counts) {
    uint4 rows{};
    counts.parities(rows.x, rows.y);
    return rows;
  }

  __device__ __forceinline__ gf128::Element join(const uint4& rows) const {
    const std::uint32_t lane = lane_index();
    Block row{};
#pragma unroll
    for (std::uint32_t w = 0; w < 4; ++w) {
      const std::uint32_t even = cuda::from_lane(rows.x, lane / 4 * 4 + w);
      const std::uint32_t odd = cuda::from_lane(rows.y, lane / 4 * 4 + w);
      row.words[w] = lane % 4 == 0 ? even : lane % 4 == 1 ? odd : 0;
    }
    gf128::Element sum = gf128::gcm_multiply(mend(to_element(row)), matrices_.joining[lane]);
#pragma unroll
    for (std::uint32_t distance = 16; distance > 0; distance /= 2) {
      sum = gf128::add(sum, from_lane_xor(sum, distance));
    }
    return sum;
  }

  const Chunk& chunk_;
  const Shared& matrices_;
  SharedAddress address_;  // of the first matrix
  std::uint32_t segments_;
  std::uint64_t missing_;
  std::uintptr_t origin_;  // where the lane's block of step 0 would be; may be before the text
  std::uint32_t direct_begin_;
  std::uint32_t direct_end_;
  std::uint32_t past_;  // how far text lies past multiples of 16
  Block before_{};      // the lane's last word of the group before
};

// The chunk of a warp, number `first` + part, which may not exist, and the most blocks of a chunk in its warpgroup.
struct OwnChunk {
  Chunk chunk;
  bool is_there;
  std::uint64_t most_blocks;
};

// Lanes 0 to 3 find the chunks of the four warps; each warp takes its own from there.
__device__ __forceinline__ OwnChunk find_chunks_of_group(const ChunkList& list, std::uint64_t first,
                                                         std::uint32_t part) {
  const std::uint64_t left = list.chunks - first;
  const std::uint64_t lane = lane_index() % warps_of_group;
  const std::uint64_t number = lane < left ? first + lane : first;
  const std::uint32_t message = find_message_alone(list.first_chunk, list.messages, list.chunks, number);
  const Chunk chunk = chunk_at(list, message, number);
  std::uint64_t most = chunk.blocks;
#pragma unroll
  for (std::uint32_t distance = 1; distance < warps_of_group; distance *= 2) {
    const std::uint64_t other = cuda::from_lane_xor(most, distance);
    most = most > other ? most : other;
  }
  return {{list.views[cuda::from_lane(message, part)], cuda::from_lane(chunk.first, part),
           cuda::from_lane(chunk.blocks, part)},
          part < left,
          cuda::from_lane(most, 0)};
}

// Dynamic, of Policy::shared_len bytes.
extern __shared__ uint4 shared_memory[];

template <class Policy, bool Aligned>
__global__ void __launch_bounds__(Policy::threads, 1) hash_chunks_by_warpgroup(const __grid_constant__ ChunkList list) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Shared = SharedMatrices<Policy::steps>;
  constexpr std::uint32_t fillers = 8;
  static_assert(Policy::warps > fillers, "eight warps make the matrices, one the rest");
  auto& matrices = *reinterpret_cast<Shared*>(shared_memory);
  const std::uint32_t warp = warp_index();
  if (warp < fillers) matrices.template fill<fillers>(list.powers, warp, list.is_polyval());
  if (warp == fillers) matrices.fill_rest(list.powers, list.is_polyval());
  show_shared_memory_to_products();
  __syncthreads();
  const std::uint64_t stride = std::uint64_t{gridDim.x} * Policy::warps;
  for (std::uint64_t first = warps_of_group * (blockIdx.x + std::uint64_t{gridDim.x} * (warp / warps_of_group));
       first < list.chunks; first += stride) {
    const std::uint32_t part = warp % warps_of_group;
    const OwnChunk own = find_chunks_of_group(list, first, part);
    const auto segments =
        static_cast<std::uint32_t>((own.most_blocks + Shared::blocks_of_segment - 1) / Shared::blocks_of_segment);
    const gf128::Element sum = WarpgroupHash<Policy, Aligned>(own.chunk, own.is_there, segments, matrices).sum();
    if (own.is_there && lane_index() == 0) list.sums[first + part] = sum;
  }
  __syncthreads();  // shared memory still has values that reveal the key
  for (std::uint32_t i = threadIdx.x; i < Policy::shared_len / sizeof(uint4); i += Policy::threads)
    shared_memory[i] = {};
#else
  __trap();  // it is compiled for sm_90a only
#endif
}

namespace {

using Policy = WarpgroupPolicy<16, 8, 384>;
static_assert(SharedMatrices<Policy::steps>::blocks_of_segment == warpgroup_chunk_multiple);
static_assert(SharedMatrices<Policy::steps>::squares <= tensor_squares, "the table of powers is long enough");

static_assert(Policy::shared_len == warpgroup_shared_len,
              "what the choice demands of a device (algorithm.hpp) is what the kernel takes");

}  // namespace

std::uint32_t warpgroup_warps(const Device& device) { return device.multiprocessors * Policy::warps; }

void hash_by_warpgroups(const Device& device, Stream stream, const ChunkList& list) {
  const std::uint64_t groups = (list.chunks + warps_of_group - 1) / warps_of_group;
  const std::uint64_t blocks = groups < device.multiprocessors ? groups : device.multiprocessors;
  launch(list.is_aligned ? &hash_chunks_by_warpgroup<Policy, true> : &hash_chunks_by_warpgroup<Policy, false>,
         LaunchConfiguration{static_cast<std::uint32_t>(blocks), Policy::threads, Policy::shared_len}, stream, list);
}

}  // namespace warpcipher::cuda::ghash
