// SPDX-License-Identifier: Apache-2.0
// Bitsliced DES (cipher/des_bitslice.hpp): eight lanes share a tile of 256 units. Lane q takes units q, q + 8, ... q +
// 248 as the 32 bits of its words, so that the loads of the lanes are adjacent.
//
// The masks of the key bits are in shared memory. If the whole batch has one key, they are those of all rounds. Else
// they are those of the present round of each tile and of the next; the eight lanes of the tile make them, each the six
// masks of one S-box. (Masks of a whole schedule would take 9 KiB of device memory for each key, and loading the masks
// of four tiles would take four wavefronts.)
//
// When out == in, the lanes of a warp write only after all of them have read; the block before a tile comes from
// `chains`.
//
// If the four tiles of a warp are whole and aligned, they are loaded and stored without tests, so that all loads are in
// flight at the same time. For all other tiles a loop handles one unit at a time, with all tests.
#include "engine/cuda/des/launches.hpp"

#include "cipher/des_bitslice.hpp"
#include "engine/cuda/inputs/keys.hpp"
#include "engine/cuda/inputs/message_view.cuh"
#include "engine/cuda/inputs/texts.hpp"
#include "engine/cuda/runtime/launch.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"
#include "mode/algorithm.hpp"

namespace warpcipher::cuda::bitslice {
namespace {

constexpr std::uint32_t tile_lanes = 8;
constexpr std::uint32_t threads = 128;
constexpr std::uint32_t round_masks = des::bitslice::subkey_bits;
constexpr std::uint32_t tile_masks = 2 * round_masks + 8;  // of two rounds; the tiles of a warp begin in other banks

}  // namespace

extern __shared__ std::uint32_t shared_masks[];  // of the launch

namespace {

struct Source : TileList {
  const uint2* subkeys;           // of DesSchedules
  const Block* saved_ciphertext;  // the block before each tile; nullptr: still in `in`
  std::uint32_t rounds;
};

// As des::bitslice::MaskSchedule, for the key of a lane's tile. Every lane takes part in subkey().
class TileSchedule {
 public:
  using Subkey = des::bitslice::MaskSchedule<std::uint32_t>::Subkey;

  __device__ __forceinline__ TileSchedule(const Source& source, std::uint32_t key)
      : box_(lane_index() % tile_lanes), masks_(shared_masks + threadIdx.x / tile_lanes * tile_masks) {
    const uint2* const first = source.subkeys + std::size_t{key} / warp_len * warp_len * source.rounds + key % warp_len;
    six_ = reinterpret_cast<const std::uint8_t*>(global(first)) + 4 * (box_ % 2) + 3 - box_ / 2;
  }

  // The masks alternate between two buffers. A lane that writes the next ones cannot overwrite masks in use: all lanes
  // have passed __syncwarp().
  __device__ __forceinline__ Subkey subkey(int round) const {
    const std::uint32_t six = six_[sizeof(uint2) * warp_len * static_cast<std::uint32_t>(round)];
    std::uint32_t* const masks = masks_ + round % 2 * round_masks;
#pragma unroll
    for (std::uint32_t i = 0; i < 6; ++i) masks[6 * box_ + i] = 0u - (six >> (5 - i) & 1u);
    __syncwarp();
    return {masks};
  }

 private:
  const std::uint32_t box_;
  std::uint32_t* const masks_;
  const std::uint8_t* six_;  // of the lane's S-box in round 0 (des_bitslice.hpp)
};

struct HalfBlock {
  std::uint32_t words[2];
};

__device__ __forceinline__ HalfBlock load_half(const std::uint8_t* p, std::uint32_t len, std::uint32_t fill) {
  if (len >= 8 && (reinterpret_cast<std::uintptr_t>(p) & 7) == 0) {
    const uint2 v = *reinterpret_cast<const uint2*>(p);
    return {{v.x, v.y}};
  }
  HalfBlock half{};
#pragma unroll
  for (std::uint32_t i = 0; i < 8; ++i) half.words[i / 4] |= (i < len ? p[i] : fill) << (8 * (i % 4));
  return half;
}

__device__ __forceinline__ void store_half(std::uint8_t* p, std::uint32_t len, std::uint32_t first,
                                           std::uint32_t second) {
  if (len >= 8 && (reinterpret_cast<std::uintptr_t>(p) & 7) == 0) {
    __stcs(reinterpret_cast<uint2*>(p), make_uint2(first, second));
    return;
  }
#pragma unroll
  for (std::uint32_t i = 0; i < 8; ++i) {
    if (i < len) p[i] = static_cast<std::uint8_t>((i < 4 ? first : second) >> (8 * (i % 4)));
  }
}

// A lane's view of its tile. Lanes without a tile have units = 0 and an empty text.
struct LaneTile {
  Text text;
  std::uint32_t units;
  HalfBlock before;  // the ciphertext block before the tile, or the IV

