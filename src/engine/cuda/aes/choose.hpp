// SPDX-License-Identifier: Apache-2.0
// Which AES kernel takes a launch. For each question: the candidates in the order of preference, why one of them is
// refused, and the choice, which is the first that is not refused. Only errors allocate memory here.
//
// The environment (refusal.hpp) forces a candidate where the device can run it.
#pragma once

#include <array>
#include <cstdint>

#include "engine/cuda/aes/kernels.hpp"
#include "engine/cuda/runtime/refusal.hpp"
#include "mode/mode.hpp"

namespace warpcipher::cuda {

using lane_table::CounterChoice;
using lane_table::CounterForm;
using lane_table::CounterKernel;
using lane_table::KeySource;
using lane_table::SectorKernel;
using lane_table::SerialChoice;
using lane_table::SerialWarps;
using lane_table::TableLayout;
using lane_table::TextChoice;
using lane_table::TextKernel;

// --- tables ---
inline constexpr std::array layout_candidates{TableLayout::tables_128, TableLayout::tables_64};
Refusal refuse(const Conditions& now, TableLayout layout);
// Throws Error{engine_failure} if the device has too little shared memory for the forced layout, or for any layout.
TableLayout choose_table_layout(const Conditions& now);

// The choices below throw as choose_table_layout().

// --- counter mode of a batch --- One or more messages, with keys of one length.
struct CounterWork {
  std::uint64_t messages;
  std::uint64_t tiles;
  std::uint64_t units;       // blocks of all messages
  std::uint64_t most_units;  // of one
  std::uint32_t rounds;
  bool has_only_key;   // the host has the one key of all messages
  bool has_key_bytes;  // the keys' bytes lie in device memory
  CounterForm form = CounterForm::block;
  std::uint64_t end_units = 0;  // of ends that tiles lack
  bool is_aligned = true;       // texts lie at multiples of 16
};
inline constexpr std::array counter_candidates{CounterKernel::hybrid_packed, CounterKernel::packed,
                                               CounterKernel::hybrid, CounterKernel::tiles};
Refusal refuse(const Conditions& now, TableLayout layout, const CounterWork& work, CounterKernel kernel);
// Where a counter kernel finds its keys.
inline constexpr std::array key_candidates{KeySource::parameter, KeySource::bytes, KeySource::round_keys};
Refusal refuse(TableLayout layout, const CounterWork& work, CounterKernel kernel, KeySource keys);
CounterChoice choose_counter(const Conditions& now, const CounterWork& work);

// Whether the ends of messages are left to their own launch (TileList). The messages are not known yet.
bool leaves_ends(const Conditions& now, Mode mode, std::uint64_t messages);

// --- text of a parallel mode: one message, or a batch that is not in counter mode ---
struct TextWork {
  Mode mode;
  bool is_single;     // one message by itself
  bool has_only_key;  // batch: the host has the one key of all messages
  std::uint64_t tiles;
  std::uint64_t units;  // batch: blocks of all messages
};
inline constexpr std::array text_candidates{TextKernel::hybrid, TextKernel::tiles};
Refusal refuse(const Conditions& now, TableLayout layout, const TextWork& work, TextKernel kernel);
TextChoice choose_text(const Conditions& now, const TextWork& work);

// --- data units of XTS of one key, which may follow each other ---
struct SectorWork {
  std::uint64_t count;
  std::uint64_t room;  // bytes of the buffers that hold them
};
inline constexpr std::array sector_candidates{SectorKernel::rows, SectorKernel::batch};
Refusal refuse(const Conditions& now, const SectorWork& work, SectorKernel kernel);
SectorKernel choose_sectors(const Conditions& now, const SectorWork& work);

// --- serial modes ---
struct SerialWork {
  std::uint64_t messages;
  std::uint32_t rounds;
  bool by_bytes;  // CFB8
};
inline constexpr std::array serial_candidates{SerialWarps::twelve, SerialWarps::sixteen};
Refusal refuse(const Conditions& now, TableLayout layout, const SerialWork& work, SerialWarps warps);
SerialChoice choose_serial(const Conditions& now, const SerialWork& work);

}  // namespace warpcipher::cuda
