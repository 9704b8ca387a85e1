// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/inputs/summary.hpp"

#include <cstddef>

#include "engine/cuda/inputs/message_view.cuh"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/intrinsics.cuh"
#include "engine/cuda/runtime/launch.hpp"
#include "mode/mode.hpp"

namespace warpcipher::cuda {

// The plan's counts of each message of a columnar batch (summary.hpp), and sums of it over lanes.
inline constexpr std::uint64_t sum_limit = std::uint64_t{1} << 62;

__device__ __forceinline__ std::uint64_t add_to_limit(std::uint64_t a, std::uint64_t b) {
  return a + b < sum_limit ? a + b : sum_limit;
}

__device__ __forceinline__ Sums add(const Sums& a, const Sums& b) {
  return {add_to_limit(a.in, b.in), add_to_limit(a.out, b.out), add_to_limit(a.tiles, b.tiles),
          add_to_limit(a.chunks, b.chunks)};
}

__device__ __forceinline__ Sums from_lane_xor(const Sums& a, std::uint32_t mask) {
  return {cuda::from_lane_xor(a.in, mask), cuda::from_lane_xor(a.out, mask), cuda::from_lane_xor(a.tiles, mask),
          cuda::from_lane_xor(a.chunks, mask)};
}

__device__ __forceinline__ Sums from_lane_below(const Sums& a, std::uint32_t distance) {
  return {cuda::from_lane_below(a.in, distance), cuda::from_lane_below(a.out, distance),
          cuda::from_lane_below(a.tiles, distance), cuda::from_lane_below(a.chunks, distance)};
}

__device__ __forceinline__ std::uint64_t highest(std::uint64_t a, std::uint64_t b) { return a > b ? a : b; }

__device__ __forceinline__ Sums last_of_lanes(const Sums& a) {
  return {from_lane(a.in, warp_len - 1), from_lane(a.out, warp_len - 1), from_lane(a.tiles, warp_len - 1),
          from_lane(a.chunks, warp_len - 1)};
}

// Whether numbers of all lanes have so few bits that 32 of them hold the sums over a warp.
__device__ __forceinline__ bool are_small(std::uint64_t bits) { return all_lanes(bits >> 27 == 0); }

__device__ __forceinline__ std::uint64_t bits_of(const Sums& a) { return a.in | a.out | a.tiles | a.chunks; }

// Inclusive sums over the lanes. Small numbers take a third of the instructions.
__device__ __forceinline__ Sums scan_lanes(Sums sums) {
  if (are_small(bits_of(sums))) {
    std::uint32_t numbers[4] = {static_cast<std::uint32_t>(sums.in), static_cast<std::uint32_t>(sums.out),
                                static_cast<std::uint32_t>(sums.tiles), static_cast<std::uint32_t>(sums.chunks)};
#pragma unroll
    for (std::uint32_t distance = 1; distance < warp_len; distance *= 2) {
#pragma unroll
      for (std::uint32_t& number : numbers) {
        const std::uint32_t below = cuda::from_lane_below(number, distance);
        if (lane_index() >= distance) number += below;
      }
    }
    return {numbers[0], numbers[1], numbers[2], numbers[3]};
  }
#pragma unroll
  for (std::uint32_t distance = 1; distance < warp_len; distance *= 2) {
    const Sums below = from_lane_below(sums, distance);
    if (lane_index() >= distance) sums = add(sums, below);
  }
  return sums;
}

// Lengths of a message, limited so that the sum of two does not overflow. A length above the limit is wrong anyway.
struct Lengths {
  std::uint64_t in;
  std::uint64_t text;
  std::uint64_t padded;
  std::uint64_t out;
  std::uint64_t aad;
  std::uint64_t chunk_blocks;  // 0: no GHASH
  std::uint64_t least_chunked;
  std::uint32_t unit_log;
  std::uint32_t lead = 0;  // where tiles lack ends
  bool steals;
  bool lacks_ends;

