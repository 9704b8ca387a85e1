// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/lane_table/counter_batch.hpp"

#include <algorithm>

#include "core/wipe.hpp"
#include "engine/cuda/inputs/keys.hpp"
#include "engine/cuda/lane_table/hybrid.hpp"
#include "engine/cuda/lane_table/hybrid_launch.hpp"
#include "engine/cuda/lane_table/packed.hpp"
#include "engine/cuda/lane_table/parallel.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

// Longer messages are cut into tiles, for more warps than one to share. 131,072 messages of 512 blocks on an H200,
// packed and as tiles: one key 1.34 and 1.32 ms (by the hybrid kernel 1.22), a key each 1.49 and 1.39.
constexpr std::uint64_t most_units_of_packed = 511;
// A group of lanes that takes a message much longer than the others keeps the launch waiting.
constexpr std::uint64_t most_steps_of_packed = 64;
constexpr std::uint32_t least_warps_of_multiprocessor = 8;  // fewer do not hide each other's waits: tiles are shorter

// log2 of the lanes that take a message of the average length in one step.
std::uint32_t group_log_for(const CounterBatch& batch) {
  const std::uint64_t average = (batch.units + batch.messages - 1) / batch.messages;
  std::uint32_t log = 0;
  while (log < 5 && (std::uint64_t{blocks_in_flight} << log) < average) ++log;
  return log;
}

// Of a message in a batch that is packed.
std::uint64_t most_units_for(std::uint32_t group_log) {
  return std::min(most_units_of_packed, most_steps_of_packed * blocks_in_flight << group_log);
}

bool choose_packed(const Device& device, const CounterBatch& batch, std::uint32_t group_log) {
  const std::string_view forced = forced_counter();
  if (forced == "tiles" || forced == "mixed" || batch.most_units > most_units_of_packed) return false;
  if (forced == "packed" || forced == "together") return true;
  const std::uint64_t warps = batch.messages >> (5 - group_log);
  return batch.most_units <= most_units_for(group_log) &&
         warps >= least_warps_of_multiprocessor * device.multiprocessors;
}

// Whether the batch's key can be a kernel parameter.
bool takes_parameter_key(TableLayout layout, const CounterBatch& batch) {
  return batch.only_key != nullptr && layout == TableLayout::tables_128 && batch.rounds != 12;
}

void run(const Device& device, Stream stream, const CounterBatch& batch, bool wrap_32, const std::uint32_t* verdicts,
         const CounterChoice& choice, const Speculation& speculation) {
  const PackedParameters parameters{choice.group_log, wrap_32, verdicts};
  const CounterParameters counting{wrap_32, verdicts};
  const MessageList list{{batch.views, batch.first_tile, batch.tiles, batch.messages}};
  if (takes_parameter_key(choice.layout, batch)) {
    Secret<OneKeySource> source;
    static_cast<MessageList&>(*source) = list;
    source->rounds = batch.rounds;
    std::copy_n(aes_key_state(*batch.only_key).words(false), most_schedule_words, source->schedule);
    if (choice.hybrid_packed) {
      return launch_hybrid_packed(device, stream, *slice_keys<CounterSource<OneKeySource>>(*source), counting,
                                  Places(static_cast<std::uint32_t>(batch.most_units)), speculation);
    }
    if (choice.hybrid) {
      return launch_hybrid_batch(device, stream, *slice_keys<CounterSource<OneKeySource>>(*source), counting,
                                 speculation);
    }
    if (choice.packed) return launch_packed(device, stream, *source, parameters, speculation);
    const ParallelLaunch tiles{device, stream, choice.layout, nullptr, &*source, nullptr};
    return launch_parallel<CounterMode>(tiles, counting);
  }
  if (choice.makes_round_keys) {
    return launch_packed(device, stream, list, batch.keys, parameters, speculation);
  }
  const BatchSource source{list, batch.rounds, batch.round_keys};
  if (choice.hybrid) return launch_hybrid_batch(device, stream, source, counting, speculation);
  if (!choice.packed) {
    const ParallelLaunch tiles{device, stream, choice.layout, nullptr, nullptr, &source};
    return launch_parallel<CounterMode>(tiles, counting);
  }
  launch_packed(device, stream, choice.layout, source, parameters, speculation);
}

}  // namespace

CounterChoice choose_counter(const Device& device, const CounterBatch& batch) {
  const TableLayout layout = choose_table_layout(device);
  const std::uint32_t group_log = group_log_for(batch);
  const bool packed = choose_packed(device, batch, group_log);
  const bool hybrid_packed = packed && takes_parameter_key(layout, batch) &&
                             choose_hybrid_packed(device, layout, batch.messages, batch.units, batch.most_units);
  const bool hybrid =
      !packed && are_mostly_whole(batch.units, batch.tiles) && choose_hybrid_batch(device, layout, batch.tiles);
  const bool makes_round_keys =
      packed && layout == TableLayout::tables_128 && batch.rounds == 10 && batch.keys != nullptr;
  return {layout, packed, hybrid_packed, hybrid, makes_round_keys, group_log};
}

void run_counter_batch(const Device& device, Stream stream, const CounterBatch& batch, const CounterChoice& choice,
                       bool wrap_32, const std::uint32_t* verdicts) {
  run(device, stream, batch, wrap_32, verdicts, choice, {});
}

bool start_counter_batch(const Device& device, Stream stream, const CounterBatch& batch, CounterChoice choice,
                         bool wrap_32, Speculation& speculation) {
  if (batch.tiles == 0 || !(choice.packed || choice.hybrid)) return false;
  speculation.least_units = batch.units / 2;
  speculation.most_units = choice.packed ? most_units_for(choice.group_log) : UINT64_MAX;
  speculation.units_of_tile = choice.hybrid ? tile_units : 0;
  Speculation own = speculation;
  if (choice.hybrid_packed) {  // messages all of one length; others are left to packed tables behind it
    own.least_units = batch.units;
    own.most_units = batch.most_units;
    run(device, stream, batch, wrap_32, nullptr, choice, own);
    own = speculation;
    own.mailbox = nullptr;
    own.others_units = batch.units;
    own.others_most = batch.most_units;
    choice.hybrid_packed = false;
  }
  run(device, stream, batch, wrap_32, nullptr, choice, own);
  return true;
}

}  // namespace warpcipher::cuda::lane_table
