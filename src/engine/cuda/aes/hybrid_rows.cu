// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/aes/hybrid_rows.hpp"

#include <algorithm>

#include "core/wipe.hpp"
#include "engine/cuda/aes/hybrid.hpp"
#include "engine/cuda/aes/hybrid_rows_launch.hpp"
#include "engine/cuda/inputs/keys.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"

namespace warpcipher::cuda::lane_table {
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
