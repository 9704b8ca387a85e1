// SPDX-License-Identifier: Apache-2.0
// In its own library (CMakeLists.txt), for the only compute capability on which it was measured.
#include "engine/cuda/aes/counter.cuh"
#include "engine/cuda/aes/hybrid.cuh"
#include "engine/cuda/aes/hybrid.hpp"
#include "engine/cuda/inputs/message_view.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::lane_table {

// The counter mode of a batch of long messages, with one key or many, by a hybrid kernel (hybrid.cuh). Both kinds of
// warps use the common rounds of 256 counters that differ only in the last byte (counter.cuh). Warps of tables compute
// those of consecutive tiles together, so a deal has consecutive tiles.

// The number of tiles; the host may have assumed another.
__device__ __forceinline__ std::uint64_t tiles_of(const MessageList& list) { return list.first_tile[list.messages]; }

// Mode: CounterMode or LittleEndianCounterMode.
//
// Finds the messages of a warp's tiles, most of which are consecutive. All lanes ask for the same tile. It does not use
// find_message(): if the compiler cannot know that all lanes leave a loop together, shuffles in the loop cost uniform
// registers.
class TileFinder {
 public:
  // True: the tile belongs to another message than the tile before.
  __device__ __forceinline__ bool move_to(const MessageList& list, std::uint32_t number) {
    if (number - first_ < count_) return false;
    message_ = from_lane(find_message_alone(list.first_tile, list.messages, tiles_of(list), number), 0);
    first_ = from_lane(static_cast<std::uint32_t>(list.first_tile[message_]), 0);
    count_ = from_lane(static_cast<std::uint32_t>(list.first_tile[message_ + 1]), 0) - first_;
    return true;
  }

  // The tile that it was moved to last.
  template <class Mode>
  __device__ __forceinline__ TileView find(const MessageList& list, std::uint32_t number) const {
    const MessageView& view = list.views[message_];
    const std::uint32_t lead = Mode::lead(view);
    return make_tile(view, message_, number, number - first_, tile_units, Mode::unit_len,
                     units_of_tiles(view.in_len, lead, list.lacks_ends != 0), lead);
  }

 private:
  std::uint32_t message_ = 0;
  std::uint32_t first_ = 0;  // tile of the message
  std::uint32_t count_ = 0;  // of its tiles
};

// Block `done` is one of 256 counters that differ only in the last byte. Returns how many blocks after the tile's
// beginning these counters begin; may be negative. `number` counts such sets of counters from the message's first.
template <class Mode>
__device__ __forceinline__ std::uint32_t begin_of_counters(const TileView& tile, std::uint32_t done,
                                                           std::uint64_t& number) {
  const std::uint64_t before = tile.first_unit + Mode::lead(tile.view);  // counted by the last byte
  number = (before + done) / Mode::carry;
  return static_cast<std::uint32_t>(Mode::carry * number - before);
}

// Encrypts, as SlicedCounter (hybrid_counter_sm90a.cu), the blocks from `done` on whose counters differ only in the
// last byte. The tile has whole blocks; it may lack some of the 256 at either end. Returns the number of the first
// block after them. The position of the tile is computed again after the rounds, to save registers during them.
// Aligned: the text is.
template <class Mode, bool Aligned, class Cipher, class Key>
__device__ __forceinline__ std::uint32_t run_sliced_counters(const Cipher& cipher, const Key& key,
                                                             const typename Key::Source& source,
                                                             const TileFinder& finder, std::uint32_t tile_number,
                                                             std::uint32_t done, bool wrap_32) {
  using Counter = typename Mode::CounterType;
  std::uint64_t number = 0;
  CommonRounds common;
  std::uint32_t entries[8];
  {
    const TileView tile = finder.template find<Mode>(source, tile_number);
    begin_of_counters<Mode>(tile, done, number);
    cipher.template counting_entries<Counter::byte>(entries, Mode::column_of_lane(tile.view));
    common = cipher.template common_rounds<Counter::byte>(Counter::add(tile.view.start, Mode::carry * number, wrap_32));
  }
  aes::Slices::slice_entries(entries);
  aes::Slices state = aes::Slices::after_common(entries, common.first_column, common.second.words);
  std::uint32_t columns[4][8];
  run_sliced_rounds<false>(state, key, source.rounds, columns);
  __syncwarp();
  const TileView tile = finder.template find<Mode>(source, tile_number);
  const std::uint32_t begin = begin_of_counters<Mode>(tile, done, number);
  const Block last = key.round(source.rounds);
  const std::uint32_t end = begin + Mode::carry < tile.units ? begin + Mode::carry : tile.units;
  if constexpr (!Aligned) {
    Block blocks[8];
    finish_sliced(columns, last, blocks);
    Mode::add_rows({begin, Mode::column_of_lane(tile.view), tile.units}, tile.text.in, tile.text.out, blocks);
    return end;
  }
  const std::uint32_t first = begin + Mode::column_of_lane(tile.view);
  const std::int64_t offset = 16 * std::int64_t{static_cast<std::int32_t>(first)};
  const std::uint8_t* const in = tile.text.in + offset;
  std::uint8_t* const out = tile.text.out + offset;
#pragma unroll
  for (std::uint32_t n = 0; n < 8; n += blocks_in_flight) {
    Block texts[blocks_in_flight];
#pragma unroll
    for (std::uint32_t i = 0; i < blocks_in_flight; ++i) {
      const bool has = first + warp_len * (n + i) < tile.units;
      texts[i] = has ? load_aligned(in + 16 * warp_len * (n + i)) : Block{};
    }
#pragma unroll
    for (std::uint32_t i = 0; i < blocks_in_flight; ++i) {
      const Block stream{{columns[0][n + i], columns[1][n + i], columns[2][n + i], columns[3][n + i]}};
      if (first + warp_len * (n + i) < tile.units) {
        store_aligned(out + 16 * warp_len * (n + i), stream ^ last ^ texts[i]);
      }
    }
  }
  return end;
}

