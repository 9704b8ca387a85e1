// SPDX-License-Identifier: Apache-2.0
// Prepares a group of a parallel mode: what its kernels read, where it lies, and which kernel.
#include <algorithm>
#include <string>

#include "core/wipe.hpp"
#include "engine/cuda/batch/aes_batch.hpp"
#include "engine/cuda/chains.hpp"
#include "engine/cuda/ghash/ghash.hpp"
#include "engine/cuda/group_run.hpp"
#include "engine/cuda/keys.hpp"
#include "engine/cuda/lane_table/mixed.hpp"
#include "engine/cuda/lane_table/mixed_text.hpp"
#include "engine/cuda/lane_table/packed.hpp"
#include "engine/cuda/lane_table/parallel.hpp"
#include "engine/cuda/lane_table/run.hpp"
#include "engine/cuda/memory.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

Block start_of(const Message& message) {
  if (message.algorithm().mode.id != Mode::gcm) return to_block(message.iv, message.iv_len);
  std::uint8_t counter[16];
  ghash::first_counter(message, counter);
  add_be32(counter, 1);
  return to_block(counter, 16);
}

template <class Encryption, class Decryption>
void launch_either(const ParallelLaunch& launch, bool inverse) {
  inverse ? launch_parallel<Decryption>(launch, NoParameters{}) : launch_parallel<Encryption>(launch, NoParameters{});
}

void launch_mode(const ParallelLaunch& launch, const Algorithm& algorithm, Direction direction, const Block* chains,
                 const std::uint32_t* verdicts) {
  const bool inverse = algorithm.inverse(direction);
  switch (algorithm.mode.id) {
    case Mode::ecb:
      return launch_either<EcbEncryption, EcbDecryption>(launch, inverse);
    case Mode::cbc:
      return launch_parallel<CbcDecryption>(launch, ChainParameters{chains});
    case Mode::cfb:
      return launch_parallel<CfbDecryption>(launch, ChainParameters{chains});
    case Mode::cfb8:
      return launch_parallel<Cfb8Decryption>(launch, ChainParameters{chains});
    case Mode::ctr:
      return launch_parallel<CounterMode>(launch, CounterParameters{false, nullptr});
    case Mode::gcm:
      return launch_parallel<CounterMode>(launch, CounterParameters{true, verdicts});
    case Mode::xts:
      return launch_either<XtsMode<false>, XtsMode<true>>(launch, inverse);
    case Mode::ofb:
      break;
  }
  throw Error(Status::engine_failure, std::string(algorithm.name) + " has no parallel kernel");
}

void run_batch(const GroupRun& run, const AesBatch& batch, const std::uint32_t* verdicts) {
  const MessageList list{
      {batch.views(), batch.first_tile(), run.group.tiles(), static_cast<std::uint32_t>(run.group.messages.size())}};
  const Mode mode = run.group.algorithm->mode.id;
  if (mode == Mode::ctr || mode == Mode::gcm) {
    const CounterBatch counters{list.views,
                                list.first_tile,
                                list.tiles,
                                batch.units(),
                                batch.most_units(),
                                list.messages,
                                batch.rounds(),
                                batch.round_keys(),
                                nullptr,
                                batch.keys() == 1 ? run.message(0).key : nullptr};
    return run_counter_batch(run.device, run.stream, counters, choose_counter(run.device, counters), mode == Mode::gcm,
                             verdicts);
  }
  run_tiles(run.device, run.stream, *run.group.algorithm, run.group.direction,
            {list, batch.rounds(), batch.round_keys()}, batch.units(), needs_chains(run),
            batch.keys() == 1 ? run.message(0).key : nullptr);
}

void save_chains_of_one(const GroupRun& run, const MessageView& view, Block* chains) {
  Upload upload;
  const auto views = upload.reserve<MessageView>(1);
  const auto first_tile = upload.reserve<std::uint64_t>(2);
  upload.allocate(run.stream);
  *upload.host(views) = view;
  std::copy_n(run.group.first_tile.begin(), 2, upload.host(first_tile));
  upload.send();
  save_chains(run.device, run.stream, *run.group.algorithm,
              {upload.device(views), upload.device(first_tile), run.group.tiles(), 1}, tile_units, chains);
}

