// SPDX-License-Identifier: Apache-2.0
// Prepares a group of a parallel mode: what its kernels read, where it lies, and which kernel.
#include <algorithm>

#include "core/wipe.hpp"
#include "engine/cuda/chains.cuh"
#include "engine/cuda/ghash/ghash.hpp"
#include "engine/cuda/keys.hpp"
#include "engine/cuda/lane_table/blocks.hpp"
#include "engine/cuda/lane_table/counter.cuh"
#include "engine/cuda/lane_table/modes.cuh"
#include "engine/cuda/lane_table/parallel.hpp"
#include "engine/cuda/lane_table/run.hpp"
#include "engine/cuda/lane_table/xts.cuh"
#include "engine/cuda/memory.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

bool is_inverse(const Group& group) {
  const Mode mode = group.algorithm->mode.id;
  return group.direction == Direction::decrypt && (mode == Mode::ecb || mode == Mode::cbc || mode == Mode::xts);
}

Block start_of(const Message& message) {
  switch (message.algorithm().mode.id) {
    case Mode::gcm: {
      std::uint8_t counter[16];
      ghash::first_counter(message, counter);
      add_be32(counter, 1);
      return to_block(counter, 16);
    }
    case Mode::xts: {
      std::uint8_t tweak[16];
      aes::encrypt_block(aes_key_state(*message.key).tweak_schedule, message.iv, tweak);
      const Block block = to_block(tweak, 16);
      secure_wipe(tweak, sizeof tweak);
      return block;
    }
    default:
      return to_block(message.iv, message.iv_len);
  }
}

template <class Encryption, class Decryption>
void launch_either(const ParallelLaunch& launch, bool inverse, const typename Encryption::Parameters& parameters) {
  inverse ? launch_parallel<Decryption>(launch, parameters) : launch_parallel<Encryption>(launch, parameters);
}

void launch_mode(const ParallelLaunch& launch, const Group& group, const Block* chains, const std::uint32_t* verdicts) {
  const bool inverse = is_inverse(group);
  switch (group.algorithm->mode.id) {
    case Mode::ecb:
      return launch_either<EcbEncryption, EcbDecryption>(launch, inverse, {});
    case Mode::cbc:
      return launch_parallel<CbcDecryption>(launch, {chains});
    case Mode::cfb:
      return launch_parallel<CfbDecryption>(launch, {chains});
    case Mode::cfb8:
      return launch_parallel<Cfb8Decryption>(launch, {chains});
    case Mode::ctr:
      return launch_parallel<CounterMode>(launch, {false, nullptr});
    case Mode::gcm:
      return launch_parallel<CounterMode>(launch, {true, verdicts});
    case Mode::xts:
      return launch_either<XtsMode<false>, XtsMode<true>>(launch, inverse, {});
    case Mode::ofb:
      break;
  }
  throw Error(Status::engine_failure, std::string(group.algorithm->name) + " has no parallel kernel");
}

void run_batch(const GroupRun& run, const std::uint32_t* verdicts, bool only_chains, Block* chains) {
  const Group& group = run.group;
  const std::size_t count = group.messages.size();
  KeyList keys;
  for (std::size_t i = 0; i < count; ++i) keys.number(*run.message(i).key);
  Upload upload;
  const auto views = upload.reserve<MessageView>(count);
  const auto first_tile = upload.reserve<std::uint64_t>(group.first_tile.size());
  const auto schedules = upload.reserve<std::uint32_t>(only_chains ? 0 : most_schedule_words * keys.keys().size());
  const bool device_tweaks =
      group.algorithm->mode.id == Mode::xts && keys.keys().size() == 1 && count >= blocks_worth_a_launch;
  const auto tweaks = upload.reserve<Block>(device_tweaks ? count : 0);
  upload.allocate(run.stream);
  for (std::size_t i = 0; i < count; ++i) {
    const Message& message = run.message(i);
    MessageView& view = upload.host(views)[i];
    view = view_of(message);
    if (device_tweaks) {
      upload.host(tweaks)[i] = to_block(message.iv, 16);
    } else {
      view.start = start_of(message);
    }
    view.key = keys.number(*message.key);
  }
  std::copy(group.first_tile.begin(), group.first_tile.end(), upload.host(first_tile));
  if (!only_chains) {
    for (std::size_t k = 0; k < keys.keys().size(); ++k) {
      std::copy_n(aes_key_state(*keys.keys()[k]).words(is_inverse(group)), most_schedule_words,
                  upload.host(schedules) + most_schedule_words * k);
    }
  }
  upload.send();
  if (device_tweaks) {
    encrypt_blocks(run.device, run.stream, aes_key_state(*keys.keys()[0]).tweak_words, group.algorithm->cipher.key_len,
                   upload.device(tweaks), count, &upload.device(views)->start, sizeof(MessageView));
  }
  if (chains != nullptr) save_chains(run, upload.device(views), upload.device(first_tile), tile_units, chains);
  if (only_chains) return;
  const MessageList list{upload.device(views), upload.device(first_tile), group.tiles(),
                         static_cast<std::uint32_t>(count)};
  const auto rounds = static_cast<std::uint32_t>(group.algorithm->cipher.key_len / 4 + 6);
  const Form form = choose_form(run.device);
  if (group.algorithm->mode.id == Mode::xts && keys.keys().size() == 1 && form == Form::tables_128) {
    Secret<OneKeySource> source;
    static_cast<MessageList&>(*source) = list;
    source->rounds = rounds;
    std::copy_n(upload.host(schedules), most_schedule_words, source->schedule);
    return launch_mode({run.device, run.stream, form, nullptr, &*source, nullptr}, group, chains, verdicts);
  }
  const BatchSource source{list, rounds, upload.device(schedules)};
  launch_mode({run.device, run.stream, form, nullptr, nullptr, &source}, group, chains, verdicts);
}

void run_single(const GroupRun& run, const std::uint32_t* verdicts, Block* chains) {
  if (chains != nullptr) run_batch(run, nullptr, true, chains);
  const Message& message = run.message(0);
  Secret<SingleSource> source;
  source->view = view_of(message);
  source->view.start = start_of(message);
  source->tiles = run.group.tiles();
  source->rounds = static_cast<std::uint32_t>(run.group.algorithm->cipher.key_len / 4 + 6);
  std::copy_n(aes_key_state(*message.key).words(is_inverse(run.group)), most_schedule_words, source->schedule);
  launch_mode({run.device, run.stream, choose_form(run.device), &*source, nullptr, nullptr}, run.group, chains,
              verdicts);
}

}  // namespace

void run_parallel(const GroupRun& run, const std::uint32_t* verdicts) {
  if (run.group.tiles() == 0) return;
  if (run.group.tiles() > most_tiles) {
    throw Error(Status::engine_failure, std::string(run.group.algorithm->name) + ": " +
                                            std::to_string(run.group.tiles()) +
                                            " tiles of 256 units in one batch, at most " + std::to_string(most_tiles) +
                                            " can be run at once: cut the batch");
  }
  const StreamBuffer saved(needs_chains(run) ? run.group.tiles() * sizeof(Block) : 0, run.stream);
  auto* chains = reinterpret_cast<Block*>(saved.data());
  if (run.group.messages.size() == 1 && run.group.algorithm->mode.id != Mode::xts) {
    run_single(run, verdicts, chains);
  } else {
    run_batch(run, verdicts, false, chains);
  }
}

}  // namespace warpcipher::cuda::lane_table
