// SPDX-License-Identifier: Apache-2.0
// The hybrid kernels as the host launches them. Each *_sm90a.cu has its own. They are in a library of their own
// (CMakeLists.txt), for the only compute capability on which they were measured.
#pragma once

#include "engine/cuda/aes/hybrid_source.hpp"
#include "engine/cuda/aes/modes.hpp"
#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda::lane_table {

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

}  // namespace warpcipher::cuda::lane_table
