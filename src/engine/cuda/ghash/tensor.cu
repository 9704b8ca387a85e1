// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/cuda/ghash/counts.cuh"
#include "engine/cuda/ghash/launches.hpp"
#include "engine/cuda/ghash/matrices.cuh"
#include "engine/cuda/ghash/tensor.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::ghash {

// GHASH of many short messages of one key on tensor cores, one message in each row of the matrix. A warp takes eight
// messages, four lanes each, from the first block to the tag. So it joins no lanes, and computes no products of two
// elements.
//
// The blocks of AAD and text and the block of the lengths are one row X_0 ... X_n-1, whose hash is the sum of X_i
// H^(n-i). Rows are aligned at their ends, with zeros in front. A step multiplies four blocks of each message by four
// powers of H (matrix.hpp; lane l = 4 g + t):
//
//   step     0         1                     S-1
//   row g    0 0 0 A   T T T T   ...   T T T L     t = 0 to 3, times H^(4 S), H^(4 S - 1) ... H^2, H^1
//
// A segment has up to Steps steps; the first segment may be shorter. Between two segments the rows are multiplied by
// H^(4 Steps). At the end lane 4 g + t has word t of a message's hash, even words and odd words.
//
// Text that does not begin at a multiple of 16 is loaded as the aligned words that it lies in. Lane t has the second
// word of its block, and lane t - 1 the first; lane 0's is lane 3's of the step before. The eight messages
// may lie at different places. Such batches have their own kernel.
//
// The time depends only on the lengths and on where the texts lie.
inline constexpr std::uint32_t lanes_of_message = 4;
inline constexpr std::uint32_t messages_of_warp = warp_len / lanes_of_message;

// InFlight: steps whose loads are in flight.
template <int Steps, int InFlight, std::uint32_t Threads>
struct MessageRowsPolicy {
  static constexpr int steps = Steps;
  static constexpr int in_flight = InFlight;
  static constexpr std::uint32_t threads = Threads;
  static constexpr std::uint32_t warps = threads / warp_len;
  static_assert(Steps % InFlight == 0, "segments begin at a fixed place of the loads in flight");
};

// The matrices of one key, in shared memory.
template <int Steps>
struct MessageMatrices : StepMatrices<Steps> {
  using StepMatrices<Steps>::powers;
  static constexpr std::uint32_t squares = log_2(powers) + 1;

  // As Matrices::fill(). Matrix k is for H^(powers - k); the first is also the matrix between segments.
  template <std::uint32_t Warps>
  __device__ __forceinline__ void fill(const gf128::Element* powers_of_two, std::uint32_t warp, bool is_polyval) {
    constexpr std::uint32_t share = (Steps + Warps - 1) / Warps;  // steps of a warp: warp, warp + Warps, ...
    constexpr std::uint32_t width = 8;
    constexpr std::uint32_t pairs = (squares + 1) / 2;
    static_assert(powers_of_step * share <= width && width * pairs <= warp_len, "each warp finds its powers at once");
    const std::uint32_t lane = lane_index();
    const std::uint32_t own_number =
        powers_of_step * (lane % width / powers_of_step * Warps + warp) + lane % powers_of_step;
    const gf128::Element own = MatrixParts::power<width, pairs>(
        powers_of_two, own_number < powers ? powers - own_number : 0, [](std::uint32_t pair) { return 2 * pair; });
    const Sequence sequence = sequence_of(own);
#pragma unroll 1
    for (std::uint32_t i = 0; i < share; ++i) {
      if (i * Warps + warp < Steps) this->fill_step(sequence, i, i * Warps + warp, is_polyval);
    }
    if (warp == 0) this->fill_segment(from_lane(own, 0));
  }
};