  __device__ __forceinline__ Lengths(const ColumnView& c, std::uint32_t i)
      : aad(c.aad_lengths != nullptr ? c.aad_lengths[i] : c.aad_len),
        chunk_blocks(c.chunk_blocks),
        least_chunked(c.least_chunked),
        unit_log(c.unit_log),
        steals(c.steals),
        lacks_ends(c.lacks_ends) {
    // GCM's text begins with counter 2. Other counters are IVs.
    if (lacks_ends) lead = c.is_aead ? 2 : global(c.ivs)[std::uint64_t{16} * i + 15];
    const std::uint64_t len = c.in_len_at(i);
    in = len < sum_limit ? len : sum_limit;
    text = c.encrypting ? in : in < c.tag_len ? 0 : in - c.tag_len;
    padded = output_len(text, c.pads, 1u << c.block_log);
    out = c.encrypting ? padded + c.tag_len : text;
  }

  __device__ __forceinline__ std::uint64_t units() const {
    return (steals ? padded : padded + (1u << unit_log) - 1) >> unit_log;
  }
  __device__ __forceinline__ std::uint64_t units_of_tiles() const {
    return lacks_ends ? units_before_end(padded, lead) : units();
  }
  __device__ __forceinline__ std::uint64_t hash_blocks() const {
    return (padded + 15) / 16 + aad / 16 + (aad % 16 != 0);
  }
  __device__ __forceinline__ bool is_in_rows() const { return hash_blocks() < least_chunked; }
  __device__ __forceinline__ Sums sums() const {
    return {in, out, (units_of_tiles() + tile_units - 1) / tile_units,
            chunk_blocks == 0 || is_in_rows() ? 0 : (hash_blocks() + chunk_blocks - 1) / chunk_blocks};
  }
};

// The counts of a warp or a block.
struct Totals {
  Sums sums;
  std::uint64_t units;
  std::uint64_t most_units;
  std::uint64_t hash_blocks;
  std::uint64_t most_hash_blocks;
  std::uint64_t end_units;
  std::uint64_t row_blocks;
  std::uint32_t in_rows;

