// SPDX-License-Identifier: Apache-2.0
// The counter mode of one long message by two kinds of warps at once (mixed.cuh): when, and the call.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/cuda/device.hpp"
#include "engine/cuda/lane_table/form.hpp"
#include "engine/cuda/lane_table/source.cuh"

namespace warpcipher::cuda::lane_table {

// What WARPCIPHER_COUNTER forces: "packed" or "tiles" for batches, "mixed" or "tiles" for single messages; or nothing.
std::string_view forced_counter();

// Whether the device has the kernel: it is compiled for the compute capability that it was measured on.
bool has_mixed(const Device& device);

// Whether a message had better be run so. Throws as choose_form does for values of WARPCIPHER_COUNTER.
bool choose_mixed(const Device& device, Form form, const SingleSource& message);

// message.start: the first counter; in and out are multiples of 16. wrap_32, verdicts: as CounterParameters.
void run_mixed(const Device& device, Stream stream, const SingleSource& message, bool wrap_32,
               const std::uint32_t* verdicts);

}  // namespace warpcipher::cuda::lane_table
