// SPDX-License-Identifier: Apache-2.0
// XTS by a hybrid kernel (hybrid_text.cuh) for data units that follow each other, as the sectors of a disk do, and are
// no longer than a tile. They are one text, cut into tiles of whole rows of 32 blocks. Each row has its own first
// tweak, which another kernel computes beforehand:
//
//   data units   [     512 bytes     |     512 bytes     | ...        [         1024 bytes           | ...
//   rows         [        0          |        1          | ...        [       0       |       1      |
//   tweaks       [        T0         |        T1         | ...        [       T0      | T0 alpha^32  |
//
// With a tile for each data unit, a lane would have only one block in flight, and the work for each tile would be done
// for every 32 blocks: data units of 512 bytes took twice as long as data units of 4 KiB.
//
// They also have no views, which took a tenth of the call for 2^21 data units. The kernel that makes the tweaks checks
// in the columns that the data units are sectors, and the text is a speculative launch (speculation.hpp).
//
// In its own library (CMakeLists.txt), for the only compute capability on which it was measured.
#include "engine/cuda/aes/hybrid.hpp"
#include "engine/cuda/aes/hybrid_text.cuh"
#include "engine/cuda/aes/source.cuh"
#include "engine/cuda/inputs/message_view.cuh"

namespace warpcipher::cuda::lane_table {

__device__ __forceinline__ std::uint32_t RowSource::count_tiles() const {
  return from_lane(static_cast<std::uint32_t>(speculation.summary->tiles), 0);
}

// Values that control branches come from lane 0, as in UnitSource.
template <class Mode>
__device__ __forceinline__ TileView RowSource::find(std::uint32_t number) const {
  const BatchSummary& summary = *speculation.summary;
  const std::uint64_t first_unit = std::uint64_t{number} * tile_units;
  const std::uint64_t left = summary.units - first_unit;
  const std::uint32_t units = from_lane(left < tile_units ? static_cast<std::uint32_t>(left) : tile_units, 0);
  const std::uint8_t* const in = global(view.in) + summary.first_in + 16 * first_unit;
  std::uint8_t* const out = global(view.out) + summary.first_out + 16 * first_unit;
  const bool aligned = ((reinterpret_cast<std::uintptr_t>(in) | reinterpret_cast<std::uintptr_t>(out)) & 15) == 0;
  return {number, first_unit, units, 0, view, {in, out, 16 * units, 16 * units, 0, all_lanes(aligned)}};
}

__device__ __forceinline__ Block RowTweaks::at(std::uint64_t row) const {
  const uint4 v = __ldg(of_text + row);
  return shift_tweak({{v.x, v.y, v.z, v.w}}, lane_index());
}

namespace {

// As the modes of modes.cuh. Tiles are whole rows.
template <bool Inverse>
struct XtsRows {
  static constexpr bool inverse = Inverse;
  using Parameters = RowTweaks;

  template <class Cipher>
  __device__ __forceinline__ void tile(const Cipher& cipher, const TileView& tile, const Parameters& tweaks) const {
    const Text text = tile.text;
    const std::uint64_t first = tile.first_unit / warp_len;
    for_each_step(text, tile.units, [&](auto step, std::uint32_t base) {
      const std::uint64_t row = first + base / warp_len;
      Block blocks[step.blocks];
#pragma unroll
      for (int n = 0; n < step.blocks; ++n) {
        blocks[n] = text.load_if<step.whole>(base + lane_index() + warp_len * n) ^ tweaks.at(row + n);
      }
      cipher(blocks);
#pragma unroll
      for (int n = 0; n < step.blocks; ++n) {  // tweaks are read again, not kept in registers
        text.store_if<step.whole>(base + lane_index() + warp_len * n, blocks[n] ^ tweaks.at(row + n));
      }
    });
  }
};

}  // namespace

template <bool Inverse>
class SlicedText<XtsRows<Inverse>> {
 public:
  __device__ __forceinline__ SlicedText(const TileView& tile, const RowTweaks& tweaks)
      : rows_(tile.text), tweaks_(tweaks), first_(tile.first_unit / warp_len) {}
  __device__ __forceinline__ Block load(std::uint32_t n) const { return rows_.load(n) ^ tweaks_.at(first_ + n); }
  __device__ __forceinline__ void store(std::uint32_t first, Block (&blocks)[blocks_in_flight]) const {
#pragma unroll
    for (std::uint32_t n = 0; n < blocks_in_flight; ++n) blocks[n] = blocks[n] ^ tweaks_.at(first_ + first + n);
    rows_.store(first, blocks);
  }

