// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"

namespace warpcipher::search::cuda {

// A copy of a constant array on the current device, for kernels on any stream. Streams of the library do not wait for
// the default stream, and cudaMemcpy from pageable memory may return before the copy has arrived. So the constructor
// waits for the copy.
template <class Array>
class DeviceTable {
 public:
  explicit DeviceTable(const Array& array) : memory_(sizeof array, nullptr, warpcipher::cuda::Wiping::needless) {
    warpcipher::cuda::check(
        cudaMemcpyAsync(memory_.data(), array.data(), sizeof array, cudaMemcpyHostToDevice, nullptr),
        "copy a table to the device");
    warpcipher::cuda::check(cudaStreamSynchronize(nullptr), "copy a table to the device");
  }

  const std::uint8_t* data() const { return memory_.data(); }

 private:
  warpcipher::cuda::StreamBuffer memory_;
};

}  // namespace warpcipher::search::cuda