// Aligned: for texts at multiples of 16, and slow for others.
template <class Key, class Mode, bool Aligned>
__global__ void __launch_bounds__(block_threads, 1)
    hybrid_batch_kernel(const __grid_constant__ typename Key::Source source,
                        const __grid_constant__ CounterParameters parameters,
                        const __grid_constant__ Speculation speculation) {
  if (!may_start(speculation)) return;
  using Tables = typename Mode::template At<Aligned>;
  run_hybrid<Key, false>(source, [&](Key& key, const auto& cipher, const HybridWarp& warp) {
    auto dealer = TileDealer<Key::run>::of_neighbours(tiles_of(source), warp.is_sliced);
    std::uint32_t number = 0;
    TileFinder finder;
    if (warp.is_sliced) {
      while (dealer.take(number)) {
        const bool moved = finder.move_to(source, number);
        const TileView tile = finder.template find<Mode>(source, number);
        if (moved) key.hold(source, tile.view.key);
        const bool is_good = parameters.verdicts == nullptr || parameters.verdicts[tile.message] != 0;
        std::uint32_t done = 0;
        if (all_lanes(is_good && (tile.text.aligned || !Aligned) && tile.text.in_len >= 16 * tile.units)) {
          // A few blocks at the end would be cheaper by tables, but the code for that exceeds the instruction caches.
          const std::uint32_t units = from_lane(tile.units, 0);
          while (done < units) {
            done = from_lane(
                run_sliced_counters<Mode, Aligned>(cipher, key, source, finder, number, done, parameters.wrap_32), 0);
          }
        }
        if (done == 0) {
          Tables mode;
          mode.tile(cipher, tile, parameters);
        }
      }
    } else {
      Tables mode;
      while (dealer.take(number)) {
        const bool moved = finder.move_to(source, number);
        const TileView found = finder.template find<Mode>(source, number);
        if (moved) key.hold(source, found.view.key);
        const Text& text = found.text;
        MessageView view = found.view;
        constexpr int word = Mode::CounterType::word;
        view.start.words[word] = from_lane(view.start.words[word], 0);
        const TileView tile{found.number,
                            std::uint64_t{from_lane(static_cast<std::uint32_t>(found.first_unit >> 32), 0)} << 32 |
                                from_lane(static_cast<std::uint32_t>(found.first_unit), 0),
                            from_lane(found.units, 0),
                            from_lane(found.message, 0),
                            view,
                            {text.in, text.out, from_lane(text.in_len, 0), from_lane(text.out_len, 0), text.pad,
                             all_lanes(text.aligned)}};
        mode.tile(cipher, tile, parameters);
      }
    }
  });
}

namespace {

template <class Key, class Mode>
void launch_kernel(const Device& device, Stream stream, bool aligned, const typename Key::Source& source,
                   const CounterParameters& parameters, const Speculation& speculation) {
  launch(aligned ? &hybrid_batch_kernel<Key, Mode, true> : &hybrid_batch_kernel<Key, Mode, false>,
         LaunchConfiguration{device.multiprocessors, block_threads, Key::shared_len}, stream, source, parameters,
         speculation);
}

template <class Key>
void launch_form(const Device& device, Stream stream, CounterForm form, bool aligned,
                 const typename Key::Source& source, const CounterParameters& parameters,
                 const Speculation& speculation) {
  form == CounterForm::first_word
      ? launch_kernel<Key, LittleEndianCounterMode>(device, stream, aligned, source, parameters, speculation)
      : launch_kernel<Key, CounterMode>(device, stream, aligned, source, parameters, speculation);
}

}  // namespace

void launch_hybrid_batch(const Device& device, Stream stream, CounterForm form, bool aligned,
                         const CounterSource<OneKeySource>& batch, const CounterParameters& parameters,
                         const Speculation& speculation) {
  launch_form<OnlyKey<CounterSource<OneKeySource>>>(device, stream, form, aligned, batch, parameters, speculation);
}

void launch_hybrid_batch(const Device& device, Stream stream, CounterForm form, bool aligned, const BatchSource& batch,
                         const CounterParameters& parameters, const Speculation& speculation) {
  launch_form<WarpKey>(device, stream, form, aligned, batch, parameters, speculation);
}

}  // namespace warpcipher::cuda::lane_table
