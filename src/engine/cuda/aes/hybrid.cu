// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/aes/hybrid.hpp"

#include <algorithm>

#include "core/wipe.hpp"
#include "engine/cuda/aes/launches.hpp"
#include "engine/cuda/inputs/keys.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

template <class Mode, class Source, class Parameters>
void run_text(const Device& device, Stream stream, const Source& source, const Parameters& parameters) {
  launch_hybrid_text<Mode>(device, stream, *slice_keys<TextSource<Source>>(source), parameters);
}

}  // namespace

void run_hybrid_counter(const Device& device, Stream stream, const SingleSource& message, bool wrap_32,
                        const std::uint32_t* verdicts) {
  launch_hybrid_counter<CounterMode>(device, stream, *slice_keys<CounterSource<SingleSource>>(message),
                                     CounterParameters{wrap_32, verdicts, device.multiprocessors});
}

void run_hybrid_key_stream(const Device& device, Stream stream, const SingleSource& message) {
  launch_hybrid_counter<KeyStreamMode>(device, stream, *slice_keys<CounterSource<SingleSource>>(message),
                                       CounterParameters{false, nullptr, device.multiprocessors});
}

void run_hybrid_text(const Device& device, Stream stream, Mode mode, bool inverse, const SingleSource& message,
                     const Block* saved_ciphertext) {
  switch (mode) {
    case Mode::ecb:
      return inverse ? run_text<EcbDecryption>(device, stream, message, NoParameters{})
                     : run_text<EcbEncryption>(device, stream, message, NoParameters{});
    case Mode::cbc: return run_text<CbcDecryption>(device, stream, message, ChainParameters{saved_ciphertext});
    case Mode::cfb: return run_text<CfbDecryption>(device, stream, message, ChainParameters{saved_ciphertext});
    default: throw_failure("this mode has no hybrid kernel for a message");
  }
}

void run_hybrid_xts(const Device& device, Stream stream, bool inverse, const OneKeySource& batch) {
  const StreamBuffer units(batch.tiles * sizeof(MessageView), stream);
  auto* const views = reinterpret_cast<MessageView*>(units.data());
  cut_units(device, stream, batch, views);
  Secret<UnitSource> source;
  source->views = views;
  source->tiles = batch.tiles;
  source->rounds = batch.rounds;
  std::copy_n(batch.schedule, most_schedule_words, source->schedule);
  inverse ? run_text<XtsMode<true>>(device, stream, *source, NoParameters{})
          : run_text<XtsMode<false>>(device, stream, *source, NoParameters{});
}

void start_hybrid_rows(const Device& device, Stream stream, const ColumnView& columns, const Key& key,
                       std::uint32_t rounds, const Speculation& speculation) {
  const StreamBuffer memory(columns.room() / row_len * sizeof(Block), stream);
  const AesKeyState& state = aes_key_state(key);
  Secret<RowPlanning> planning;
  planning->columns = columns;
  planning->summary = speculation.summary;
  planning->tweaks = reinterpret_cast<Block*>(memory.data());
  planning->rounds = rounds;
  std::copy_n(state.tweak_words, most_schedule_words, planning->schedule);
  plan_rows(device, stream, *planning);
  Secret<RowSource> text;
  text->speculation = speculation;
  text->view.in = columns.in;
  text->view.out = columns.out;
  text->rounds = rounds;
  std::copy_n(state.words(!columns.encrypting), most_schedule_words, text->schedule);
  const RowTweaks tweaks{reinterpret_cast<const uint4*>(memory.data())};
  launch_hybrid_rows(device, stream, !columns.encrypting, *slice_keys<TextSource<RowSource>>(*text), tweaks);
}

}  // namespace warpcipher::cuda::lane_table
