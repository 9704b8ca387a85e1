// SPDX-License-Identifier: Apache-2.0
// The inputs of hybrid kernels (hybrid.cuh): sources (source.hpp) that also have keys for logic, and other parameters.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "cipher/aes_slices.hpp"
#include "core/wipe.hpp"
#include "engine/cuda/aes/kernels.hpp"
#include "engine/cuda/aes/source.hpp"
#include "engine/cuda/aes/table_layout.hpp"
#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/inputs/summary.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"
#include "mode/mode.hpp"

namespace warpcipher::cuda::lane_table {

struct HybridPolicy {
  static constexpr std::uint32_t warps = block_threads / 32;
  static constexpr std::uint32_t sliced_warps = 8;  // H200, a prototype: 4 gave 1006, 8 1035 GB/s
  static constexpr std::uint32_t lane_warps = warps - sliced_warps;
  static constexpr std::uint32_t run = 4;              // tiles of a deal, except for the last
  static constexpr std::uint32_t singles = 3 * warps;  // the last tiles, dealt one by one
  static constexpr std::uint32_t many = 1024;          // tiles of a block: then no warp waits long for a last deal
  // A sliced warp takes at most one of these: it needs twice as long for a tile.
  static constexpr std::uint32_t reserved = 2 * lane_warps;
  static constexpr std::size_t shared_len = hybrid_shared_len;
};

// A source and its key for logic: of all rounds but the last, from number First on.
template <class Source, std::uint32_t First>
struct SlicedSource : Source {
  static constexpr std::uint32_t first_sliced = First;
  aes::SlicedKey sliced[most_round_keys - 1 - First];
};

inline constexpr std::uint32_t first_sliced_round = 3;  // of counters: a tile shares the rounds before

template <class Source>
using CounterSource = SlicedSource<Source, first_sliced_round>;
template <class Source>
using TextSource = SlicedSource<Source, 1>;

// Data units of XTS that share a key, cut into tiles that are themselves data units: each has its view, whose `start`
// is its first tweak. Another kernel makes them beforehand (cut_units): in the hybrid kernel this code would exceed the
// instruction caches.
struct UnitSource {
  const MessageView* views;
  std::uint64_t tiles;
  std::uint32_t rounds;
  std::uint32_t schedule[most_schedule_words];

  // Every lane takes part.
  template <class Mode>
  __device__ TileView find(std::uint32_t number) const;
};

// --- Hybrid kernels (hybrid.cuh): the host's part.
// A source with its key for logic: a CounterSource or a TextSource.
template <class Sliced, class Source>
Secret<Sliced> slice_keys(const Source& source) {
  Secret<Sliced> sliced;
  static_cast<Source&>(*sliced) = source;
  for (std::uint32_t r = Sliced::first_sliced; r < source.rounds; ++r) {
    sliced->sliced[r - Sliced::first_sliced] =
        aes::slice_key(reinterpret_cast<const std::uint8_t*>(source.schedule + 4 * r));
  }
  return sliced;
}

// message.start: the first counter. wrap_32, verdicts: as CounterParameters.
void run_hybrid_counter(const Device& device, Stream stream, const SingleSource& message, bool wrap_32,
                        const std::uint32_t* verdicts);

// The key stream of counters of 128 bits, of three tiles or more. message.in is message.out, and is not read.
void run_hybrid_key_stream(const Device& device, Stream stream, const SingleSource& message);

// A message of ECB, or one to decrypt of CBC or CFB. saved_ciphertext: as ChainParameters.
void run_hybrid_text(const Device& device, Stream stream, Mode mode, bool inverse, const SingleSource& message,
                     const Block* saved_ciphertext);

// Data units of XTS.
void run_hybrid_xts(const Device& device, Stream stream, bool inverse, const OneKeySource& batch);

// --- The hybrid kernels as the host launches them. Each *_sm90a.cu has its own. They are in their own library
// (CMakeLists.txt), for the only compute capability on which they were measured.
// The device has two multiprocessors or more; parameters.stride is their number. Mode: CounterMode or KeyStreamMode.
template <class Mode>
void launch_hybrid_counter(const Device& device, Stream stream, const CounterSource<SingleSource>& message,
                           const CounterParameters& parameters);

// aligned: all texts lie at multiples of 16; else the kernel takes texts at any address, and aligned ones a little
// slower.
void launch_hybrid_batch(const Device& device, Stream stream, CounterForm form, bool aligned,
                         const CounterSource<OneKeySource>& batch, const CounterParameters& parameters,
                         const Speculation& speculation);
void launch_hybrid_batch(const Device& device, Stream stream, CounterForm form, bool aligned, const BatchSource& batch,
                         const CounterParameters& parameters, const Speculation& speculation);

void launch_hybrid_packed(const Device& device, Stream stream, const CounterSource<OneKeySource>& batch,
                          const CounterParameters& parameters, const PackedLayout& layout,
                          const Speculation& speculation);

// Mode: of ECB, CBC or CFB with a SingleSource, of XTS with a UnitSource.
template <class Mode, class Source, class Parameters>
void launch_hybrid_text(const Device& device, Stream stream, const TextSource<Source>& source,
                        const Parameters& parameters);

// Makes a data unit of XTS of each tile of `list`.
void cut_units(const Device& device, Stream stream, const TileList& list, MessageView* units);

// --- The kernels of sectors (hybrid_rows_sm90a.cu) as the host launches them, and their parameters.
// The text of sectors that the summary has found.
struct RowSource {
  MessageView view;  // its in and out are the buffers
  Speculation speculation;
  std::uint32_t rounds;
  std::uint32_t schedule[most_schedule_words];

  __device__ std::uint32_t count_tiles() const;
  template <class Mode>
  __device__ TileView find(std::uint32_t number) const;
};

struct RowTweaks {
  const uint4* of_text;  // the first tweak of each row

  // The lane's tweak in row `row` of the text.
  __device__ Block at(std::uint64_t row) const;
};

struct RowPlanning {
  ColumnView columns;
  BatchSummary* summary;
  Block* tweaks;  // one for each row that fits in the buffers
  std::uint32_t rounds;
  std::uint32_t schedule[most_schedule_words];  // of the tweak key
};

// Checks that the columns are sectors, and computes the tweaks of their rows.
void plan_rows(const Device& device, Stream stream, const RowPlanning& planning);

void launch_hybrid_rows(const Device& device, Stream stream, bool inverse, const TextSource<RowSource>& text,
                        const RowTweaks& tweaks);

}  // namespace warpcipher::cuda::lane_table
