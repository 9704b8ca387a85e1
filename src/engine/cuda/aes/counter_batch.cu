// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/wipe.hpp"
#include "engine/cuda/aes/cipher.cuh"
#include "engine/cuda/aes/hybrid.hpp"
#include "engine/cuda/aes/launches.hpp"
#include "engine/cuda/aes/source.cuh"
#include "engine/cuda/inputs/keys.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

bool is_packed(CounterKernel kernel) {
  return kernel == CounterKernel::packed || kernel == CounterKernel::hybrid_packed;
}

struct CounterRun {
  const Device& device;
  Stream stream;
  const CounterBatch& batch;
  const CounterChoice& choice;
  CounterForm form;
  const CounterParameters& counting;
  const Speculation& speculation;
  bool are_ends = false;  // that tiles lack, and not whole messages

  PackedParameters packed() const { return {choice.group_log, counting.wrap_32, counting.verdicts}; }
  bool has_ends() const { return batch.lacks_ends && !is_packed(choice.kernel) && batch.end_units != 0; }

  // The ends that tiles lack.
  void run_ends() const {
    CounterChoice of_ends = choice;
    of_ends.kernel = CounterKernel::packed;
    of_ends.group_log = group_log_for(batch.end_units, batch.messages);
    const Speculation none{};
    CounterRun{device, stream, batch, of_ends, form, counting, none, true}.run();
  }

  void run_tiles(const ParallelLaunch& run) const {
    if (form == CounterForm::first_word) {
      return batch.is_aligned ? launch_parallel<LittleEndianCounterMode>(run, counting)
                              : launch_parallel<UnalignedLittleEndianCounterMode>(run, counting);
    }
    batch.is_aligned ? launch_parallel<CounterMode>(run, counting)
                     : launch_parallel<UnalignedCounterMode>(run, counting);
  }

  // Of one key, which is a kernel parameter.
  void run_one_key(const MessageList& list) const {
    Secret<OneKeySource> source;
    static_cast<MessageList&>(*source) = list;
    source->rounds = batch.rounds;
    std::copy_n(aes_key_state(*batch.only_key).words(false), most_schedule_words, source->schedule);
    switch (choice.kernel) {
      case CounterKernel::hybrid_packed:
        return launch_hybrid_packed(device, stream, *slice_keys<CounterSource<OneKeySource>>(*source), counting,
                                    PackedLayout(static_cast<std::uint32_t>(batch.most_units)), speculation);
      case CounterKernel::hybrid:
        return launch_hybrid_batch(device, stream, form, batch.is_aligned,
                                   *slice_keys<CounterSource<OneKeySource>>(*source), counting, speculation);
      case CounterKernel::packed: return launch_packed(device, stream, *source, packed(), speculation);
      case CounterKernel::tiles: return run_tiles({device, stream, choice.layout, nullptr, &*source, nullptr});
    }
  }

  void run_round_keys(const MessageList& list) const {
    const BatchSource source{list, batch.rounds, batch.round_keys};
    switch (choice.kernel) {
      case CounterKernel::hybrid_packed:  // never chosen if the key is not a parameter
      case CounterKernel::packed:
        return launch_packed(device, stream, choice.layout, form, source, packed(), speculation);
      case CounterKernel::hybrid:
        return launch_hybrid_batch(device, stream, form, batch.is_aligned, source, counting, speculation);
      case CounterKernel::tiles: return run_tiles({device, stream, choice.layout, nullptr, nullptr, &source});
    }
  }

  void run() const {
    const bool lacks_ends = batch.lacks_ends && (are_ends || !is_packed(choice.kernel));
    const MessageList list{{batch.views, batch.first_tile, batch.tiles, batch.messages, lacks_ends}};
    switch (choice.keys) {
      case KeySource::parameter: return run_one_key(list);
      case KeySource::bytes: return launch_packed(device, stream, form, list, batch.keys, packed(), speculation);
      case KeySource::round_keys: return run_round_keys(list);
    }
  }
};

}  // namespace

void run_counter_batch(const Device& device, Stream stream, const CounterBatch& batch, const CounterChoice& choice,
                       CounterForm form, const std::uint32_t* verdicts) {
  const CounterParameters counting{form == CounterForm::last_word, verdicts};
  const Speculation none{};
  const CounterRun run{device, stream, batch, choice, form, counting, none};
  if (batch.tiles != 0 || is_packed(choice.kernel)) run.run();
  if (run.has_ends()) run.run_ends();
}

void run_ends(const Device& device, Stream stream, const CounterBatch& batch, const CounterChoice& choice,
              CounterForm form) {
  const CounterParameters counting{form == CounterForm::last_word, nullptr};
  const Speculation none{};
  const CounterRun run{device, stream, batch, choice, form, counting, none};
  if (run.has_ends()) run.run_ends();
}

bool start_counter_batch(const Device& device, Stream stream, const CounterBatch& batch, CounterChoice choice,
                         CounterForm form, Speculation& speculation) {
  if (batch.units == 0 || choice.kernel == CounterKernel::tiles) return false;
  speculation.least_units = batch.units / 2;
  speculation.most_units = is_packed(choice.kernel) ? most_packed_units(choice.group_log) : UINT64_MAX;
  speculation.units_of_tile = choice.kernel == CounterKernel::hybrid ? tile_units : 0;
  speculation.is_aligned = choice.kernel == CounterKernel::hybrid && batch.is_aligned;
  Speculation own = speculation;
  const CounterParameters counting{form == CounterForm::last_word, nullptr};
  const CounterRun run{device, stream, batch, choice, form, counting, own};
  if (choice.kernel == CounterKernel::hybrid_packed) {
    // For messages of one length. The packed kernel, launched after it, takes others.
    own.least_units = batch.units;
    own.most_units = batch.most_units;
    run.run();
    own = speculation;
    own.mailbox = nullptr;
    own.others_units = batch.units;
    own.others_most = batch.most_units;
    choice.kernel = CounterKernel::packed;
  }
  run.run();
  return true;
}

namespace {

template <class Tables>
__global__ void __launch_bounds__(block_threads, 1)
    encrypt_first_blocks_kernel(const __grid_constant__ FirstBlocks batch) {
  fill_tables<Tables, false>();
  __syncthreads();
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < batch.count; i += stride) {
    MessageView& view = batch.views[i];
    const BatchSource::Key key{global(batch.round_keys) + std::size_t{most_round_keys} * view.key};
    const LaneCipher<Tables, false, 0, BatchSource::Key> cipher(key, batch.rounds);
    Block start = view.start;
    Block blocks[1] = {start};
    cipher(blocks);
    if (batch.masks == nullptr) {
      view.start = blocks[0];
    } else {
      batch.masks[i] = blocks[0];
      start.words[3] = byte_swap(byte_swap(start.words[3]) + 1);
      view.start = start;
    }
  }
}

template <class Tables>
void launch_first_blocks(const Device& device, Stream stream, const FirstBlocks& batch) {
  launch(&encrypt_first_blocks_kernel<Tables>,
         parallel_configuration(device, (std::uint64_t{batch.count} + warp_len - 1) / warp_len, Tables::shared_len),
         stream, batch);
}

}  // namespace

void encrypt_first_blocks(const Device& device, Stream stream, TableLayout layout, const FirstBlocks& batch) {
  layout == TableLayout::tables_128 ? launch_first_blocks<Tables128>(device, stream, batch)
                                    : launch_first_blocks<Tables64>(device, stream, batch);
}

}  // namespace warpcipher::cuda::lane_table
