// SPDX-License-Identifier: Apache-2.0
// Removes the padding of messages that the host knows one by one.
#include <cuda_runtime_api.h>

#include "engine/cuda/execution/message_batch.hpp"
#include "engine/cuda/inputs/host_views.hpp"
#include "engine/cuda/inputs/padding.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "engine/cuda/runtime/stream.hpp"

namespace warpcipher::cuda {

void take_padding_off(std::span<const Message* const> messages, std::span<std::uint32_t> lengths, Stream stream) {
  BufferLocator locator;
  locator.add(messages[0]->out, "out");
  const Device& device = locator.device();
  const DeviceScope scope(device.index);
  Upload upload;
  const auto views = upload.reserve<MessageView>(messages.size());
  upload.allocate(stream);
  for (std::size_t i = 0; i < messages.size(); ++i) upload.host(views)[i] = view_of(*messages[i]);
  upload.send();
  const StreamBuffer found(lengths.size_bytes(), stream, Wiping::needless);
  auto* const words = reinterpret_cast<std::uint32_t*>(found.data());
  take_padding_off(device, stream, upload.device(views), static_cast<std::uint32_t>(messages.size()), words);
  check(cudaMemcpyAsync(lengths.data(), words, found.size(), cudaMemcpyDeviceToHost, native(stream)),
        "copy the lengths of paddings from the device");
  check(cudaStreamSynchronize(native(stream)), "wait for the lengths of paddings");
}

}  // namespace warpcipher::cuda
