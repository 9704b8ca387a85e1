// SPDX-License-Identifier: Apache-2.0
// The modes that put text through the cipher, by a hybrid kernel (hybrid.cuh):
//
//   warps          blocks by                          for 32 blocks of AES-128
//   0 to 7         only logic (aes_slices.hpp)        520 operations of the logic pipe, 550 if the cipher is inverse
//   8 to 31        lane tables (modes.cuh)            105 operations of the logic pipe, 170 to 177 wavefronts
//
// Warps of tables run the structs of modes.cuh. For warps of logic, SlicedText is a mode's work around the cipher. A
// lane has one block of each of the eight rows of a tile:
//
//   fits()     if there is one: whether a tile that is whole is one for logic
//   load(n)    the cipher's input for unit 32 n + lane: for n = 0 to 7, once each, and before anything is stored
//   store()    the cipher's output for four rows: of rows 4 to 7, then of rows 0 to 3
#pragma once

#include "cipher/aes_slices.hpp"
#include "engine/cuda/aes/cipher.cuh"
#include "engine/cuda/aes/hybrid.cuh"
#include "engine/cuda/aes/modes.cuh"
#include "engine/cuda/aes/xts.cuh"
#include "engine/cuda/inputs/message_view.cuh"

namespace warpcipher::cuda::lane_table {

// The lane's blocks of a tile.
struct TileRows {
  static constexpr std::uint32_t row_len = lane_table::row_len;

  const std::uint8_t* in;
  std::uint8_t* out;

  explicit __device__ __forceinline__ TileRows(const Text& text)
      : in(text.in + 16 * lane_index()), out(text.out + 16 * lane_index()) {}

  __device__ __forceinline__ Block load(std::uint32_t n) const { return load_aligned(in + row_len * n); }

  // Rows [first, first + blocks_in_flight).
  __device__ __forceinline__ void store(std::uint32_t first, const Block (&blocks)[blocks_in_flight]) const {
#pragma unroll
    for (std::uint32_t n = 0; n < blocks_in_flight; ++n) store_aligned(out + row_len * (first + n), blocks[n]);
  }
};

template <class Mode>
class SlicedText;

template <bool Inverse>
class SlicedText<EcbMode<Inverse>> {
 public:
  __device__ __forceinline__ SlicedText(const TileView& tile, const NoParameters&) : rows_(tile.text) {}
  __device__ __forceinline__ Block load(std::uint32_t n) const { return rows_.load(n); }
  __device__ __forceinline__ void store(std::uint32_t first, Block (&blocks)[blocks_in_flight]) const {
    rows_.store(first, blocks);
  }

 private:
  TileRows rows_;
};

// For modes that chain. Rows are stored from the last to the first, so that in place the block before a row still has
// its ciphertext.
class ChainedText {
 public:
  __device__ __forceinline__ ChainedText(const TileView& tile, const ChainParameters& parameters)
      : rows_(tile.text), tile_(tile), parameters_(parameters) {}

 protected:
  // The blocks before row n.
  __device__ __forceinline__ Block load_previous(std::uint32_t n) const {
    if (n == 0 && lane_index() == 0) return block_before(tile_, parameters_);
    return load_aligned(rows_.in + TileRows::row_len * n - 16);
  }

  TileRows rows_;

 private:
  const TileView& tile_;
  const ChainParameters& parameters_;
};

template <>
class SlicedText<CbcDecryption> : public ChainedText {
 public:
  using ChainedText::ChainedText;
  __device__ __forceinline__ Block load(std::uint32_t n) const { return rows_.load(n); }
  __device__ __forceinline__ void store(std::uint32_t first, Block (&blocks)[blocks_in_flight]) const {
#pragma unroll
    for (std::uint32_t n = 0; n < blocks_in_flight; ++n) blocks[n] = blocks[n] ^ load_previous(first + n);
    __syncwarp();
    rows_.store(first, blocks);
  }
};

template <>
class SlicedText<CfbDecryption> : public ChainedText {
 public:
  using ChainedText::ChainedText;
  __device__ __forceinline__ Block load(std::uint32_t n) const { return load_previous(n); }
  __device__ __forceinline__ void store(std::uint32_t first, Block (&blocks)[blocks_in_flight]) const {
#pragma unroll
    for (std::uint32_t n = 0; n < blocks_in_flight; ++n) blocks[n] = blocks[n] ^ rows_.load(first + n);
    rows_.store(first, blocks);
  }
};

// Values of the tile that control branches come from lane 0. The compiler cannot know that a value from memory is equal
// in all lanes; without this, loops could not use uniform registers.
template <class Mode>
__device__ __forceinline__ TileView UnitSource::find(std::uint32_t number) const {
  const TileView tile = make_tile(views[number], number, number, 0, tile_units, Mode::unit_len);
  const Text& text = tile.text;
  return {tile.number,
          tile.first_unit,
          from_lane(tile.units, 0),
          tile.message,
          tile.view,
          {text.in, text.out, from_lane(text.in_len, 0), text.out_len, text.pad, all_lanes(text.aligned)}};
}

template <bool Inverse>
class SlicedText<XtsMode<Inverse>> {
 public:
  // It needs no ciphertext stealing: the tile is a data unit of whole blocks.
  static __device__ __forceinline__ bool fits(const TileView& tile) { return tile.text.in_len == 16 * tile_units; }

