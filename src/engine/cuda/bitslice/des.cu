// SPDX-License-Identifier: Apache-2.0
// Bitsliced DES (cipher/des_bitslice.hpp): eight lanes share a tile of 256 units, lane q takes units q, q + 8, ... q +
// 248 as the 32 bits of its words, so that the lanes' loads are neighbours. The masks of the key bits lie in shared
// memory when the whole group has one key, else in device memory.
//
// When out == in, the lanes of a warp write only after all of them have read; the block before a tile comes from
// `chains`.
//
// Tiles that are whole and aligned, four of a warp at once, are loaded and stored without a test, so that all loads are
// on their way together. For all others one loop takes a unit at a time, whatever it needs.
#include "engine/cuda/bitslice/des.hpp"

#include <algorithm>

#include "cipher/des_bitslice.hpp"
#include "engine/cuda/chains.cuh"
#include "engine/cuda/keys.hpp"
#include "engine/cuda/memory.hpp"
#include "engine/cuda/message_view.cuh"

namespace warpcipher::cuda::bitslice {
namespace {

constexpr std::uint32_t tile_units = 256;
constexpr std::uint32_t tile_lanes = 8;
constexpr std::uint32_t threads = 128;
constexpr std::uint32_t pass_masks = des::bitslice::schedule_bits;

}  // namespace

extern __shared__ std::uint32_t shared_masks[];  // of the launch: the masks of the group's one key

namespace {

struct Source {
  const MessageView* views;
  const std::uint64_t* first_tile;
  const std::uint32_t* masks;  // 768 a pass and key
  const Block* chains;         // the block before each tile; nullptr: still in `in`
  std::uint64_t tiles;
  std::uint32_t messages;
  std::uint32_t passes;
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

// What a lane sees of its tile. Lanes without a tile have units = 0 and an empty text.
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

// Each mode: what goes into the cipher for a unit, and what is added to what comes out. All of `add` happens before the
// first store of a warp. Whole: the tile is.

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

// Calls function(unit, first word, second word) for the lane's units. Whole: unrolled; else a loop of one body, through
// which the rows go round.
template <bool Whole, class Function>
__device__ __forceinline__ void for_each_unit(std::uint32_t (&rows)[64], Function&& function) {
  const std::uint32_t first_unit = lane_index() % tile_lanes;
  if constexpr (Whole) {
#pragma unroll
    for (std::uint32_t j = 0; j < 32; ++j) function(first_unit + tile_lanes * j, rows[j], rows[32 + j]);
  } else {
#pragma unroll 1
    for (std::uint32_t j = 0; j < 32; ++j) {
      std::uint32_t first = rows[0];
      std::uint32_t second = rows[32];
      function(first_unit + tile_lanes * j, first, second);
#pragma unroll
      for (std::uint32_t i = 0; i < 31; ++i) {
        rows[i] = rows[i + 1];
        rows[32 + i] = rows[33 + i];
      }
      rows[31] = first;
      rows[63] = second;
    }
  }
}

template <class Mode, bool Whole>
__device__ __forceinline__ void take_units(const LaneTile& tile, std::uint32_t (&rows)[64]) {
  for_each_unit<Whole>(rows, [&](std::uint32_t unit, std::uint32_t& first, std::uint32_t& second) {
    const HalfBlock half = Mode::template take<Whole>(tile, unit);
    first = half.words[0];
    second = half.words[1];
  });
}

template <class Mode, bool Whole>
__device__ __forceinline__ void give_units(const LaneTile& tile, std::uint32_t (&rows)[64]) {
  if constexpr (Mode::adds) {
    for_each_unit<Whole>(rows, [&](std::uint32_t unit, std::uint32_t& first, std::uint32_t& second) {
      const HalfBlock half = Mode::template add<Whole>(tile, unit);
      first ^= half.words[0];
      second ^= half.words[1];
    });
  }
  __syncwarp();
  for_each_unit<Whole>(rows, [&](std::uint32_t unit, std::uint32_t first, std::uint32_t second) {
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
  const Tile tile = make_tile(view, message, number, number - source.first_tile[message], tile_units, Mode::unit_len);
  lane.text = tile.text;
  lane.units = tile.units;
  key = view.key;
  if constexpr (Mode::chained) {
    if (source.chains != nullptr || tile.first_unit == 0) {
      const Block& block = source.chains != nullptr ? source.chains[number] : view.start;
      lane.before = {{block.words[0], block.words[1]}};
    } else {
      lane.before = load_half(tile.text.in - 8, 8, 0);
    }
  }
  return lane;
}

template <class Mode, bool OneKey>
__global__ void __launch_bounds__(threads, 4) des_kernel(const __grid_constant__ Source source) {
  if constexpr (OneKey) {
    for (std::uint32_t i = threadIdx.x; i < source.passes * pass_masks; i += blockDim.x)
      shared_masks[i] = source.masks[i];
    __syncthreads();
  }
  const std::uint64_t stride = std::uint64_t{gridDim.x} * (blockDim.x / tile_lanes);
  for (std::uint64_t base = blockIdx.x * std::uint64_t{blockDim.x / tile_lanes} + threadIdx.x / warp_len * 4;
       base < source.tiles; base += stride) {
    std::uint32_t key = 0;
    const LaneTile tile = find_tile<Mode>(source, base + lane_index() / tile_lanes, key);
    const bool whole = Mode::unit_len != 1 && all_lanes(tile.is_whole());
    std::uint32_t rows[64] = {};
    if constexpr (Mode::unit_len != 1) {
      if (whole) take_units<Mode, true>(tile, rows);
    }
    if (!whole) take_units<Mode, false>(tile, rows);
    des::bitslice::transpose(rows);
    const std::uint32_t* masks = OneKey ? shared_masks : source.masks + std::size_t{key} * source.passes * pass_masks;
    des::bitslice::transform(rows, des::bitslice::MaskSchedule<std::uint32_t>{masks}, static_cast<int>(source.passes));
    des::bitslice::transpose(rows);
    if constexpr (Mode::unit_len != 1) {
      if (whole) give_units<Mode, true>(tile, rows);
    }
    if (!whole) give_units<Mode, false>(tile, rows);
  }
}

template <class Mode>
void launch_mode(const GroupRun& run, const Source& source, bool one_key) {
  constexpr std::uint32_t tiles_of_block = threads / tile_lanes;
  const std::uint64_t wanted = (source.tiles + tiles_of_block - 1) / tiles_of_block;
  const std::uint64_t most = 4 * std::uint64_t{run.device.multiprocessors};
  const std::size_t shared_len = one_key ? source.passes * pass_masks * sizeof(std::uint32_t) : 0;
  const LaunchShape shape{static_cast<std::uint32_t>(wanted < most ? wanted : most), threads, shared_len};
  launch(one_key ? &des_kernel<Mode, true> : &des_kernel<Mode, false>, shape, run.stream, source);
}

}  // namespace

void run_parallel(const GroupRun& run) {
  const Group& group = run.group;
  if (group.tiles() == 0) return;
  const std::size_t count = group.messages.size();
  const bool decrypting = group.direction == Direction::decrypt;
  const auto mode = group.algorithm->mode.id;
  const bool inverse = decrypting && (mode == warpcipher::Mode::ecb || mode == warpcipher::Mode::cbc);
  const std::size_t key_len = group.algorithm->cipher.key_len;
  const auto passes = static_cast<std::uint32_t>(des::bitslice::pass_count(key_len));
  KeyList keys;
  for (std::size_t i = 0; i < count; ++i) keys.number(*run.message(i).key);

  Upload upload;
  const auto views = upload.reserve<MessageView>(count);
  const auto first_tile = upload.reserve<std::uint64_t>(group.first_tile.size());
  const auto masks = upload.reserve<std::uint32_t>(keys.keys().size() * passes * pass_masks);
  upload.allocate(run.stream);
  for (std::size_t i = 0; i < count; ++i) {
    const Message& message = run.message(i);
    MessageView& view = upload.host(views)[i];
    view = view_of(message);
    view.start = to_block(message.iv, message.iv_len);
    view.key = keys.number(*message.key);
  }
  std::copy(group.first_tile.begin(), group.first_tile.end(), upload.host(first_tile));
  for (std::size_t k = 0; k < keys.keys().size(); ++k) {
    des::bitslice::expand_key(upload.host(masks) + k * passes * pass_masks, keys.keys()[k]->bytes(), key_len, inverse);
  }
  upload.send();

  const StreamBuffer saved(needs_chains(run) ? group.tiles() * sizeof(Block) : 0, run.stream);
  auto* const chains = reinterpret_cast<Block*>(saved.data());
  if (chains != nullptr) {
    save_chains(run.device, run.stream, *group.algorithm,
                {upload.device(views), upload.device(first_tile), group.tiles(),
                 static_cast<std::uint32_t>(group.messages.size())},
                tile_units, chains);
  }
  const Source source{upload.device(views),
                      upload.device(first_tile),
                      upload.device(masks),
                      chains,
                      group.tiles(),
                      static_cast<std::uint32_t>(count),
                      passes};
  const bool one_key = keys.keys().size() == 1;
  switch (mode) {
    case warpcipher::Mode::ecb:
      return launch_mode<EcbMode>(run, source, one_key);
    case warpcipher::Mode::cbc:
      return launch_mode<CbcDecryption>(run, source, one_key);
    case warpcipher::Mode::cfb:
      return launch_mode<CfbDecryption>(run, source, one_key);
    case warpcipher::Mode::cfb8:
      return launch_mode<Cfb8Decryption>(run, source, one_key);
    default:
      throw Error(Status::engine_failure, std::string(group.algorithm->name) + " has no parallel kernel");
  }
}

}  // namespace warpcipher::cuda::bitslice
