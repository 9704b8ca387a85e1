// SPDX-License-Identifier: Apache-2.0
// Hybrid kernels (hybrid.cuh): the host's part.
#pragma once

#include <cstdint>

#include "core/wipe.hpp"
#include "engine/cuda/aes/hybrid_source.hpp"
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

}  // namespace warpcipher::cuda::lane_table