  // Whether load<true> and store<true> may be called for each unit.
  __device__ __forceinline__ bool is_whole() const {
    return units == tile_units && text.in_len >= 8 * tile_units && text.out_len >= 8 * tile_units &&
           ((reinterpret_cast<std::uintptr_t>(text.in) | reinterpret_cast<std::uintptr_t>(text.out)) & 7) == 0;
  }

  template <bool Whole>
  __device__ __forceinline__ HalfBlock load(std::uint32_t unit) const {
    const std::uint32_t offset = 8 * unit;
    if constexpr (Whole) {
      const uint2 v = *reinterpret_cast<const uint2*>(global(text.in) + offset);
      return {{v.x, v.y}};
    } else {
      return load_half(global(text.in) + offset, text.in_len > offset ? text.in_len - offset : 0, text.pad);
    }
  }
  template <bool Whole>
  __device__ __forceinline__ HalfBlock load_previous(std::uint32_t unit) const {
    return unit == 0 ? before : load<Whole>(unit - 1);
  }
  template <bool Whole>
  __device__ __forceinline__ void store(std::uint32_t unit, std::uint32_t first, std::uint32_t second) const {
    const std::uint32_t offset = 8 * unit;
    if constexpr (Whole) {
      __stcs(reinterpret_cast<uint2*>(text.out + offset), make_uint2(first, second));
    } else {
      store_half(text.out + offset, text.out_len > offset ? text.out_len - offset : 0, first, second);
    }
  }
};

// For each mode: the input of the cipher for a unit, and the text that is added to its output. A warp calls all `add`
// before its first store. Whole: the tile is whole.

struct EcbMode {
  static constexpr std::uint32_t unit_len = 8;
  static constexpr bool chained = false;
  static constexpr bool adds = false;
  template <bool Whole>
  static __device__ __forceinline__ HalfBlock take(const LaneTile& tile, std::uint32_t unit) {
    return tile.load<Whole>(unit);
  }
  template <bool Whole>
  static __device__ __forceinline__ HalfBlock add(const LaneTile&, std::uint32_t) {
    return {};
  }
};

struct CbcDecryption {
  static constexpr std::uint32_t unit_len = 8;
  static constexpr bool chained = true;
  static constexpr bool adds = true;
  template <bool Whole>
  static __device__ __forceinline__ HalfBlock take(const LaneTile& tile, std::uint32_t unit) {
    return tile.load<Whole>(unit);
  }
  template <bool Whole>
  static __device__ __forceinline__ HalfBlock add(const LaneTile& tile, std::uint32_t unit) {
    return tile.load_previous<Whole>(unit);
  }
};

struct CfbDecryption {
  static constexpr std::uint32_t unit_len = 8;
  static constexpr bool chained = true;
  static constexpr bool adds = true;
  template <bool Whole>
  static __device__ __forceinline__ HalfBlock take(const LaneTile& tile, std::uint32_t unit) {
    return tile.load_previous<Whole>(unit);
  }
  template <bool Whole>
  static __device__ __forceinline__ HalfBlock add(const LaneTile& tile, std::uint32_t unit) {
    return tile.load<Whole>(unit);
  }
};

// A unit is a byte; the shift register of unit u is the eight bytes before it.
struct Cfb8Decryption {
  static constexpr std::uint32_t unit_len = 1;
  static constexpr bool chained = true;
  static constexpr bool adds = true;
  template <bool Whole>
  static __device__ __forceinline__ HalfBlock take(const LaneTile& tile, std::uint32_t unit) {
    HalfBlock shift{};
#pragma unroll
    for (std::uint32_t i = 0; i < 8; ++i) {
      const std::uint32_t at = unit + i;  // byte `at - 8` of the tile
      const std::uint32_t byte = at < 8
                                     ? (at < 4 ? tile.before.words[0] : tile.before.words[1]) >> (8 * (at % 4)) & 0xffu
                                 : at - 8 < tile.text.in_len ? tile.text.in[at - 8]
                                                             : 0;
      shift.words[i / 4] |= byte << (8 * (i % 4));
    }
    return shift;
  }
  template <bool Whole>
  static __device__ __forceinline__ HalfBlock add(const LaneTile& tile, std::uint32_t unit) {
    return {{unit < tile.text.in_len ? tile.text.in[unit] : 0u, 0}};
  }
};

// Calls function(unit, first word, second word) for the lane's units. Whole: unrolled. Else a loop with one body, in
// which the words rotate.
template <bool Whole, class Function>
__device__ __forceinline__ void for_each_unit(std::uint32_t (&words)[64], Function&& function) {
  const std::uint32_t first_unit = lane_index() % tile_lanes;
  if constexpr (Whole) {
#pragma unroll
    for (std::uint32_t j = 0; j < 32; ++j) function(first_unit + tile_lanes * j, words[j], words[32 + j]);
  } else {
#pragma unroll 1
    for (std::uint32_t j = 0; j < 32; ++j) {
      std::uint32_t first = words[0];
      std::uint32_t second = words[32];
      function(first_unit + tile_lanes * j, first, second);
#pragma unroll
      for (std::uint32_t i = 0; i < 31; ++i) {
        words[i] = words[i + 1];
        words[32 + i] = words[33 + i];
      }
      words[31] = first;
      words[63] = second;
    }
  }
}

template <class Mode, bool Whole>
__device__ __forceinline__ void take_units(const LaneTile& tile, std::uint32_t (&words)[64]) {
  for_each_unit<Whole>(words, [&](std::uint32_t unit, std::uint32_t& first, std::uint32_t& second) {
    const HalfBlock half = Mode::template take<Whole>(tile, unit);
    first = half.words[0];
    second = half.words[1];
  });
}

template <class Mode, bool Whole>
__device__ __forceinline__ void give_units(const LaneTile& tile, std::uint32_t (&words)[64]) {
  if constexpr (Mode::adds) {
    for_each_unit<Whole>(words, [&](std::uint32_t unit, std::uint32_t& first, std::uint32_t& second) {
      const HalfBlock half = Mode::template add<Whole>(tile, unit);
      first ^= half.words[0];
      second ^= half.words[1];
    });
  }
  __syncwarp();
  for_each_unit<Whole>(words, [&](std::uint32_t unit, std::uint32_t first, std::uint32_t second) {
    if constexpr (Mode::unit_len == 1) {
      if (unit < tile.units) tile.text.out[unit] = static_cast<std::uint8_t>(first);
    } else {
      tile.store<Whole>(unit, first, second);
    }
  });
}

template <class Mode>
__device__ __forceinline__ LaneTile find_tile(const Source& source, std::uint64_t number, std::uint32_t& key) {
  LaneTile lane{};
  key = 0;
  if (number >= source.tiles) return lane;
  const std::uint32_t message = find_message_alone(source.first_tile, source.messages, source.tiles, number);
  const MessageView& view = source.views[message];
  const TileView tile =
      make_tile(view, message, number, number - source.first_tile[message], tile_units, Mode::unit_len);
  lane.text = tile.text;
  lane.units = tile.units;
  key = view.key;
  if constexpr (Mode::chained) {
    if (source.saved_ciphertext != nullptr || tile.first_unit == 0) {
      const Block& block = source.saved_ciphertext != nullptr ? source.saved_ciphertext[number] : view.start;
      lane.before = {{block.words[0], block.words[1]}};
    } else {
      lane.before = load_half(tile.text.in - 8, 8, 0);
    }
  }
  return lane;
}

template <class Mode, bool OneKey>
__global__ void __launch_bounds__(threads, 4) des_kernel(const __grid_constant__ Source source) {
  const auto passes = static_cast<int>(source.rounds / des::bitslice::rounds);
  if constexpr (OneKey) {
    for (std::uint32_t i = threadIdx.x; i < source.rounds * round_masks; i += blockDim.x) {
      const uint2 subkey = source.subkeys[i / round_masks * warp_len];
      shared_masks[i] = des::mask_of_bit({subkey.x, subkey.y}, i % round_masks);
    }
    __syncthreads();
  }
  const std::uint64_t stride = std::uint64_t{gridDim.x} * (blockDim.x / tile_lanes);
  for (std::uint64_t base = blockIdx.x * std::uint64_t{blockDim.x / tile_lanes} + threadIdx.x / warp_len * 4;
       base < source.tiles; base += stride) {
    std::uint32_t key = 0;
    const LaneTile tile = find_tile<Mode>(source, base + lane_index() / tile_lanes, key);
    const bool whole = Mode::unit_len != 1 && all_lanes(tile.is_whole());
    std::uint32_t words[64] = {};
    if constexpr (Mode::unit_len != 1) {
      if (whole) take_units<Mode, true>(tile, words);
    }
    if (!whole) take_units<Mode, false>(tile, words);
    des::bitslice::transpose(words);
    if constexpr (OneKey) {
      des::bitslice::transform(words, des::bitslice::MaskSchedule<std::uint32_t>{shared_masks}, passes);
    } else {
      des::bitslice::transform(words, TileSchedule(source, key), passes);
    }
    des::bitslice::transpose(words);
    if constexpr (Mode::unit_len != 1) {
      if (whole) give_units<Mode, true>(tile, words);
    }
    if (!whole) give_units<Mode, false>(tile, words);
  }
}

template <class Mode>
void launch_mode(const Device& device, Stream stream, const Source& source, bool one_key) {
  constexpr std::uint32_t tiles_of_block = threads / tile_lanes;
  const std::uint64_t wanted = (source.tiles + tiles_of_block - 1) / tiles_of_block;
  const std::uint64_t most = 4 * std::uint64_t{device.multiprocessors};
  const std::size_t masks = one_key ? source.rounds * round_masks : tiles_of_block * tile_masks;
  const LaunchConfiguration configuration{static_cast<std::uint32_t>(wanted < most ? wanted : most), threads,
                                          masks * sizeof(std::uint32_t)};
  launch(one_key ? &des_kernel<Mode, true> : &des_kernel<Mode, false>, configuration, stream, source);
}

}  // namespace

void run_tiles(const Device& device, Stream stream, const Algorithm& algorithm, Direction direction,
               const TileList& list, const DesSchedules& schedules, bool in_place) {
  if (list.tiles == 0) return;
  const bool saves = in_place && reads_previous_block(algorithm, direction);
  const StreamBuffer saved(saves ? list.tiles * sizeof(Block) : 0, stream);
  auto* const saved_ciphertext = reinterpret_cast<Block*>(saved.data());
  if (saves) save_ciphertext(device, stream, algorithm, list, saved_ciphertext);
  const Source source{list, schedules.subkeys(), saved_ciphertext, schedules.rounds()};
  const bool one_key = schedules.of_one_key();
  switch (algorithm.mode.id) {
    case warpcipher::Mode::ecb: return launch_mode<EcbMode>(device, stream, source, one_key);
    case warpcipher::Mode::cbc: return launch_mode<CbcDecryption>(device, stream, source, one_key);
    case warpcipher::Mode::cfb: return launch_mode<CfbDecryption>(device, stream, source, one_key);
    case warpcipher::Mode::cfb8: return launch_mode<Cfb8Decryption>(device, stream, source, one_key);
    default: throw_failure("this mode of DES has no parallel kernel");
  }
}

}  // namespace warpcipher::cuda::bitslice
