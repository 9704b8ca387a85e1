// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/aes/choose.hpp"

#include "core/error.hpp"

namespace warpcipher::cuda {
namespace {

using lane_table::PackedLayout;
using lane_table::SerialText;

// 69 MB on H200. From there on the hybrid kernel is faster in spite of its slower last tiles: 134 MB at 886 GB/s, with
// only tables at 835; 67 MB at 762 and 772.
constexpr std::uint64_t least_counter_tiles = 128;  // for each multiprocessor
// 69 MB on H200. AES-128 at 67 MB, hybrid and only tables: ECB 742 and 665, CBC 657 and 649, CFB 654 and 644 GB/s; at
// 34 MB ECB 602 and 612.
constexpr std::uint64_t least_text_tiles = 128;
// Sectors of 4 KiB and of 512 bytes in columns on an H200, time of the whole call by this kernel and as another batch:
// 16 MiB 0.06 and 0.10 ms, 1 MiB 0.04 and 0.08 ms. Less was not measured.
constexpr std::uint64_t least_row_tiles = 1;
// A speculative launch that fails costs two launches and a wait. It fails more often if the text does not fill its
// buffers; then it is tried from 16 MiB on only.
constexpr std::uint64_t least_loose_row_tiles = 31;
constexpr std::uint64_t least_packed_warps = 8;  // fewer do not hide latencies: tiles are shorter
constexpr std::uint32_t least_staged_warps = 8;  // with fewer, filling the tables takes too long
constexpr std::uint64_t least_tiles_of_message = 3;
constexpr std::uint64_t least_ends = 32;  // for each multiprocessor: the launch takes some microseconds

// Not needed if there are this many for each multiprocessor.
Refusal refuse_few(const Conditions& now, Reason reason, std::uint64_t given, std::uint64_t least) {
  const std::uint64_t bound = least * now.device.multiprocessors;
  return given >= bound ? Refusal{} : Refusal{reason, given, bound};
}

// Warps of logic need whole tiles: for them a part of a tile takes as long as a whole one.
bool are_mostly_whole(std::uint64_t units, std::uint64_t tiles) {
  return 2 * units > std::uint64_t{tile_units} * tiles;
}

// Tiles join the parts of texts at any address in registers, a warp a line; lanes that take a message each cannot.
bool suits_tiles_at_any_address(const Conditions& now, const CounterWork& work) {
  return !work.is_aligned && work.tiles >= least_counter_tiles * now.device.multiprocessors &&
         2 * work.end_units < work.units && are_mostly_whole(work.units - work.end_units, work.tiles);
}

Refusal refuse_hybrid_device(const Device& device, TableLayout layout) {
  if (device.major != 9 || device.minor != 0) return {Reason::capability_9_0};
  if (device.multiprocessors < 2) return {Reason::one_multiprocessor};
  if (!lane_table::has_hybrid(device)) {
    return {Reason::shared_memory, device.shared_len, lane_table::hybrid_shared_len};
  }
  return layout == TableLayout::tables_128 ? Refusal{} : Refusal{Reason::tables_64};
}

std::uint32_t group_log_for(const CounterWork& work) { return lane_table::group_log_for(work.units, work.messages); }

Refusal refuse_parameter_key(TableLayout layout, const CounterWork& work) {
  if (!work.has_only_key) return {Reason::many_keys};
  if (layout != TableLayout::tables_128) return {Reason::tables_64};
  return work.rounds == 12 ? Refusal{Reason::key_192} : Refusal{};
}

Refusal refuse_packed(const Conditions& now, const CounterWork& work) {
  const PickedCounter forced = now.overrides.counter;
  if (forced == PickedCounter::tiles || forced == PickedCounter::hybrid)
    return refuse_forced(choices::counter, now.overrides.counter);
  if (work.most_units > lane_table::most_units_of_packed) {
    return {Reason::long_messages, work.most_units, lane_table::most_units_of_packed};
  }
  if (forced != PickedCounter::none) return {};
  if (suits_tiles_at_any_address(now, work)) return {Reason::any_address};
  const std::uint32_t group_log = group_log_for(work);
  const std::uint64_t most = lane_table::most_packed_units(group_log);
  if (work.most_units > most) return {Reason::long_messages, work.most_units, most};
  return refuse_few(now, Reason::few_warps, work.messages >> (5 - group_log), least_packed_warps);
}

Refusal refuse_hybrid_packed(const Conditions& now, TableLayout layout, const CounterWork& work) {
  if (work.form == CounterForm::first_word) return {Reason::mode};
  if (const Refusal packed = refuse_packed(now, work)) return packed;
  if (const Refusal device = refuse_hybrid_device(now.device, layout)) return device;
  if (const Refusal key = refuse_parameter_key(layout, work)) return key;
  if (work.units == 0) return {Reason::empty};
  if (work.most_units > lane_table::most_units_of_hybrid_packed) {
    return {Reason::long_messages, work.most_units, lane_table::most_units_of_hybrid_packed};
  }
  if (now.overrides.counter == PickedCounter::hybrid_packed) return {};
  if (now.overrides.counter != PickedCounter::none) return refuse_forced(choices::counter, now.overrides.counter);
  if (now.tuned.counter == PickedCounter::tiles) return {Reason::tuned};
  if (work.units != work.most_units * work.messages) return {Reason::uneven_messages};
  const std::uint64_t tiles =
      PackedLayout(static_cast<std::uint32_t>(work.most_units)).tiles(static_cast<std::uint32_t>(work.messages));
  if (4 * work.units < std::uint64_t{3} * tile_units * tiles) return {Reason::partial_tiles};
  return refuse_few(now, Reason::few_tiles, tiles, least_counter_tiles);
}

Refusal refuse_hybrid_counter(const Conditions& now, TableLayout layout, const CounterWork& work) {
  if (const Refusal device = refuse_hybrid_device(now.device, layout)) return device;
  if (!are_mostly_whole(work.units - work.end_units, work.tiles)) return {Reason::partial_tiles};
  if (now.overrides.counter == PickedCounter::tiles) return refuse_forced(choices::counter, now.overrides.counter);
  if (now.overrides.counter == PickedCounter::hybrid) return {};
  if (now.tuned.counter == PickedCounter::tiles) return {Reason::tuned};
  return refuse_few(now, Reason::few_tiles, work.tiles, least_counter_tiles);
}

Refusal refuse_hybrid_text(const Conditions& now, TableLayout layout, std::uint64_t tiles, std::uint64_t least) {
  if (const Refusal device = refuse_hybrid_device(now.device, layout)) return device;
  if (now.overrides.text == PickedText::tiles) return refuse_forced(choices::text, now.overrides.text);
  if (now.overrides.text == PickedText::hybrid) return {};
  if (now.tuned.text == PickedText::tiles) return {Reason::tuned};
  return refuse_few(now, Reason::few_tiles, tiles, least);
}

Refusal refuse_hybrid_message(const Conditions& now, TableLayout layout, const TextWork& work) {
  if (const Refusal device = refuse_hybrid_device(now.device, layout)) return device;
  if (work.tiles < least_tiles_of_message) return {Reason::few_tiles, work.tiles, least_tiles_of_message};
  if (now.overrides.counter == PickedCounter::hybrid) return {};
  if (now.overrides.counter != PickedCounter::none) return refuse_forced(choices::counter, now.overrides.counter);
  if (now.tuned.counter == PickedCounter::tiles) return {Reason::tuned};
  return refuse_few(now, Reason::few_tiles, work.tiles, least_counter_tiles);
}

}  // namespace

Refusal refuse(const Conditions& now, TableLayout layout) {
  const bool is_large = layout == TableLayout::tables_128;
  const PickedTables forced = now.overrides.tables;
  if (forced != PickedTables::none) {
    if ((forced == PickedTables::tables_128) != is_large) return refuse_forced(choices::tables, forced);
  } else if (now.tuned.tables != PickedTables::none) {
    if ((now.tuned.tables == PickedTables::tables_128) != is_large) return {Reason::tuned};
  }
  const std::size_t needed = is_large ? lane_table::Tables128::shared_len : lane_table::Tables64::shared_len;
  if (now.device.shared_len < needed) return {Reason::shared_memory, now.device.shared_len, needed};
  return {};
}

TableLayout choose_table_layout(const Conditions& now) {
  for (const TableLayout layout : layout_candidates) {
    if (!refuse(now, layout)) return layout;
  }
  const bool wants_large = now.overrides.tables == PickedTables::tables_128 ||
                           (now.overrides.tables == PickedTables::none && now.tuned.tables == PickedTables::tables_128);
  throw Error(Status::engine_failure, now.device.name, " has ", now.device.shared_len,
              " bytes of shared memory a block, too few for lane tables of ", (wants_large ? "128" : "64"), " KiB");
}

Refusal refuse(const Conditions& now, TableLayout layout, const CounterWork& work, CounterKernel kernel) {
  switch (kernel) {
    case CounterKernel::hybrid_packed: return refuse_hybrid_packed(now, layout, work);
    case CounterKernel::packed: return refuse_packed(now, work);
    case CounterKernel::hybrid: return refuse_hybrid_counter(now, layout, work);
    case CounterKernel::tiles: break;
  }
  return {};
}

Refusal refuse(TableLayout layout, const CounterWork& work, CounterKernel kernel, KeySource keys) {
  if (keys == KeySource::parameter) {
    // Messages of GCM-SIV have a key each. A single one is not worth a kernel of short messages.
    if (work.form == CounterForm::first_word && kernel == CounterKernel::packed) return {Reason::mode};
    return refuse_parameter_key(layout, work);
  }
  if (keys == KeySource::round_keys) return {};
  if (kernel != CounterKernel::packed) return {Reason::no_expansion};
  if (layout != TableLayout::tables_128) return {Reason::tables_64};
  if (work.rounds != 10) return {Reason::key_not_128};
  return work.has_key_bytes ? Refusal{} : Refusal{Reason::derived_on_host};
}

CounterChoice choose_counter(const Conditions& now, const CounterWork& work) {
  const TableLayout layout = choose_table_layout(now);
  const CounterKernel kernel =
      first_accepted(counter_candidates, [&](CounterKernel candidate) { return refuse(now, layout, work, candidate); });
  const KeySource keys =
      first_accepted(key_candidates, [&](KeySource candidate) { return refuse(layout, work, kernel, candidate); });
  return {layout, kernel, keys, group_log_for(work)};
}

bool leaves_ends(const Conditions& now, Mode mode, std::uint64_t messages) {
  return (mode == Mode::ctr || mode == Mode::gcm) && messages >= least_ends * now.device.multiprocessors;
}

Refusal refuse(const Conditions& now, TableLayout layout, const TextWork& work, TextKernel kernel) {
  if (kernel == TextKernel::tiles) return {};
  switch (work.mode) {
    case Mode::ctr:
    case Mode::gcm: return work.is_single ? refuse_hybrid_message(now, layout, work) : Refusal{Reason::mode};
    case Mode::ecb:
    case Mode::cbc:
    case Mode::cfb:
      return work.is_single ? refuse_hybrid_text(now, layout, work.tiles, least_text_tiles) : Refusal{Reason::batch};
    case Mode::xts:
      if (!work.has_only_key) return {Reason::many_keys};
      if (!are_mostly_whole(work.units, work.tiles)) return {Reason::partial_tiles};
      return refuse_hybrid_text(now, layout, work.tiles, least_text_tiles);
    default: return {Reason::mode};
  }
}

TextChoice choose_text(const Conditions& now, const TextWork& work) {
  const TableLayout layout = choose_table_layout(now);
  return {layout,
          first_accepted(text_candidates, [&](TextKernel candidate) { return refuse(now, layout, work, candidate); })};
}

Refusal refuse(const Conditions& now, const SectorWork& work, SectorKernel kernel) {
  if (kernel == SectorKernel::batch) return {};
  if (work.count == 0) return {Reason::empty};
  const std::uint64_t len = work.room / work.count;
  if (len < lane_table::row_len || len >= 2 * lane_table::tile_len) return {Reason::sector_len, len};
  const bool fits_exactly = work.room % (lane_table::row_len * work.count) == 0;
  return refuse_hybrid_text(now, choose_table_layout(now), work.room / lane_table::tile_len,
                            fits_exactly ? least_row_tiles : least_loose_row_tiles);
}

SectorKernel choose_sectors(const Conditions& now, const SectorWork& work) {
  return first_accepted(sector_candidates, [&](SectorKernel candidate) { return refuse(now, work, candidate); });
}

// Few messages wait only for their own chains (serial_aes.cu). For them a block has fewer warps, and each warp more
// registers.
Refusal refuse(const Conditions& now, TableLayout layout, const SerialWork& work, SerialWarps warps) {
  if (work.rounds != 10) return warps == SerialWarps::sixteen ? Refusal{Reason::registers} : Refusal{};
  if (warps == SerialWarps::sixteen) return {};
  if (layout == TableLayout::tables_64) return {Reason::tables_64};
  const std::uint64_t most = std::uint64_t{count_of(SerialWarps::twelve)} * 32 * now.device.multiprocessors;
  return work.messages > most ? Refusal{Reason::many_messages, work.messages, most} : Refusal{};
}

SerialChoice choose_serial(const Conditions& now, const SerialWork& work) {
  const TableLayout layout = choose_table_layout(now);
  const SerialWarps warps =
      first_accepted(serial_candidates, [&](SerialWarps candidate) { return refuse(now, layout, work, candidate); });
  // GPUs with 64 KiB of shared memory (7.5) have room for the tables only; those with 99 KiB also have room for the
  // text of eight warps.
  const bool is_staged = !work.by_bytes && lane_table::count_staged_warps(now.device, layout) >= least_staged_warps;
  return {layout, warps, is_staged ? SerialText::staged : SerialText::direct};
}

}  // namespace warpcipher::cuda
