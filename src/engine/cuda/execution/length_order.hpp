// SPDX-License-Identifier: Apache-2.0
// The messages of a batch in the order of their length, for kernels whose lanes take a message each.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "engine/cuda/execution/device_batch.hpp"
#include "engine/cuda/inputs/order.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/stream.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"

namespace warpcipher::cuda {

class LengthOrder {
 public:
  explicit LengthOrder(const DeviceBatch& b) {
    if (b.is_ordered || b.units == b.most_units * b.messages) return;
    order_ = std::make_unique<StreamBuffer>(b.messages * sizeof(std::uint32_t), b.stream, Wiping::needless);
    const StreamBuffer places(length_classes * sizeof(std::uint32_t), b.stream, Wiping::needless);
    check(cudaMemsetAsync(places.data(), 0, places.size(), native(b.stream)), "clear device memory");
    order_by_length(b.device, b.stream, b.views, b.messages, reinterpret_cast<std::uint32_t*>(places.data()),
                    reinterpret_cast<std::uint32_t*>(order_->data()));
  }

  // The numbers of views; nullptr: the order of the views is good enough.
  const std::uint32_t* get() const { return order_ ? reinterpret_cast<const std::uint32_t*>(order_->data()) : nullptr; }

 private:
  std::unique_ptr<StreamBuffer> order_;
};

}  // namespace warpcipher::cuda