 private:
  TileRows rows_;
  const RowTweaks& tweaks_;
  std::uint64_t first_;
};

namespace {

// Stores the tweaks that a warp has made for 32 data units, of which `units` exist, and those of their other rows. They
// are stored in the order of memory: if each lane stored its own rows, a store would touch 32 lines.
__device__ __forceinline__ void store_rows(Block* to, const Block& tweak, std::uint32_t rows, std::uint32_t units) {
  if (rows == 1) {
    if (lane_index() < units) to[lane_index()] = tweak;
    return;
  }
  std::uint32_t unit = lane_index() / rows;
  std::uint32_t row = lane_index() % rows;
#pragma unroll 1
  for (std::uint32_t at = 0; at < warp_len * rows; at += warp_len) {
    Block own;
#pragma unroll
    for (int w = 0; w < 4; ++w) own.words[w] = from_lane(tweak.words[w], unit);
    for (std::uint32_t r = 0; r < row; ++r) own = next_row(own);
    if (unit < units) to[at + lane_index()] = own;
    unit += warp_len / rows;
    row += warp_len % rows;
    if (row >= rows) {
      row -= rows;
      ++unit;
    }
  }
}

// N sets of data units of a warp, every `stride`-th from number `first` on: computes their first tweaks, and those of
// their other rows. False: they are not part of the text in the summary. Every lane takes part; lanes past the last
// data unit repeat the last, but store nothing.
template <int N, class Cipher>
__device__ __forceinline__ bool plan_units(const RowPlanning& planning, const Cipher& cipher, const BatchSummary& text,
                                           std::uint64_t first, std::uint64_t stride) {
  const ColumnView& c = planning.columns;
  const std::uint64_t len = 16 * text.most_units;
  const bool aligned = reinterpret_cast<std::uintptr_t>(c.ivs) % 16 == 0;
  Block tweaks[N];
  bool right = true;
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const std::uint64_t own = first + stride * n + lane_index();
    const std::uint64_t i = own < c.count ? own : c.count - 1;
    const std::uint8_t* const iv = global(c.ivs) + 16 * i;
    tweaks[n] = aligned ? load_aligned(iv) : load_bytes(iv, 16);
    right = right && c.in_len_at(i) == len && (c.in_offsets == nullptr || c.in_offsets[i] == text.first_in + len * i) &&
            (c.out_offsets == nullptr || c.out_offsets[i] == text.first_out + len * i) &&
            (c.key_index == nullptr || c.key_index[i] < c.keys);
  }
  if (!all_lanes(right)) return false;
  cipher(tweaks);
  const auto rows = static_cast<std::uint32_t>(len / row_len);
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const std::uint64_t at = first + stride * n;
    const std::uint64_t left = c.count - at;
    store_rows(planning.tweaks + at * rows, tweaks[n], rows,
               left < warp_len ? static_cast<std::uint32_t>(left) : warp_len);
  }
  return true;
}

// The text if all data units are like the first and follow it; bad if they cannot be.
__device__ __forceinline__ BatchSummary summarize_first(const ColumnView& c) {
  BatchSummary text{};
  const std::uint64_t len = c.in_len_at(0);
  text.first_in = c.in_offsets != nullptr ? c.in_offsets[0] : 0;
  text.first_out = c.out_offsets != nullptr ? c.out_offsets[0] : 0;
  text.bad = 1;
  if (len == 0 || len % row_len != 0 || len > 16 * tile_units) return text;
  const std::uint64_t all = len * c.count;
  if (!fits(text.first_in, all, c.in_len) || !fits(text.first_out, all, c.out_len)) return text;
  const auto in = reinterpret_cast<std::uintptr_t>(c.in) + text.first_in;
  const auto out = reinterpret_cast<std::uintptr_t>(c.out) + text.first_out;
  if (in != out && in < out + all && out < in + all) return text;
  text.bad = 0;
  text.most_units = len / 16;
  text.units = all / 16;
  text.tiles = (text.units + tile_units - 1) / tile_units;
  return text;
}

// Each lane takes one data unit or several.
__global__ void __launch_bounds__(block_threads, 1) plan_rows_kernel(const __grid_constant__ RowPlanning planning) {
  const BatchSummary text = summarize_first(planning.columns);
  std::uint32_t& bad = planning.summary->bad;
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    BatchSummary& summary = *planning.summary;
    summary.units = text.units;
    summary.most_units = text.most_units;
    summary.tiles = text.tiles;
    summary.first_in = text.first_in;
    summary.first_out = text.first_out;
    if (text.bad != 0) bad = 1;  // do not clear it: other lanes may have set it
  }
  if (text.bad != 0) return;
  fill_tables<Tables128, false>();
  __syncthreads();
  const ParameterKey key{planning.schedule};
  const LaneCipher<Tables128, false, 0, ParameterKey> cipher(key, planning.rounds);
  const std::uint32_t count = planning.columns.count;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + warp_len * warp_index();
  bool right = true;
#pragma unroll 1
  for (; right && i + stride * (blocks_in_flight - 1) + warp_len <= count; i += stride * blocks_in_flight) {
    right = plan_units<blocks_in_flight>(planning, cipher, text, i, stride);
    // If another lane has found an error, the rest need not be checked.
    right = right && all_lanes(*const_cast<volatile std::uint32_t*>(&bad) == 0);
  }
#pragma unroll 1
  for (; right && i < count; i += stride) right = plan_units<1>(planning, cipher, text, i, stride);
  if (!right) bad = 1;
}

}  // namespace

void plan_rows(const Device& device, Stream stream, const RowPlanning& planning) {
  launch(&plan_rows_kernel,
         parallel_configuration(device, (std::uint64_t{planning.columns.count} + warp_len - 1) / warp_len,
                                Tables128::shared_len),
         stream, planning);
}

void launch_hybrid_rows(const Device& device, Stream stream, bool inverse, const TextSource<RowSource>& text,
                        const RowTweaks& tweaks) {
  const LaunchConfiguration configuration{device.multiprocessors, block_threads, HybridPolicy::shared_len};
  inverse ? launch(&hybrid_text_kernel<XtsRows<true>, RowSource>, configuration, stream, text, tweaks)
          : launch(&hybrid_text_kernel<XtsRows<false>, RowSource>, configuration, stream, text, tweaks);
}

}  // namespace warpcipher::cuda::lane_table
