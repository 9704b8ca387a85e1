// SPDX-License-Identifier: Apache-2.0
// The inputs of the tile kernels of a parallel mode.
#include "engine/cuda/aes/launches.hpp"

#include <algorithm>

#include "core/wipe.hpp"
#include "engine/cuda/aes/hybrid.hpp"
#include "engine/cuda/inputs/host_views.hpp"
#include "engine/cuda/inputs/keys.hpp"
#include "engine/cuda/inputs/texts.hpp"
#include "engine/cuda/runtime/memory.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

template <class Encryption, class Decryption>
void launch_either(const ParallelLaunch& launch, bool inverse) {
  inverse ? launch_parallel<Decryption>(launch, NoParameters{}) : launch_parallel<Encryption>(launch, NoParameters{});
}

// Of a message by itself.
void launch_counter(const ParallelLaunch& launch, const CounterParameters& parameters) {
  is_aligned(launch.single->view) ? launch_parallel<CounterMode>(launch, parameters)
                                  : launch_parallel<UnalignedCounterMode>(launch, parameters);
}

void launch_mode(const ParallelLaunch& launch, const Algorithm& algorithm, Direction direction,
                 const Block* saved_ciphertext, const std::uint32_t* verdicts) {
  const bool inverse = algorithm.inverse(direction);
  switch (algorithm.mode.id) {
    case Mode::ecb: return launch_either<EcbEncryption, EcbDecryption>(launch, inverse);
    case Mode::cbc: return launch_parallel<CbcDecryption>(launch, ChainParameters{saved_ciphertext});
    case Mode::cfb: return launch_parallel<CfbDecryption>(launch, ChainParameters{saved_ciphertext});
    case Mode::cfb8: return launch_parallel<Cfb8Decryption>(launch, ChainParameters{saved_ciphertext});
    case Mode::ctr: return launch_counter(launch, CounterParameters{false, nullptr});
    case Mode::gcm: return launch_counter(launch, CounterParameters{true, verdicts});
    case Mode::xts: return launch_either<XtsMode<false>, XtsMode<true>>(launch, inverse);
    default: break;
  }
  throw Error(Status::engine_failure, algorithm.name, " has no parallel kernel");
}

void save_ciphertext_of_one(const Device& device, Stream stream, const Algorithm& algorithm, const SingleSource& source,
                            Block* saved_ciphertext) {
  Upload upload;
  const auto views = upload.reserve<MessageView>(1);
  const auto first_tile = upload.reserve<std::uint64_t>(2);
  upload.allocate(stream);
  *upload.host(views) = source.view;
  upload.host(first_tile)[0] = 0;
  upload.host(first_tile)[1] = source.tiles;
  upload.send();
  save_ciphertext(device, stream, algorithm, {upload.device(views), upload.device(first_tile), source.tiles, 1},
                  saved_ciphertext);
}

}  // namespace

void run_one(const Device& device, Stream stream, const TextChoice& choice, const Message& message, const Block& start,
             const std::uint32_t* verdict) {
  const Algorithm& algorithm = message.algorithm();
  const Mode mode = algorithm.mode.id;
  const bool inverse = algorithm.inverse(message.direction);
  Secret<SingleSource> source;
  source->view = view_of(message);
  source->view.start = start;
  source->tiles = (source->view.units + tile_units - 1) / tile_units;
  source->rounds = static_cast<std::uint32_t>(algorithm.cipher.key_len / 4 + 6);
  std::copy_n(aes_key_state(*message.key).words(inverse), most_schedule_words, source->schedule);
  const bool saves = message.in == message.out && reads_previous_block(algorithm, message.direction);
  const StreamBuffer saved(saves ? source->tiles * sizeof(Block) : 0, stream);
  auto* const saved_ciphertext = reinterpret_cast<Block*>(saved.data());
  if (saves) save_ciphertext_of_one(device, stream, algorithm, *source, saved_ciphertext);
  if (choice.kernel == TextKernel::hybrid) {
    if (mode == Mode::ctr || mode == Mode::gcm) {
      return run_hybrid_counter(device, stream, *source, mode == Mode::gcm, verdict);
    }
    return run_hybrid_text(device, stream, mode, inverse, *source, saved_ciphertext);
  }
  launch_mode({device, stream, choice.layout, &*source, nullptr, nullptr}, algorithm, message.direction,
              saved_ciphertext, verdict);
}

void run_tiles(const Device& device, Stream stream, const Algorithm& algorithm, Direction direction,
               const TextChoice& choice, const BatchSource& batch, bool in_place, const Key* only_key) {
  if (batch.tiles == 0) return;
  const TableLayout layout = choice.layout;
  if (algorithm.mode.id == Mode::xts && only_key != nullptr && layout == TableLayout::tables_128) {
    Secret<OneKeySource> source;
    static_cast<MessageList&>(*source) = batch;
    source->rounds = batch.rounds;
    std::copy_n(aes_key_state(*only_key).words(algorithm.inverse(direction)), most_schedule_words, source->schedule);
    if (choice.kernel == TextKernel::hybrid) {
      return run_hybrid_xts(device, stream, algorithm.inverse(direction), *source);
    }
    return launch_mode({device, stream, layout, nullptr, &*source, nullptr}, algorithm, direction, nullptr, nullptr);
  }
  const bool saves = in_place && reads_previous_block(algorithm, direction);
  const StreamBuffer saved(saves ? batch.tiles * sizeof(Block) : 0, stream);
  auto* const saved_ciphertext = reinterpret_cast<Block*>(saved.data());
  if (saves) save_ciphertext(device, stream, algorithm, batch, saved_ciphertext);
  launch_mode({device, stream, layout, nullptr, nullptr, &batch}, algorithm, direction, saved_ciphertext, nullptr);
}

}  // namespace warpcipher::cuda::lane_table
