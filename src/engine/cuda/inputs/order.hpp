// SPDX-License-Identifier: Apache-2.0
// Messages in the order of their length: of a serial mode, so that the lanes of a warp end together and the
// longest begin first, and those that share a warp for their hash. The lengths of a class differ by less than a
// sixty-fourth; messages of a class are in any order. A finer order would gain nothing. No class has lengths on both
// sides of a power of two.
#pragma once

#include <cstdint>

#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda {

// The numbers of messages in device memory, the ones of most units first. View: MessageView, or HashView, whose blocks
// count.
class LengthOrder {
 public:
  template <class View>
  LengthOrder(const Device& device, Stream stream, const View* views, std::uint32_t messages);

  const std::uint32_t* get() const { return reinterpret_cast<const std::uint32_t*>(order_.data()); }

 private:
  StreamBuffer order_;
};

}  // namespace warpcipher::cuda