// A lane's loads: every fourth block of its message's row, from number t - missing on. Aligned: for texts at
// multiples of 16, and slow for others.
template <bool Aligned>
class RowOfMessage {
 public:
  // steps: of the longest message of the warp.
  __device__ __forceinline__ RowOfMessage(const HashView& view, std::uint32_t blocks, std::uint32_t steps,
                                          bool is_polyval)
      : view_(view),
        is_polyval_(is_polyval),
        blocks_(static_cast<std::int32_t>(blocks)),
        first_(static_cast<std::int32_t>(lane_index() % lanes_of_message + blocks - lanes_of_message * steps)) {
    const auto aad_blocks = static_cast<std::int32_t>(view.aad_blocks());
    const auto text = reinterpret_cast<std::uintptr_t>(global(view.text));
    past_ = static_cast<std::uint32_t>(text % 16);
    const auto whole = Aligned && past_ != 0 ? 0 : static_cast<std::int32_t>(view.text_len / 16);
    origin_ = text + (past_ != 0 ? 16 - past_ : 0) + 16 * (std::int64_t{first_} - aad_blocks);
    // Steps whose block is whole and in the text.
    direct_begin_ = steps_before(aad_blocks);
    direct_end_ = steps_before(aad_blocks + whole);
  }

  // In all lanes: the steps that are direct for each of them.
  __device__ __forceinline__ void agree() {
#pragma unroll
    for (std::uint32_t mask = 1; mask < warp_len; mask *= 2) {
      const std::int32_t begin = cuda::from_lane_xor(direct_begin_, mask);
      const std::int32_t end = cuda::from_lane_xor(direct_end_, mask);
      direct_begin_ = direct_begin_ > begin ? direct_begin_ : begin;
      direct_end_ = direct_end_ < end ? direct_end_ : end;
    }
  }

  // The loads of a step, of each step in turn.
  __device__ __forceinline__ uint4 load(std::int32_t step) {
    if (step >= direct_begin_ && step < direct_end_) {
      if (!Aligned && step == direct_begin_) before_ = *word_of(step - 1, past_ != 0 && is_last());
      return load_with_neighbours(word_of(step, true));
    }
    const std::int32_t i = first_ + static_cast<std::int32_t>(lanes_of_message) * step;
    Block block{};
    if (i == blocks_ - 1) {
      block = is_polyval_ ? Polyval::block(Polyval::lengths(view_)) : to_block(Ghash::lengths(view_));
    } else if (i >= 0) {
      block = Chunk{view_, 0, 0}.load(static_cast<std::uint64_t>(i));
    }
    return make_uint4(block.words[0], block.words[1], block.words[2], block.words[3]);
  }

  // The block of a step, of each step in turn, from the loads.
  __device__ __forceinline__ uint4 block_of(std::int32_t step, const uint4& loaded) {
    if (Aligned || step < direct_begin_ || step >= direct_end_) return loaded;
    const Block own{{loaded.x, loaded.y, loaded.z, loaded.w}};
    const std::uint32_t lane_before = (lane_index() & ~(lanes_of_message - 1)) + (lane_index() - 1) % lanes_of_message;
    Block first;
    const std::uint32_t last[4] = {before_.x, before_.y, before_.z, before_.w};
#pragma unroll
    for (std::uint32_t w = 0; w < 4; ++w)
      first.words[w] = cuda::from_lane(is_last() ? last[w] : own.words[w], lane_before);
    before_ = loaded;
    const Block joined = join_at(first, own, past_);
    return past_ == 0 ? loaded : make_uint4(joined.words[0], joined.words[1], joined.words[2], joined.words[3]);
  }

 private:
  __device__ __forceinline__ static bool is_last() { return lane_index() % lanes_of_message == lanes_of_message - 1; }

  // Where the lane's word of a direct step is; with `is_there` false some word that is.
  __device__ __forceinline__ const uint4* word_of(std::int32_t step, bool is_there) const {
    return reinterpret_cast<const uint4*>(origin_ +
                                          16 * lanes_of_message * std::int64_t{is_there ? step : direct_begin_});
  }

