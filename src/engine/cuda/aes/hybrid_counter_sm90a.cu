// SPDX-License-Identifier: Apache-2.0
// In its own library (CMakeLists.txt), for the only compute capability on which it was measured.
#include "engine/cuda/aes/counter.cuh"
#include "engine/cuda/aes/hybrid.cuh"
#include "engine/cuda/aes/hybrid.hpp"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::lane_table {

// The counter mode of one long message by a hybrid kernel (hybrid.cuh):
//
//   warps          blocks by                         for 32 blocks
//   0 to 7         only logic                        405 operations of the logic pipe, 11 wavefronts
//   8 to 31        lane tables (counter.cuh)          93 operations of the logic pipe, 144 wavefronts

// Encrypts, by logic, tiles of 256 whole blocks whose counters begin with a last byte of 0. As in CounterMode, a lane
// takes the counters whose last byte is `column` + 32 n. Aligned: in and out are multiples of 16.
template <bool Aligned>
class SlicedCounter {
 public:
  template <class Cipher>
  __device__ __forceinline__ SlicedCounter(const Cipher& cipher, const MessageView& view)
      : lead_(CounterMode::lead(view)), column_(CounterMode::column_of_lane(view)) {
    if constexpr (Aligned) find_entries(cipher, entries_);
  }

  template <bool HasText, class Cipher, class Key>
  __device__ __forceinline__ void tile(const Cipher& cipher, const Key& key, const SingleSource& source,
                                       std::uint32_t tile, bool wrap_32) const {
    const std::uint64_t first = std::uint64_t{CounterMode::carry} * tile;
    const CommonRounds common = cipher.common_rounds(add_counter(source.view.start, first, wrap_32));
    aes::Slices state = start(cipher, common);
    std::uint32_t columns[4][8];
    run_sliced_rounds<false>(state, key, source.rounds, columns);
    const Block last = key.round(source.rounds);
    const std::uint64_t offset = 16 * (first - lead_ + (Aligned ? column_ : 0));
    const std::uint8_t* const in = global(source.view.in) + offset;
    std::uint8_t* const out = global(source.view.out) + offset;
    if constexpr (Aligned) {
      add_aligned<HasText>(columns, last, in, out);
    } else {
      Block blocks[8];
      finish_sliced(columns, last, blocks);
      CounterModeOf<BigEndianCounter, HasText, false>::add_rows({0, column_, CounterMode::carry}, in, out, blocks);
    }
  }

 private:
  template <bool HasText>
  __device__ __forceinline__ static void add_aligned(const std::uint32_t (&columns)[4][8], const Block& last,
                                                     const std::uint8_t* in, std::uint8_t* out) {
#pragma unroll
    for (std::uint32_t n = 0; n < 8; n += blocks_in_flight) {
      Block texts[blocks_in_flight];
#pragma unroll
      for (std::uint32_t i = 0; i < blocks_in_flight; ++i) {
        texts[i] = HasText ? load_aligned(in + 16 * warp_len * (n + i)) : Block{};
      }
#pragma unroll
      for (std::uint32_t i = 0; i < blocks_in_flight; ++i) {
        const Block stream{{columns[0][n + i], columns[1][n + i], columns[2][n + i], columns[3][n + i]}};
        store_aligned(out + 16 * warp_len * (n + i), stream ^ last ^ texts[i]);
      }
    }
  }

  template <class Cipher>
  __device__ __forceinline__ void find_entries(const Cipher& cipher, std::uint32_t (&entries)[8]) const {
    cipher.counting_entries(entries, Aligned ? column_ : again(column_));
    aes::Slices::slice_entries(entries);
  }

  template <class Cipher>
  __device__ __forceinline__ aes::Slices start(const Cipher& cipher, const CommonRounds& common) const {
    if constexpr (Aligned) {
      return aes::Slices::after_common(entries_, common.first_column, common.second.words);
    } else {
      std::uint32_t entries[8];
      find_entries(cipher, entries);
      return aes::Slices::after_common(entries, common.first_column, common.second.words);
    }
  }

  std::uint32_t lead_;
  std::uint32_t column_;
  // The contribution of the last byte (LaneCipher::counting_entries). If the text is not aligned, its words need these
  // registers, and each tile has its own entries.
  std::uint32_t entries_[Aligned ? 8 : 1];
};

// Mode: CounterMode or KeyStreamMode. parameters.stride is the number of blocks, two or more. The message has three
// tiles or more. Aligned: its text lies at multiples of 16.
//
// The first warp of tables in the first block begins with the message's first tile, and that in the last block with the
// last tile: these two may be partial.
template <class Mode, bool Aligned>
__global__ void __launch_bounds__(block_threads, 1)
    hybrid_counter_kernel(const __grid_constant__ CounterSource<SingleSource> source,
                          const __grid_constant__ CounterParameters parameters) {
  using Key = OnlyKey<CounterSource<SingleSource>>;
  using Tables = typename Mode::template At<Aligned>;
  run_hybrid<Key, false>(source, [&](const Key& key, const auto& cipher, const HybridWarp& warp) {
    const auto tiles = static_cast<std::uint32_t>(source.tiles);
    auto dealer = TileDealer<>::of_grid(1, tiles - 1, warp.is_sliced);
    std::uint32_t tile = 0;
    if (warp.is_sliced) {
      if (parameters.verdicts != nullptr && parameters.verdicts[0] == 0) return;  // the others write the zeros
      const SlicedCounter<Aligned> mode(cipher, source.view);
      while (dealer.take(tile)) mode.template tile<Mode::has_text>(cipher, key, source, tile, parameters.wrap_32);
    } else {
      Tables mode;
      const bool has_first = warp.number == HybridPolicy::sliced_warps && blockIdx.x == 0;
      const bool has_last = warp.number == HybridPolicy::sliced_warps && blockIdx.x == gridDim.x - 1;
      if (has_last) tile = tiles - 1;
      for (bool more = has_first || has_last || dealer.take(tile); more; more = dealer.take(tile)) {
        mode.tile(cipher, source.template find<Mode>(tile), parameters);
      }
    }
  });
}

template <class Mode>
void launch_hybrid_counter(const Device& device, Stream stream, const CounterSource<SingleSource>& message,
                           const CounterParameters& parameters) {
  launch(is_aligned(message.view) ? &hybrid_counter_kernel<Mode, true> : &hybrid_counter_kernel<Mode, false>,
         LaunchConfiguration{device.multiprocessors, block_threads, HybridPolicy::shared_len}, stream, message,
         parameters);
}

template void launch_hybrid_counter<CounterMode>(const Device&, Stream, const CounterSource<SingleSource>&,
                                                 const CounterParameters&);
template void launch_hybrid_counter<KeyStreamMode>(const Device&, Stream, const CounterSource<SingleSource>&,
                                                   const CounterParameters&);

}  // namespace warpcipher::cuda::lane_table