  __device__ __forceinline__ static Totals of(const Lengths& lengths) {
    const bool is_in_rows = lengths.is_in_rows();
    return {lengths.sums(),
            lengths.units(),
            lengths.units(),
            lengths.hash_blocks(),
            lengths.hash_blocks(),
            lengths.units() - lengths.units_of_tiles(),
            is_in_rows ? lengths.hash_blocks() : 0,
            is_in_rows};
  }
};

__device__ __forceinline__ Totals add(const Totals& a, const Totals& b) {
  return {add(a.sums, b.sums),
          add_to_limit(a.units, b.units),
          highest(a.most_units, b.most_units),
          add_to_limit(a.hash_blocks, b.hash_blocks),
          highest(a.most_hash_blocks, b.most_hash_blocks),
          add_to_limit(a.end_units, b.end_units),
          add_to_limit(a.row_blocks, b.row_blocks),
          a.in_rows + b.in_rows};
}

__device__ __forceinline__ Totals from_lane_xor(const Totals& a, std::uint32_t mask) {
  return {from_lane_xor(a.sums, mask),
          cuda::from_lane_xor(a.units, mask),
          cuda::from_lane_xor(a.most_units, mask),
          cuda::from_lane_xor(a.hash_blocks, mask),
          cuda::from_lane_xor(a.most_hash_blocks, mask),
          cuda::from_lane_xor(a.end_units, mask),
          cuda::from_lane_xor(a.row_blocks, mask),
          cuda::from_lane_xor(a.in_rows, mask)};
}

// Of all lanes, in each of them. Small numbers take a quarter of the instructions.
__device__ __forceinline__ Totals sum_of_lanes(Totals own) {
  if (are_small(bits_of(own.sums) | own.units | own.hash_blocks)) {  // the others are parts of these, or 1
    std::uint32_t added[9] = {static_cast<std::uint32_t>(own.sums.in),
                              static_cast<std::uint32_t>(own.sums.out),
                              static_cast<std::uint32_t>(own.sums.tiles),
                              static_cast<std::uint32_t>(own.sums.chunks),
                              static_cast<std::uint32_t>(own.units),
                              static_cast<std::uint32_t>(own.hash_blocks),
                              static_cast<std::uint32_t>(own.end_units),
                              static_cast<std::uint32_t>(own.row_blocks),
                              own.in_rows};
    std::uint32_t most[2] = {static_cast<std::uint32_t>(own.most_units),
                             static_cast<std::uint32_t>(own.most_hash_blocks)};
#pragma unroll
    for (std::uint32_t mask = 1; mask < warp_len; mask *= 2) {
#pragma unroll
      for (std::uint32_t& number : added) number += cuda::from_lane_xor(number, mask);
#pragma unroll
      for (std::uint32_t& number : most) {
        const std::uint32_t other = cuda::from_lane_xor(number, mask);
        number = number > other ? number : other;
      }
    }
    return {
        {added[0], added[1], added[2], added[3]}, added[4], most[0], added[5], most[1], added[6], added[7], added[8]};
  }
#pragma unroll
  for (std::uint32_t mask = 1; mask < warp_len; mask *= 2) own = add(own, from_lane_xor(own, mask));
  return own;
}

// Dynamic: the counts of each warp of a block; then views that warps are about to store.
extern __shared__ uint4 shared_sums[];

namespace {

constexpr std::uint32_t threads = 128;
constexpr std::uint32_t sum_threads = messages_of_sum;  // a lane a message
constexpr std::uint32_t warps_of_sum = sum_threads / warp_len;
constexpr std::uint32_t scan_threads = 512;
constexpr std::size_t staged_len =
    warp_len * (sizeof(MessageView) > sizeof(HashView) ? sizeof(MessageView) : sizeof(HashView));
constexpr std::size_t sums_len = warps_of_sum * sizeof(Sums);

// A block a sum.
__global__ void __launch_bounds__(sum_threads)
    sum_columns(const __grid_constant__ ColumnView columns, const __grid_constant__ SummaryBuffers buffers,
                std::uint32_t sums) {
  auto* const of_warps = reinterpret_cast<Totals*>(shared_sums);
  const std::uint32_t warp = threadIdx.x / warp_len;
  Totals of_block{};  // of all its sums: in thread 0
  for (std::uint64_t number = blockIdx.x; number < sums; number += gridDim.x) {
    const std::uint64_t i = number * messages_of_sum + threadIdx.x;
    Totals own{};
    if (i < columns.count) own = Totals::of(Lengths(columns, static_cast<std::uint32_t>(i)));
    own = sum_of_lanes(own);
    if (lane_index() == 0) of_warps[warp] = own;
    __syncthreads();
    if (threadIdx.x == 0) {
      own = {};
      for (std::uint32_t w = 0; w < warps_of_sum; ++w) own = add(own, of_warps[w]);
      buffers.sums[number] = own.sums;
      of_block = add(of_block, own);
    }
    __syncthreads();  // of_warps is written again
  }
  if (threadIdx.x == 0 && of_block.most_hash_blocks != 0) {
    atomicAdd(&buffers.summary->units, static_cast<unsigned long long>(of_block.units));
    atomicMax(&buffers.summary->most_units, static_cast<unsigned long long>(of_block.most_units));
    atomicAdd(&buffers.summary->hash_blocks, static_cast<unsigned long long>(of_block.hash_blocks));
    atomicMax(&buffers.summary->most_hash_blocks, static_cast<unsigned long long>(of_block.most_hash_blocks));
    if (of_block.end_units != 0)
      atomicAdd(&buffers.summary->end_units, static_cast<unsigned long long>(of_block.end_units));
  }
  if (threadIdx.x == 0 && of_block.in_rows != 0) {
    atomicAdd(&buffers.summary->row_blocks, static_cast<unsigned long long>(of_block.row_blocks));
    atomicAdd(&buffers.summary->in_rows, static_cast<unsigned long long>(of_block.in_rows));
  }
}

// Replaces each sum by the sum of all before it. One block; a warp takes 32 neighbours for each of its loads.
__global__ void __launch_bounds__(scan_threads)
    scan_sums(const __grid_constant__ SummaryBuffers buffers, std::uint32_t sums, std::uint32_t messages) {
  constexpr std::uint32_t most_loads = 8;
  constexpr std::uint32_t warps = scan_threads / warp_len;
  const std::uint32_t wanted = (sums + scan_threads - 1) / scan_threads;
  const std::uint32_t loads = wanted < most_loads ? wanted : most_loads;
  auto* const of_warps = reinterpret_cast<Sums*>(shared_sums);
  const std::uint32_t warp = threadIdx.x / warp_len;
  Sums before{};
  for (std::uint64_t first = 0; first < sums; first += loads * scan_threads) {
    const std::uint64_t of_warp = first + loads * warp_len * warp;
    const std::uint64_t own = of_warp + lane_index();
    Sums loaded[most_loads] = {};
    Sums all{};
    if (of_warp < sums) {
#pragma unroll
      for (std::uint32_t k = 0; k < most_loads; ++k) {
        if (k < loads && own + warp_len * k < sums) loaded[k] = buffers.sums[own + warp_len * k];
      }
#pragma unroll
      for (std::uint32_t k = 0; k < most_loads; ++k) {
        if (k >= loads) break;
        const Sums up_to = scan_lanes(loaded[k]);
        const Sums below = from_lane_below(up_to, 1);
        loaded[k] = lane_index() == 0 ? all : add(all, below);
        all = add(all, last_of_lanes(up_to));
      }
    }
    if (lane_index() == 0) of_warps[warp] = all;
    __syncthreads();
    Sums next{};
    for (std::uint32_t w = 0; w < warps; ++w) {
      if (w == warp) next = before;
      before = add(before, of_warps[w]);
    }
#pragma unroll
    for (std::uint32_t k = 0; k < most_loads; ++k) {
      if (k < loads && own + warp_len * k < sums) buffers.sums[own + warp_len * k] = add(next, loaded[k]);
    }
    __syncthreads();  // of_warps is written again
  }
  if (threadIdx.x == 0) {
    buffers.first_tile[messages] = before.tiles;
    buffers.summary->tiles = before.tiles;
    if (buffers.first_chunk != nullptr) buffers.first_chunk[messages] = before.chunks;
    buffers.summary->chunks = before.chunks;
  }
}

// Ctr0 of CCM for a nonce of 12 bytes (SP 800-38C, section A.3): q - 1 = 2, the nonce, and a counter of 3 bytes.
__device__ __forceinline__ Block ccm_counter_of(const Block& nonce) {
  const std::uint32_t* n = nonce.words;
  return {{n[0] << 8 | 2, n[1] << 8 | n[0] >> 24, n[2] << 8 | n[1] >> 24, n[2] >> 24}};
}

// Finds the position of a message, checks it, and fills in its views.
class MessageChecker {
 public:
  __device__ __forceinline__ MessageChecker(const ColumnView& columns, std::uint32_t i, const Sums& before)
      : c_(columns),
        i_(i),
        lengths_(columns, i),
        in_(columns.in_offsets != nullptr ? columns.in_offsets[i] : before.in),
        out_(columns.out_offsets != nullptr ? columns.out_offsets[i] : before.out),
        aad_(columns.aad_offsets != nullptr ? columns.aad_offsets[i] : 0),
        aad_len_(columns.aad_offsets != nullptr ? columns.aad_lengths[i] : columns.aad_len),
        key_(columns.key_index != nullptr ? columns.key_index[i] : 0) {}