  // The number of steps whose block of this lane is before block i.
  __device__ __forceinline__ std::int32_t steps_before(std::int32_t i) const {
    const auto lanes = static_cast<std::int32_t>(lanes_of_message);
    return i <= first_ ? 0 : (i - first_ + lanes - 1) / lanes;
  }

  const HashView& view_;
  bool is_polyval_;
  std::int32_t blocks_;
  std::int32_t first_;  // the lane's block of step 0: negative in front of the row
  std::uintptr_t
      origin_;          // where it would be in the text; unless that is aligned, where the second word of it would be
  std::uint32_t past_;  // how far the text lies past a multiple of 16
  std::int32_t direct_begin_;
  std::int32_t direct_end_;
  uint4 before_{};  // the lane's load for the step before
};

// Word t of a message's hash, even words and odd words, of lane 4 g + t: sums over all steps.
template <int Steps>
class MessageSums {
 public:
  __device__ __forceinline__ void clear() { counts_.clear(); }

  __device__ __forceinline__ void add(const MessageMatrices<Steps>& matrices, std::uint32_t place, const uint4& x) {
#pragma unroll
    for (std::uint32_t half = 0; half < 2; ++half) {
      uint4 columns[4];
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i) columns[i] = matrices.step[place][4 * half + i][lane_index()];
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i) {
        const std::uint32_t n = 8 * half + 2 * i;
        counts_.add(n, x, columns[i].x, columns[i].y);
        counts_.add(n + 1, x, columns[i].z, columns[i].w);
      }
    }
  }

  // Multiplies by H^(4 Steps).
  __device__ __forceinline__ void next_segment(const MessageMatrices<Steps>& matrices) {
    std::uint32_t even, odd;
    counts_.parities(even, odd);
#pragma unroll
    for (std::uint32_t n = 0; n < tiles_of_product; ++n) {
      counts_.begin(n, even, odd, matrices.segment[n][lane_index()]);
    }
  }

  // Word t of the hash, in GHASH's order.
  __device__ __forceinline__ std::uint32_t word(bool is_polyval) const {
    std::uint32_t first, second;
    counts_.parities(first, second);
    std::uint32_t even = is_polyval ? second : first;
    const std::uint32_t odd = is_polyval ? first : second;
    const std::uint32_t lane = lane_index();
    const std::uint32_t t = lane % lanes_of_message;
    std::uint32_t below = cuda::from_lane(odd, lane == 0 ? 0 : lane - 1);
    const std::uint32_t last = cuda::from_lane(odd, lane | 3);
    const std::uint32_t last_even = cuda::from_lane(even, lane | 3);
    if (t == 0) even ^= word_of_mending(last_even);
    if (t == 1) below ^= word_of_mending(last);
    return even ^ word_times_x32(t, below, last);
  }

 private:
  Counts counts_;
};

// Writes or checks word t of a tag, in lane 4 g + t; is_there: the same for the lanes of a message, all of which take
// part.
__device__ __forceinline__ void settle_word(const HashView& view, std::uint32_t message, bool is_there,
                                            std::uint32_t word, std::uint32_t* verdicts) {
  const std::uint32_t begin = 4 * (lane_index() % lanes_of_message);
  const std::uint32_t len = view.tag_len <= begin ? 0 : view.tag_len - begin < 4 ? view.tag_len - begin : 4;
  std::uint8_t* const tag = global(view.tag) + begin;
  const bool whole = len == 4 && reinterpret_cast<std::uintptr_t>(tag) % 4 == 0;
  if (verdicts == nullptr) {
    if (is_there && whole) *reinterpret_cast<std::uint32_t*>(tag) = word;
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      if (is_there && !whole && i < len) tag[i] = static_cast<std::uint8_t>(word >> (8 * i));
    }
    return;
  }
  std::uint32_t difference = 0;
  if (whole) {
    difference = word ^ *reinterpret_cast<const std::uint32_t*>(tag);
  } else {
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      if (i < len) difference |= (word >> (8 * i) ^ tag[i]) & 0xffu;
    }
  }
  difference |= cuda::from_lane_xor(difference, 1);
  difference |= cuda::from_lane_xor(difference, 2);
  if (is_there && begin == 0) verdicts[message] = difference == 0 ? 1 : 0;
}

