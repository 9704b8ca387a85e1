// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/execution/columns.hpp"

#include <cuda_runtime_api.h>

#include <bit>

#include "engine/cuda/aes/launches.hpp"
#include "engine/cuda/execution/device_batch.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "message/message.hpp"

namespace warpcipher::cuda {

void run_sectors(const Device& device, const Message& first, std::size_t count, Stream stream) {
  const Algorithm& algorithm = first.algorithm();
  const std::uint64_t text_len = first.in_len * count;
  const StreamBuffer ivs(count * sizeof(Block), stream, Wiping::needless);
  check(cudaMemcpyAsync(ivs.data(), first.iv, ivs.size(), cudaMemcpyHostToDevice, native(stream)),
        "copy IVs to the device");
  ColumnView view{};
  view.ivs = ivs.data();
  view.in = first.in;
  view.out = first.out;
  view.in_len = view.out_len = text_len;
  view.in_len_of_all = first.in_len;
  view.least_text_len = xts_least_text_len;
  view.most_text_len = xts_most_text_len;
  view.count = static_cast<std::uint32_t>(count);
  view.keys = 1;
  view.iv_len = sizeof(Block);
  view.block_log = view.unit_log = static_cast<std::uint32_t>(std::countr_zero(algorithm.block_len()));
  view.steals = true;
  view.encrypting = first.direction == Direction::encrypt;
  view.apart = first.in != first.out;
  const StreamBuffer memory(sizeof(BatchSummary), stream, Wiping::needless);
  auto* const summary = reinterpret_cast<BatchSummary*>(memory.data());
  check(cudaMemsetAsync(summary, 0, sizeof(BatchSummary), native(stream)), "clear device memory");
  AesKeys keys(device, stream, algorithm, first.direction);
  DeviceBatch batch{device, stream, algorithm, first.direction};
  batch.messages = view.count;
  batch.units = first.units() * count;
  batch.most_units = first.units();
  batch.tiles = (first.units() + tile_units - 1) / tile_units * count;
  batch.only_key = first.key;
  batch.aes_keys = &keys;
  batch.plan = batch.plan_of(view.room());
  if (batch.plan.text_launch == TextLaunch::sectors) {
    Speculation certain{};
    certain.summary = summary;
    certain.most_units = UINT64_MAX;
    return lane_table::start_hybrid_rows(device, stream, view, *first.key, keys.rounds(), certain);
  }
  const PlanMemory plan(view.count, false, summary, stream);
  summarize_columns(device, stream, view, plan.buffers());
  Upload upload;
  keys.reserve(upload, {&first.key, 1});
  upload.allocate(stream);
  keys.fill(upload);
  upload.send();
  batch.views = plan.buffers().views;
  batch.first_tile = plan.buffers().first_tile;
  encrypt_first_blocks(batch, nullptr);
  execute(batch, nullptr);
}

}  // namespace warpcipher::cuda