  __device__ __forceinline__ bool is_right() const {
    return key_ < c_.keys && (c_.encrypting || c_.in_len_at(i_) >= c_.tag_len) && lengths_.text >= c_.least_text_len &&
           lengths_.text <= c_.most_text_len && (!c_.whole_blocks || lengths_.text % (1u << c_.block_log) == 0) &&
           fits(in_, lengths_.in, c_.in_len) && fits(out_, lengths_.out, c_.out_len) &&
           fits(aad_, aad_len_, c_.aad_len) && aad_len_ <= c_.most_aad_len &&
           (!c_.counts_blocks || has_blocks_left()) && keeps_to_itself();
  }

  __device__ __forceinline__ MessageView view(bool right) const {
    MessageView view{};
    view.in = c_.in + in_;
    view.out = c_.out + out_;
    view.in_len = lengths_.text;
    view.out_len = lengths_.padded;
    view.pad = static_cast<std::uint32_t>(lengths_.padded - lengths_.text);
    view.units = lengths_.units();
    if (c_.iv_len == 8) view.start = load_words<2>(c_.ivs + std::uint64_t{8} * i_);
    if (c_.iv_len >= 16) view.start = load_words<4>(c_.ivs + std::uint64_t{c_.iv_len} * i_);
    if (c_.iv_len == 12) {
      view.start = load_words<3>(c_.ivs + std::uint64_t{12} * i_);
      view.start.words[3] = 0x01000000u;  // GCM: 1, big-endian: SP 800-38D, section 7.1, step 2
      if (c_.is_ccm) view.start = ccm_counter_of(view.start);
    }
    view.key = right ? key_ : 0;
    return view;
  }