// Dynamic: a MessageMatrices.
extern __shared__ uint4 shared_memory[];

template <class Policy, bool Aligned>
__global__ void __launch_bounds__(Policy::threads, 1)
    hash_messages_by_matrix(const __grid_constant__ ChunkList list, std::uint32_t* verdicts) {
#if !defined(__CUDA_ARCH__) || (__CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 1000)
  constexpr std::int32_t in_flight = Policy::in_flight;
  auto& matrices = *reinterpret_cast<MessageMatrices<Policy::steps>*>(shared_memory);
  const std::uint32_t warp = warp_index();
  const bool is_polyval = list.is_polyval();
  matrices.template fill<Policy::warps>(list.powers, warp, is_polyval);
  __syncthreads();
  const std::uint64_t stride = std::uint64_t{gridDim.x} * Policy::warps * messages_of_warp;
  std::uint64_t first = (blockIdx.x + std::uint64_t{gridDim.x} * warp) * messages_of_warp;
  for (; first < list.messages; first += stride) {
    const std::uint64_t own = first + lane_index() / lanes_of_message;
    const bool is_there = own < list.messages;
    const auto place = static_cast<std::uint32_t>(is_there ? own : first);
    const std::uint32_t message = list.order != nullptr ? list.order[place] : place;
    const HashView& view = list.views[message];
    const auto blocks = static_cast<std::uint32_t>(view.blocks()) + 1;
    std::uint32_t steps = (blocks + lanes_of_message - 1) / lanes_of_message;
#pragma unroll
    for (std::uint32_t mask = lanes_of_message; mask < warp_len; mask *= 2) {
      const std::uint32_t other = cuda::from_lane_xor(steps, mask);
      steps = steps > other ? steps : other;
    }
    steps = cuda::from_lane(steps, 0);
    RowOfMessage<Aligned> row(view, blocks, steps, is_polyval);
    row.agree();
    const std::uint32_t mask_word =
        (list.masks != nullptr ? list.masks[message] : view.mask).words[lane_index() % lanes_of_message];

    // Steps are in groups of those in flight, and the last group ends a segment. Steps before step 0 are skipped.
    const auto end = static_cast<std::int32_t>(steps);
    std::int32_t step = end - (end + in_flight - 1) / in_flight * in_flight;
    auto step_place = static_cast<std::uint32_t>((Policy::steps - (end - step) % Policy::steps) % Policy::steps);
    MessageSums<Policy::steps> sums;
    sums.clear();
    uint4 x[Policy::in_flight] = {};
#pragma unroll
    for (std::int32_t d = 0; d < in_flight; ++d) {
      if (step + d >= 0) x[d] = row.load(step + d);
    }
#pragma unroll 1
    for (; step < end; step += in_flight) {
      if (step_place == 0 && step > 0) sums.next_segment(matrices);
#pragma unroll
      for (std::int32_t d = 0; d < in_flight; ++d) {
        if (step + d >= 0) {
          sums.add(matrices, step_place + static_cast<std::uint32_t>(d), row.block_of(step + d, x[d]));
        }
        if (step + d + in_flight < end) x[d] = row.load(step + d + in_flight);
      }
      step_place = (step_place + Policy::in_flight) % Policy::steps;
    }
    const std::uint32_t word = sums.word(is_polyval);
    if (is_polyval) {
      if (is_there) list.polyvals[message].words[3 - lane_index() % lanes_of_message] = byte_swap(word);
    } else {
      settle_word(view, message, is_there, word ^ mask_word, verdicts);
    }
  }
  __syncthreads();  // shared memory still has values that reveal the key
  for (std::uint32_t i = threadIdx.x; i < sizeof matrices / sizeof(uint4); i += Policy::threads) shared_memory[i] = {};
#else
  __trap();  // choose_ghash() never chooses it for such a device
#endif
}

