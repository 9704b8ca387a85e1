// SPDX-License-Identifier: Apache-2.0
// Hybrid kernels (hybrid.cuh): when, and what the host prepares.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/wipe.hpp"
#include "engine/cuda/lane_table/hybrid_source.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"
#include "mode/mode.hpp"

namespace warpcipher::cuda::lane_table {

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

// 69 MB on H200, whose last tiles are then made up for: 134 MB 886 GB/s, by tables alone 835, 67 MB 762 and 772.
inline constexpr std::uint64_t least_hybrid_tiles_of_multiprocessor = 128;

// What WARPCIPHER_COUNTER forces: "packed" or "together" (for batches), "mixed" or "tiles"; or nothing.
std::string_view forced_counter();

// Whether the device has the kernel: it is compiled for the compute capability that it was measured on.
bool has_hybrid(const Device& device);

// Whether a message had better be run so. Throws as choose_table_layout does for values of WARPCIPHER_COUNTER.
bool choose_hybrid_counter(const Device& device, TableLayout layout, const SingleSource& message);

// message.start: the first counter; in and out are multiples of 16. wrap_32, verdicts: as CounterParameters.
void run_hybrid_counter(const Device& device, Stream stream, const SingleSource& message, bool wrap_32,
                        const std::uint32_t* verdicts);

// The same for a batch with so many tiles, of one key or many.
bool choose_hybrid_batch(const Device& device, TableLayout layout, std::uint64_t tiles);

// The same for short messages of one key, several to a tile (hybrid_packed.cuh): where all are of one length, most
// places of a tile are filled. units: of all, most_units: of one.
inline constexpr std::uint64_t most_units_of_hybrid_packed = 256;
bool choose_hybrid_packed(const Device& device, TableLayout layout, std::uint32_t messages, std::uint64_t units,
                          std::uint64_t most_units);

// 69 MB on H200. AES-128 at 67 MB, both kinds and tables alone: ECB 742 and 665, CBC 657 and 649, CFB 654 and 644 GB/s;
// at 34 MB ECB 602 and 612.
inline constexpr std::uint64_t least_text_tiles_of_multiprocessor = 128;

// Whether a launch of so many tiles had better be run so, where tiles are whole. Throws as choose_table_layout does for
// values of WARPCIPHER_BLOCKS.
bool choose_hybrid_text(const Device& device, TableLayout layout, std::uint64_t tiles,
                        std::uint64_t least_of_multiprocessor = least_text_tiles_of_multiprocessor);

// A message of ECB, or one to decrypt of CBC or CFB. chains: as ChainParameters.
void run_hybrid_text(const Device& device, Stream stream, Mode mode, bool inverse, const SingleSource& message,
                     const Block* saved_ciphertext);

// Data units of XTS.
void run_hybrid_xts(const Device& device, Stream stream, bool inverse, const OneKeySource& batch);

}  // namespace warpcipher::cuda::lane_table