void run_single(const GroupRun& run, const std::uint32_t* verdicts) {
  const StreamBuffer saved(needs_chains(run) ? run.group.tiles() * sizeof(Block) : 0, run.stream);
  auto* const chains = reinterpret_cast<Block*>(saved.data());
  const Message& message = run.message(0);
  Secret<SingleSource> source;
  source->view = view_of(message);
  source->view.start = start_of(message);
  if (chains != nullptr) save_chains_of_one(run, source->view, chains);
  source->tiles = run.group.tiles();
  source->rounds = static_cast<std::uint32_t>(run.group.algorithm->cipher.key_len / 4 + 6);
  const Algorithm& algorithm = message.algorithm();
  std::copy_n(aes_key_state(*message.key).words(algorithm.inverse(message.direction)), most_schedule_words,
              source->schedule);
  const Form form = choose_form(run.device);
  const Mode mode = algorithm.mode.id;
  if ((mode == Mode::ctr || mode == Mode::gcm) && choose_mixed(run.device, form, *source)) {
    return run_mixed(run.device, run.stream, *source, mode == Mode::gcm, verdicts);
  }
  const bool mixes = mode == Mode::ecb || mode == Mode::cbc || mode == Mode::cfb;
  if (mixes && choose_mixed_text(run.device, form, source->tiles)) {
    return run_mixed_text(run.device, run.stream, mode, algorithm.inverse(message.direction), *source, chains);
  }
  launch_mode({run.device, run.stream, form, &*source, nullptr, nullptr}, algorithm, message.direction, chains,
              verdicts);
}

}  // namespace

void run_parallel(const GroupRun& run, const AesBatch* batch, const std::uint32_t* verdicts) {
  if (run.group.tiles() == 0) return;
  if (run.group.tiles() > most_tiles) {
    throw Error(Status::engine_failure, std::string(run.group.algorithm->name) + ": " +
                                            std::to_string(run.group.tiles()) +
                                            " tiles of 256 units in one batch, at most " + std::to_string(most_tiles) +
                                            " can be run at once: cut the batch");
  }
  if (run.group.messages.size() == 1 && run.group.algorithm->mode.id != Mode::xts) {
    run_single(run, verdicts);
  } else if (batch != nullptr) {
    run_batch(run, *batch, verdicts);
  } else {
    run_batch(run, AesBatch(run), verdicts);
  }
}

void run_tiles(const Device& device, Stream stream, const Algorithm& algorithm, Direction direction,
               const BatchSource& batch, std::uint64_t units, bool in_place, const Key* only_key) {
  if (batch.tiles == 0) return;
  const Form form = choose_form(device);
  if (algorithm.mode.id == Mode::xts && only_key != nullptr && form == Form::tables_128) {
    Secret<OneKeySource> source;
    static_cast<MessageList&>(*source) = batch;
    source->rounds = batch.rounds;
    std::copy_n(aes_key_state(*only_key).words(algorithm.inverse(direction)), most_schedule_words, source->schedule);
    if (are_mostly_whole(units, batch.tiles) && choose_mixed_text(device, form, batch.tiles)) {
      return run_mixed_xts(device, stream, algorithm.inverse(direction), *source);
    }
    return launch_mode({device, stream, form, nullptr, &*source, nullptr}, algorithm, direction, nullptr, nullptr);
  }
  const bool saves = in_place && chains_blocks(algorithm, direction);
  const StreamBuffer saved(saves ? batch.tiles * sizeof(Block) : 0, stream);
  auto* const chains = reinterpret_cast<Block*>(saved.data());
  if (saves) save_chains(device, stream, algorithm, batch, tile_units, chains);
  launch_mode({device, stream, form, nullptr, nullptr, &batch}, algorithm, direction, chains, nullptr);
}

}  // namespace warpcipher::cuda::lane_table
