// SPDX-License-Identifier: Apache-2.0
#include "prg/cuda/hybrid_expand.hpp"

#include "engine/cuda/aes/hybrid.cuh"
#include "engine/cuda/runtime/launch.hpp"
#include "engine/cuda/runtime/refusal.hpp"

namespace warpcipher::prg::cuda {
namespace {

using namespace ::warpcipher::cuda::lane_table;
using ::warpcipher::cuda::Block, ::warpcipher::cuda::Device, ::warpcipher::cuda::PickedText,
    ::warpcipher::cuda::lane_index, ::warpcipher::cuda::load_aligned, ::warpcipher::cuda::overrides,
    ::warpcipher::cuda::tile_units, ::warpcipher::cuda::warp_index, ::warpcipher::cuda::warp_len;

// 64 MiB of children, as of a message's text.
constexpr std::uint64_t least_of_hybrid = std::uint64_t{1} << 21;
constexpr int children = 2;

struct Seeds {
  std::uint32_t schedules[children][4 * (aes_rounds + 1)];
  aes::SlicedKey sliced[children][aes_rounds - 1];  // of all rounds between the first and the last AddRoundKey
  const std::uint8_t* in;
  std::uint8_t* out;
  std::uint32_t tiles;  // of 256 seeds
};

// The key of a child, for both kinds of warps (hybrid_keys.cuh).
struct ChildKey : ParameterKey {
  static constexpr std::uint32_t first_sliced = 1;
  const aes::SlicedKey* masks;

  __device__ __forceinline__ ChildKey(const Seeds& seeds, int child)
      : ParameterKey{seeds.schedules[child]}, masks(seeds.sliced[child]) {}
  __device__ __forceinline__ const aes::SlicedKey& sliced(std::uint32_t r) const { return masks[r - first_sliced]; }
};

// Row `row` of a tile, 32 seeds: a lane's seed as the cipher takes it, and where its children go. A seed is loaded
// again when it is added, which takes fewer registers.
struct Rows {
  const std::uint8_t* in;
  std::uint8_t* out;

  __device__ __forceinline__ Rows(const Seeds& seeds, std::uint32_t tile) {
    const std::uint64_t first = std::uint64_t{tile} * tile_units + lane_index();
    in = seeds.in + block_len * first;
    out = seeds.out + children * block_len * first;
  }
  __device__ __forceinline__ Block turned(std::uint32_t row) const {
    const Block seed = load_aligned(in + block_len * warp_len * row);
    return {{seed.words[2], seed.words[3], seed.words[0] ^ seed.words[2], seed.words[1] ^ seed.words[3]}};
  }
  __device__ __forceinline__ void store(std::uint32_t row, int child, const Block& made) const {
    const Block sum = made ^ turned(row);
    *reinterpret_cast<uint4*>(out + block_len * (children * warp_len * row + child)) =
        make_uint4(sum.words[0], sum.words[1], sum.words[2], sum.words[3]);
  }
};

__device__ __forceinline__ void make_by_tables(const Rows& rows, const ChildKey& key, int child) {
  const LaneCipher<Tables128ByProduct, false, 0, ChildKey> cipher(key, aes_rounds);
#pragma unroll 1
  for (std::uint32_t row = 0; row < tile_units / warp_len; row += blocks_in_flight) {
    Block blocks[blocks_in_flight];
#pragma unroll
    for (std::uint32_t n = 0; n < blocks_in_flight; ++n) blocks[n] = rows.turned(row + n);
    cipher(blocks);
#pragma unroll
    for (std::uint32_t n = 0; n < blocks_in_flight; ++n) rows.store(row + n, child, blocks[n]);
  }
}

__device__ __forceinline__ void make_by_logic(const Rows& rows, const ChildKey& key, int child) {
  std::uint32_t columns[4][8];
  const Block first = key.round(0);
#pragma unroll
  for (std::uint32_t n = 0; n < 8; ++n) {
    const Block block = rows.turned(n) ^ first;
#pragma unroll
    for (std::uint32_t c = 0; c < 4; ++c) columns[c][n] = block.words[c];
  }
  aes::Slices state = aes::Slices::of_columns(columns);
  run_sliced_rounds<false>(state, key, aes_rounds, columns);
  const Block last = key.round(aes_rounds);
#pragma unroll
  for (std::uint32_t n = 0; n < 8; ++n) {
    rows.store(n, child, Block{{columns[0][n], columns[1][n], columns[2][n], columns[3][n]}} ^ last);
  }
}

__global__ void __launch_bounds__(block_threads, 1) hybrid_expand_kernel(const __grid_constant__ Seeds seeds) {
  fill_tables<Tables128ByProduct, false>();
  if (threadIdx.x == 0) *count_of_deals() = 0;
  __syncthreads();
  const bool by_logic = warp_index() < HybridPolicy::sliced_warps;
  auto dealer = TileDealer<>::of_grid(0, seeds.tiles, by_logic);
  std::uint32_t tile = 0;
  while (dealer.take(tile)) {
    const Rows rows(seeds, tile);
#pragma unroll 1
    for (int child = 0; child < children; ++child) {
      const ChildKey key(seeds, child);
      by_logic ? make_by_logic(rows, key, child) : make_by_tables(rows, key, child);
    }
  }
}

}  // namespace

std::uint64_t expand_by_hybrid(const Device& device, const std::uint8_t* seeds, std::uint64_t count, std::uint8_t* out,
                               Stream stream) {
  const PickedText forced = overrides().text;
  const bool is_measured = has_hybrid(device) && count >= least_of_hybrid;
  if (forced == PickedText::tiles || (forced != PickedText::hybrid && !is_measured) ||
      device.shared_len < HybridPolicy::shared_len) {
    return 0;
  }
  Seeds made{{}, {}, seeds, out, static_cast<std::uint32_t>(count / tile_units)};
  for (int child = 0; child < children; ++child) {
    for (int i = 0; i < 4 * (aes_rounds + 1); ++i) made.schedules[child][i] = fixed_schedules.words[child][i];
    for (int r = 1; r < aes_rounds; ++r) {
      made.sliced[child][r - 1] =
          aes::slice_key(reinterpret_cast<const std::uint8_t*>(fixed_schedules.words[child] + 4 * r));
    }
  }
  if (made.tiles != 0) {
    ::warpcipher::cuda::launch(&hybrid_expand_kernel, {device.multiprocessors, block_threads, HybridPolicy::shared_len},
                               stream, made);
  }
  return std::uint64_t{tile_units} * made.tiles;
}

}  // namespace warpcipher::prg::cuda