namespace {

// 99 KiB of shared memory: fits compute capability 8.6 and 8.9. H200, only the kernel, text in device memory (a plain
// read runs at 4550 GB/s): 3510 GB/s for 4 GiB, 3320 GB/s for 1 GiB. Segments of 16 steps, 130 KiB, gave 3680 and 3470.
// But on such a GPU warpgroups hash long texts, and GPUs without warpgroups have less memory bandwidth than any of
// these rates.
using OneKey = TensorPolicy<8, 8, Sharing::one_key>;
using ManyKeys = TensorPolicy<4, 8, Sharing::many_keys>;  // 26.5 KiB for each warp: 212 KiB
constexpr std::uint32_t least_warps_of_many_keys = 6;     // 159 KiB, of compute capability 8.0
using Rows96 = MessageRowsPolicy<24, 4, 512>;  // 98 KiB: rows of 96 blocks without a product between segments
constexpr std::size_t rows_len = sizeof(MessageMatrices<Rows96::steps>);
static_assert(Matrices<OneKey::steps>::squares <= tensor_squares &&
                  MessageMatrices<Rows96::steps>::squares <= tensor_squares,
              "the table of powers is long enough for every policy");
static_assert(OneKey::shared_len == one_key_shared_len &&
                  ManyKeys::shared_len_of(least_warps_of_many_keys) == many_keys_shared_len,
              "what the choice demands of a device (algorithm.hpp) is what the kernels take");
static_assert(rows_len <= OneKey::shared_len, "a device that has one of the algorithms for one key has both");

template <class Policy>
void launch_policy(const Device& device, Stream stream, const ChunkList& list, std::uint32_t warps = Policy::warps) {
  const std::uint64_t blocks = list.chunks < device.multiprocessors ? list.chunks : device.multiprocessors;
  const LaunchConfiguration configuration{static_cast<std::uint32_t>(blocks), warps * warp_len,
                                          Policy::shared_len_of(warps)};
  launch(list.is_aligned ? &hash_chunks_by_matrix<Policy, true> : &hash_chunks_by_matrix<Policy, false>, configuration,
         stream, list);
}

}  // namespace

std::uint32_t tensor_warps(const Device& device, GhashAlgorithm algorithm) {
  return algorithm == GhashAlgorithm::tensor_warpgroups ? warpgroup_warps(device)
                                                        : device.multiprocessors * OneKey::warps;
}

void hash_on_tensor_cores(const Device& device, Stream stream, GhashAlgorithm algorithm, const ChunkList& list) {
  if (algorithm == GhashAlgorithm::tensor_warpgroups) return hash_by_warpgroups(device, stream, list);
  if (algorithm == GhashAlgorithm::tensor_many_keys) {
    const std::size_t warps = device.shared_len / ManyKeys::shared_len_of(1);
    return launch_policy<ManyKeys>(device, stream, list,
                                   static_cast<std::uint32_t>(std::min<std::size_t>(warps, ManyKeys::warps)));
  }
  launch_policy<OneKey>(device, stream, list);
}

void hash_rows(const Device& device, Stream stream, const ChunkList& list, std::uint32_t* verdicts) {
  constexpr std::uint64_t messages_of_block = std::uint64_t{messages_of_warp} * Rows96::warps;
  const std::uint64_t wanted = (list.messages + messages_of_block - 1) / messages_of_block;
  const std::uint64_t blocks = wanted < device.multiprocessors ? wanted : device.multiprocessors;
  launch(list.is_aligned ? &hash_messages_by_matrix<Rows96, true> : &hash_messages_by_matrix<Rows96, false>,
         {static_cast<std::uint32_t>(blocks), Rows96::threads, rows_len}, stream, list, verdicts);
}

}  // namespace warpcipher::cuda::ghash
