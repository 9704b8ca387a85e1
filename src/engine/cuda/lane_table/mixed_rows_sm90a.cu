// SPDX-License-Identifier: Apache-2.0
// XTS for data units shorter than a tile that follow each other, as the sectors of a disk do, by two kinds of warps
// (mixed_text.cuh). They are one text then, cut into tiles anywhere between rows of 32 blocks; each row has a first
// tweak of its own, which a kernel before this one makes:
//
//   data units   [     512 bytes     |     512 bytes     | ...        [         1024 bytes           | ...
//   rows         [        0          |        1          | ...        [       0       |       1      |
//   tweaks       [        T0         |        T1         | ...        [       T0      | T0 alpha^32  |
//
// With a tile for each data unit a lane has one block on its way at a time, and what is done once for a tile is done
// for every 32 blocks: 512 bytes took twice as long as 4 KiB.
//
// In a library of its own (CMakeLists.txt): for the one compute capability that it was measured on.
#include <algorithm>

#include "core/wipe.hpp"
#include "engine/cuda/keys.hpp"
#include "engine/cuda/lane_table/mixed_rows.hpp"
#include "engine/cuda/lane_table/mixed_text.cuh"
#include "engine/cuda/lane_table/mixed_text.hpp"
#include "engine/cuda/lane_table/shape.cuh"
#include "engine/cuda/launch.hpp"
#include "engine/cuda/stream_buffer.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

// 16 MiB on H200. Sectors of 512 bytes in columns on the GPU, so and with a tile each, of all that a call takes: 64 MiB
// 0.17 and 0.22 ms, 16 MiB 0.089 and 0.093.
constexpr std::uint64_t least_row_tiles_of_multiprocessor = 31;

struct RowTweaks {
  const uint4* of_text;  // the first tweak of each row

  // The lane's tweak in row `row` of the text.
  __device__ __forceinline__ Block at(std::uint64_t row) const {
    const uint4 v = __ldg(of_text + row);
    return shift_tweak({{v.x, v.y, v.z, v.w}}, lane_index());
  }
};

// As the modes of modes.cuh. Tiles are whole rows.
template <bool Inverse>
struct XtsRows {
  static constexpr bool inverse = Inverse;
  static constexpr std::uint32_t unit_len = 16;
  using Parameters = RowTweaks;

  template <class Cipher>
  __device__ __forceinline__ void tile(const Cipher& cipher, const Tile& tile, const Parameters& tweaks) const {
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
      for (int n = 0; n < step.blocks; ++n) {  // tweaks are read again, rather than kept
        text.store_if<step.whole>(base + lane_index() + warp_len * n, blocks[n] ^ tweaks.at(row + n));
      }
    });
  }
};

}  // namespace

template <bool Inverse>
class SlicedText<XtsRows<Inverse>> {
 public:
  __device__ __forceinline__ SlicedText(const Tile& tile, const RowTweaks& tweaks)
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

struct RowTweakMaking {
  const std::uint8_t* ivs;
  const uint4* tweak_key;
  std::uint32_t rounds;
  std::uint32_t count;
  std::uint32_t rows_of_unit;
  Block* tweaks;
};

// A lane a data unit: its first tweak, and those of its further rows.
__global__ void __launch_bounds__(block_threads, 1)
    make_row_tweaks_kernel(const __grid_constant__ RowTweakMaking making) {
  fill_tables<Tables128, false>();
  __syncthreads();
  const BatchSource::Key key{making.tweak_key};
  const LaneCipher<Tables128, false, 0, BatchSource::Key> cipher(key, making.rounds);
  const bool aligned = reinterpret_cast<std::uintptr_t>(making.ivs) % 16 == 0;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < making.count; i += stride) {
    const std::uint8_t* const iv = global(making.ivs) + 16 * i;
    Block tweak[1] = {aligned ? load_aligned(iv) : load_bytes(iv, 16)};
    cipher(tweak);
    for (std::uint32_t row = 0; row < making.rows_of_unit; ++row) {
      making.tweaks[i * making.rows_of_unit + row] = tweak[0];
      tweak[0] = next_row(tweak[0]);
    }
  }
}

template <bool Inverse>
void launch_rows(const Device& device, Stream stream, const SingleSource& text, const RowTweaks& tweaks) {
  Secret<SlicedSource<SingleSource>> sliced;
  slice_keys(*sliced, text);
  launch(&mixed_text_kernel<XtsRows<Inverse>, SingleSource>,
         LaunchShape{device.multiprocessors, block_threads, MixedShape::shared_len}, stream, *sliced, tweaks);
}

}  // namespace

bool run_mixed_rows(const Device& device, Stream stream, const Algorithm& algorithm, Direction direction,
                    const DataUnits& units) {
  if (units.units_of_each % warp_len != 0 || units.units_of_each >= tile_units) return false;
  const std::uint64_t blocks = units.units_of_each * units.count;
  const std::uint64_t tiles = (blocks + tile_units - 1) / tile_units;
  if (!choose_mixed_text(device, choose_form(device), tiles, least_row_tiles_of_multiprocessor)) return false;
  const bool inverse = algorithm.inverse(direction);
  const auto rows_of_unit = static_cast<std::uint32_t>(units.units_of_each / warp_len);
  const StreamBuffer memory(rows_of_unit * std::uint64_t{units.count} * sizeof(Block), stream);
  const auto rounds = static_cast<std::uint32_t>(algorithm.cipher.key_len / 4 + 6);
  launch(&make_row_tweaks_kernel,
         parallel_shape(device, (std::uint64_t{units.count} + warp_len - 1) / warp_len, Tables128::shared_len), stream,
         RowTweakMaking{units.ivs, units.tweak_key, rounds, units.count, rows_of_unit,
                        reinterpret_cast<Block*>(memory.data())});
  Secret<SingleSource> text;
  text->view.in = units.in;
  text->view.out = units.out;
  text->view.in_len = text->view.out_len = 16 * blocks;
  text->view.units = blocks;
  text->tiles = tiles;
  text->rounds = rounds;
  std::copy_n(aes_key_state(units.key).words(inverse), most_schedule_words, text->schedule);
  const RowTweaks tweaks{reinterpret_cast<const uint4*>(memory.data())};
  inverse ? launch_rows<true>(device, stream, *text, tweaks) : launch_rows<false>(device, stream, *text, tweaks);
  return true;
}

}  // namespace warpcipher::cuda::lane_table