  __device__ __forceinline__ HashView hash_view(bool right) const {
    HashView view{};
    view.aad = c_.aad + aad_;
    std::uint8_t* const plaintext = c_.encrypting ? const_cast<std::uint8_t*>(c_.in) + in_ : c_.out + out_;
    std::uint8_t* const ciphertext = c_.encrypting ? c_.out + out_ : const_cast<std::uint8_t*>(c_.in) + in_;
    view.text = c_.hashes_plaintext ? plaintext : ciphertext;
    view.tag = right ? ciphertext + lengths_.text : nullptr;
    view.aad_len = aad_len_;
    view.text_len = lengths_.text;
    view.chunk_blocks = c_.chunk_blocks;
    view.tag_len = c_.tag_len;
    view.key = c_.hashes_plaintext ? i_ : right ? key_ : 0;
    if (c_.iv_len == 24) view.mask = load_words<2>(c_.ivs + std::uint64_t{24} * i_ + 16);
    return view;
  }

 private:
  // Whether the blocks of key stream suffice (key_stream_left()).
  __device__ __forceinline__ bool has_blocks_left() const {
    const std::uint64_t first = load_words<1>(c_.ivs + std::uint64_t{16} * i_).words[0];
    return lengths_.text <= chacha_block_len * (chacha_most_blocks - first);
  }

  // Outputs are in the order of the messages, so each message is checked against its neighbours only. If in and out
  // share memory, the input of a message must lie between the outputs of its neighbours, and must be its own output or
  // not overlap it.
  __device__ __forceinline__ bool keeps_to_itself() const {
    const std::uint64_t end = out_ + lengths_.out;
    std::uint64_t end_before = out_;
    std::uint64_t begin_behind = end;
    if (c_.out_offsets != nullptr) {
      end_before = i_ == 0 ? 0 : c_.out_offsets[i_ - 1] + Lengths(c_, i_ - 1).out;
      begin_behind = i_ + 1 == c_.count ? c_.out_len : c_.out_offsets[i_ + 1];
      if (end_before > out_ || end > begin_behind) return false;
    }
    if (c_.apart) return true;
    const auto read = reinterpret_cast<std::uintptr_t>(c_.in) + in_;
    const auto read_end = read + lengths_.in;
    const auto out = reinterpret_cast<std::uintptr_t>(c_.out);
    if (read != out + out_ && read < out + end && out + out_ < read_end) return false;
    return (i_ == 0 || out + end_before <= read) && (i_ + 1 == c_.count || read_end <= out + begin_behind);
  }

  template <std::uint32_t Words>
  static __device__ __forceinline__ Block load_words(const std::uint8_t* p) {
    if (reinterpret_cast<std::uintptr_t>(p) % 4 != 0) return load_bytes(global(p), 4 * Words);
    Block block{};
#pragma unroll
    for (std::uint32_t w = 0; w < Words; ++w) block.words[w] = reinterpret_cast<const std::uint32_t*>(global(p))[w];
    return block;
  }