  __device__ __forceinline__ SlicedText(const TileView& tile, const NoParameters&)
      : view_(tile.view), rows_(tile.text), tweak_(own()) {}
  __device__ __forceinline__ Block load(std::uint32_t n) {
    const Block block = rows_.load(n) ^ tweak_;
    tweak_ = next_row(tweak_);
    return block;
  }
  __device__ __forceinline__ void store(std::uint32_t first, Block (&blocks)[blocks_in_flight]) const {
    Block tweak = own();  // computed again to save registers
#pragma unroll
    for (std::uint32_t n = 0; n < first; ++n) tweak = next_row(tweak);
#pragma unroll
    for (std::uint32_t n = 0; n < blocks_in_flight; ++n) {
      blocks[n] = blocks[n] ^ tweak;
      tweak = next_row(tweak);
    }
    rows_.store(first, blocks);
  }

 private:
  __device__ __forceinline__ Block own() const { return shift_tweak(view_.start, lane_index()); }

  const MessageView& view_;
  TileRows rows_;
  Block tweak_;
};

// Whether logic can take the tile.
template <class Mode>
__device__ __forceinline__ bool is_whole(const TileView& tile) {
  bool whole = tile.text.aligned && tile.units == tile_units && tile.text.in_len >= 16 * tile_units;
  if constexpr (requires { SlicedText<Mode>::fits(tile); }) whole = SlicedText<Mode>::fits(tile) && whole;
  return whole;
}

// Runs a tile through the cipher by logic.
template <class Mode, class Source>
__device__ __forceinline__ void run_sliced(const TextSource<Source>& source, SlicedText<Mode> text) {
  const OnlyKey<TextSource<Source>> key(source);
  std::uint32_t columns[4][8];
  const Block first = key.round(0);
#pragma unroll
  for (std::uint32_t n = 0; n < 8; ++n) {
    const Block block = text.load(n) ^ first;
#pragma unroll
    for (std::uint32_t c = 0; c < 4; ++c) columns[c][n] = block.words[c];
  }
  __syncwarp();
  aes::Slices state = aes::Slices::of_columns(columns);
  run_sliced_rounds<Mode::inverse>(state, key, source.rounds, columns);
  const Block last = key.round(source.rounds);
#pragma unroll
  for (std::uint32_t end = 8; end != 0; end -= blocks_in_flight) {
    Block blocks[blocks_in_flight];
#pragma unroll
    for (std::uint32_t i = 0; i < blocks_in_flight; ++i) {
      const std::uint32_t n = end - blocks_in_flight + i;
      blocks[i] = Block{{columns[0][n], columns[1][n], columns[2][n], columns[3][n]}} ^ last;
    }
    text.store(end - blocks_in_flight, blocks);
  }
}

template <class Source>
__device__ __forceinline__ std::uint32_t tiles_to_deal(const Source& source) {
  if constexpr (requires { source.count_tiles(); }) {
    return source.count_tiles();
  } else {
    return static_cast<std::uint32_t>(source.tiles);
  }
}

// Whether a mode must know where a tile begins: XTS, for its tweak.
template <class Mode>
inline constexpr bool begins_tiles = requires(Mode mode, Block first) { mode.begin(first); };

// Tiles that are not whole or not aligned use tables, in either kind of warp.
template <class Mode, class Source>
__global__ void __launch_bounds__(block_threads, 1)
    hybrid_text_kernel(const __grid_constant__ TextSource<Source> source,
                       const __grid_constant__ typename Mode::Parameters parameters) {
  if constexpr (requires { source.speculation; }) {
    if (!may_start(source.speculation)) return;
  }
  using Key = OnlyKey<TextSource<Source>>;
  run_hybrid<Key, Mode::inverse>(source, [&](const Key&, const auto& cipher, const HybridWarp& warp) {
    auto dealer = TileDealer<>::of_grid(0, tiles_to_deal(source), warp.is_sliced);
    std::uint32_t number = 0;
    Mode mode;
    while (dealer.take(number)) {
      const TileView tile = source.template find<Mode>(number);
      if (warp.is_sliced && is_whole<Mode>(tile)) {
        run_sliced<Mode>(source, SlicedText<Mode>(tile, parameters));
      } else {
        if constexpr (begins_tiles<Mode>) mode.begin(tile.view.start);
        mode.tile(cipher, tile, parameters);
      }
    }
  });
}

}  // namespace warpcipher::cuda::lane_table
