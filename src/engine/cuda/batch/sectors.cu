// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/batch/sectors.hpp"

#include <cuda_runtime_api.h>

#include <cstring>

#include "engine/cuda/check.hpp"
#include "engine/cuda/group_run.hpp"
#include "engine/cuda/keys.hpp"
#include "engine/cuda/lane_table/parallel.hpp"
#include "engine/cuda/lane_table/run.hpp"
#include "engine/cuda/lane_table/starts.hpp"
#include "engine/cuda/launch.hpp"
#include "engine/cuda/memory.hpp"
#include "engine/cuda/stream.hpp"

namespace warpcipher::cuda {
namespace {

constexpr std::uint32_t threads = 128;

struct SectorViews {
  MessageView first;  // without its start
  const uint4* ivs;
  std::uint32_t count;
  std::uint32_t tiles_of_each;
  MessageView* views;
  std::uint64_t* first_tile;  // one more
};

__global__ void __launch_bounds__(threads) make_views(const __grid_constant__ SectorViews sectors) {
  const std::uint32_t stride = gridDim.x * blockDim.x;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i <= sectors.count; i += stride) {
    sectors.first_tile[i] = std::uint64_t{i} * sectors.tiles_of_each;
    if (i == sectors.count) break;
    MessageView view = sectors.first;
    view.in += i * view.in_len;
    view.out += i * view.in_len;
    const uint4 iv = sectors.ivs[i];
    view.start = {{iv.x, iv.y, iv.z, iv.w}};
    sectors.views[i] = view;
  }
}

}  // namespace

void run_sectors(const Device& device, const Message& first, std::size_t count, Stream stream) {
  const Algorithm& algorithm = first.algorithm();
  const auto sectors = static_cast<std::uint32_t>(count);
  const auto rounds = static_cast<std::uint32_t>(algorithm.cipher.key_len / 4 + 6);
  const std::uint64_t tiles_of_each = (first.units() + lane_table::tile_units - 1) / lane_table::tile_units;
  const AesKeyState& key = aes_key_state(*first.key);
  Upload upload;
  const auto rows = upload.reserve<uint4>(most_rows);
  const auto tweak_rows = upload.reserve<uint4>(most_rows);
  const auto ivs = upload.reserve_on_device<uint4>(count);
  const auto views = upload.reserve_on_device<MessageView>(count);
  const auto first_tile = upload.reserve_on_device<std::uint64_t>(count + 1);
  upload.allocate(stream);
  std::memcpy(upload.host(rows), key.words(algorithm.inverse(first.direction)), most_rows * sizeof(uint4));
  std::memcpy(upload.host(tweak_rows), key.tweak_words, sizeof key.tweak_words);
  upload.send();
  check(cudaMemcpyAsync(upload.device(ivs), first.iv, count * sizeof(uint4), cudaMemcpyHostToDevice, native(stream)),
        "copy IVs to the device");
  launch(&make_views, shape_of_lanes(device, count + 1, threads, 16), stream,
         SectorViews{view_of(first), upload.device(ivs), sectors, static_cast<std::uint32_t>(tiles_of_each),
                     upload.device(views), upload.device(first_tile)});
  lane_table::encrypt_starts(device, stream,
                             {upload.device(views), sectors, upload.device(tweak_rows), rounds, nullptr});
  const TileList list{upload.device(views), upload.device(first_tile), count * tiles_of_each, sectors};
  lane_table::run_tiles(device, stream, algorithm, first.direction, {{list}, rounds, upload.device(rows)},
                        count * first.units(), false, first.key);
}

}  // namespace warpcipher::cuda