  const ColumnView& c_;
  const std::uint32_t i_;
  const Lengths lengths_;
  const std::uint64_t in_, out_, aad_, aad_len_;
  const std::uint32_t key_;
};

// Stores the views of a warp, `count` from `views` on, in whole lines: a lane that stored its own would write parts of
// many. staged: shared memory of the warp.
template <class View>
__device__ __forceinline__ void store_views(View* views, std::uint32_t count, const View& own, uint4* staged) {
  constexpr std::uint32_t vectors = sizeof(View) / sizeof(uint4);
  static_assert(sizeof(View) % sizeof(uint4) == 0 && vectors % 2 == 1, "neighbours begin in other banks");
  reinterpret_cast<View*>(staged)[lane_index()] = own;
  __syncwarp();
#pragma unroll
  for (std::uint32_t k = 0; k < vectors; ++k) {
    const std::uint32_t i = k * warp_len + lane_index();
    if (i < count * vectors) reinterpret_cast<uint4*>(views)[i] = staged[i];
  }
  __syncwarp();  // staged is written again
}

// A block a sum, which by now covers all messages before.
__global__ void __launch_bounds__(sum_threads)
    make_views(const __grid_constant__ ColumnView columns, const __grid_constant__ SummaryBuffers buffers,
               std::uint32_t sums) {
  auto* const of_warps = reinterpret_cast<Sums*>(shared_sums);
  const std::uint32_t warp = threadIdx.x / warp_len;
  uint4* const staged = shared_sums + (sums_len + warp * staged_len) / sizeof(uint4);
  for (std::uint64_t number = blockIdx.x; number < sums; number += gridDim.x) {
    const std::uint64_t i = number * messages_of_sum + threadIdx.x;
    const bool is_there = i < columns.count;
    const auto message = static_cast<std::uint32_t>(is_there ? i : 0);
    Sums before = buffers.sums[number];
    const Sums up_to = scan_lanes(is_there ? Lengths(columns, message).sums() : Sums{});
    const Sums below = from_lane_below(up_to, 1);
    if (lane_index() == warp_len - 1) of_warps[warp] = up_to;
    __syncthreads();
    for (std::uint32_t w = 0; w < warp; ++w) before = add(before, of_warps[w]);
    __syncthreads();  // of_warps is written again
    const std::uint64_t first = i - lane_index();
    if (first >= columns.count) continue;
    const auto left = columns.count - static_cast<std::uint32_t>(first);
    const std::uint32_t count = left < warp_len ? left : warp_len;
    if (lane_index() != 0) before = add(before, below);
    const MessageChecker checker(columns, message, before);
    const bool right = checker.is_right();
    const MessageView view = checker.view(right);
    if (is_there && !right) buffers.summary->bad = 1;
    if (is_there && !is_aligned(view)) buffers.summary->unaligned = 1;
    store_views(buffers.views + first, count, view, staged);
    if (is_there) buffers.first_tile[i] = before.tiles;
    if (!columns.is_aead) continue;
    store_views(buffers.hash_views + first, count, checker.hash_view(right), staged);
    if (is_there) buffers.first_chunk[i] = before.chunks;
  }
}

__global__ void __launch_bounds__(threads)
    write_results_kernel(const MessageView* views, std::uint32_t messages, const __grid_constant__ Outcome outcome,
                         Result* results, BatchSummary* summary) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < messages; i += stride) {
    const std::uint32_t word = outcome.words == nullptr ? 0 : outcome.words[i];
    const bool is_good = outcome.words == nullptr || word != 0;
    const std::uint64_t len = views != nullptr ? views[i].out_len : outcome.text_len;
    // Writes the padding of each result too: for a line that is written in part, the memory would have to read the rest
    // first.
    static_assert(sizeof(Result) == 16 && offsetof(Result, written) == 8, "a result is a status and a length");
    const auto status = static_cast<std::uint32_t>(is_good ? Status::ok : outcome.failure);
    auto* const words = reinterpret_cast<std::uint64_t*>(results + i);
    words[0] = status;
    words[1] = is_good ? len + outcome.added - (outcome.takes_off ? word : 0) : 0;
    if (!is_good) atomicAdd(&summary->failed, 1u);
  }
}

}  // namespace

void summarize_columns(const Device& device, Stream stream, const ColumnView& columns, const SummaryBuffers& buffers) {
  const std::uint32_t sums = columns.count / messages_of_sum + (columns.count % messages_of_sum != 0);
  LaunchConfiguration configuration = configuration_of_lanes(device, std::uint64_t{sums} * sum_threads, sum_threads, 8);
  configuration.shared_len = warps_of_sum * sizeof(Totals);
  launch(&sum_columns, configuration, stream, columns, buffers, sums);
  launch(&scan_sums, {1, scan_threads, scan_threads / warp_len * sizeof(Sums)}, stream, buffers, sums, columns.count);
  configuration.shared_len = sums_len + warps_of_sum * staged_len;
  launch(&make_views, configuration, stream, columns, buffers, sums);
}

void write_results(const Device& device, Stream stream, const MessageView* views, std::uint32_t messages,
                   const Outcome& outcome, Result* results, BatchSummary* summary) {
  const LaunchConfiguration configuration = configuration_of_lanes(device, messages, threads, 16);
  launch(&write_results_kernel, configuration, stream, views, messages, outcome, results, summary);
}

}  // namespace warpcipher::cuda
