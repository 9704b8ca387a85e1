// SPDX-License-Identifier: Apache-2.0
// Columnar batches, planned and run on the GPU: the host does nothing for each message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/cuda/runtime/gpu.hpp"
#include "engine/cuda/runtime/refusal.hpp"
#include "engine/engine.hpp"
#include "engine/stream.hpp"
#include "message/message.hpp"

namespace warpcipher {
struct Message;
}

namespace warpcipher::cuda {

// DeviceEngine::least_columns(): whether the GPU plans columns, or the host makes messages of them. Forcing `columns`
// forces one way for all batches.
constexpr std::size_t least_columns(const Picks& overrides) {
  if (overrides.columns == PickedColumns::none) return 512;  // for fewer, the host is faster than the launches
  return overrides.columns == PickedColumns::device ? 1 : SIZE_MAX;
}

// DeviceEngine::run_columns().
std::optional<Status> run_columns(const Columns& columns, std::span<Result> results, Stream stream);

// --- Data units of XTS of one key and length that follow each other, as do their IVs: sectors of a disk image. The
// first one and their number describe all, so the host lists none. They run as a columnar batch that is known to be
// correct. DeviceEngine::run_sectors(). The IVs, in host memory, are read until the stream has passed.
void run_sectors(const Device& device, const Message& first, std::size_t count, Stream stream);

// --- Which device a columnar batch is for.
// The device of all arrays that are said to lie in device memory. Throws Error{invalid_argument} if one does not, or if
// they lie on several devices.
const Device& device_of(const Columns& columns);

}  // namespace warpcipher::cuda
