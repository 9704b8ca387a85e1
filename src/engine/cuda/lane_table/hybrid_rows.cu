// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/lane_table/hybrid_rows.hpp"

#include <algorithm>

#include "core/wipe.hpp"
#include "engine/cuda/inputs/keys.hpp"
#include "engine/cuda/lane_table/hybrid.hpp"
#include "engine/cuda/lane_table/hybrid_rows_launch.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

// Sectors of 4 KiB and of 512 bytes in columns on an H200, so and as other batches, of all that a call takes: 16 MiB
// 0.06 and 0.10 ms, 1 MiB 0.04 and 0.08. Less was not measured.
constexpr std::uint64_t least_row_tiles_of_multiprocessor = 1;
// A speculative launch that fails costs two launches and a wait. It fails more often where the text does not fill its
// buffers, and is
// tried from 16 MiB on.
constexpr std::uint64_t least_loose_tiles_of_multiprocessor = 31;
constexpr std::uint64_t tile_len = 16 * tile_units;

std::uint64_t room_of(const ColumnView& columns) { return std::min(columns.in_len, columns.out_len); }

}  // namespace

bool choose_hybrid_rows(const Device& device, const ColumnView& columns) {
  if (columns.count == 0) return false;
  const std::uint64_t room = room_of(columns);
  if (room / columns.count < row_len || room / columns.count >= 2 * tile_len) return false;
  const bool fits_exactly = room % (row_len * columns.count) == 0;
  return choose_hybrid_text(device, choose_table_layout(device), room / tile_len,
                            fits_exactly ? least_row_tiles_of_multiprocessor : least_loose_tiles_of_multiprocessor);
}

void start_hybrid_rows(const Device& device, Stream stream, const ColumnView& columns, const Key& key,
                       std::uint32_t rounds, const Speculation& speculation) {
  const StreamBuffer memory(room_of(columns) / row_len * sizeof(Block), stream);
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
