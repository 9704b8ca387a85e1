// SPDX-License-Identifier: Apache-2.0
// Views of messages, filled in by the host.
#pragma once

#include <cuda_runtime_api.h>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "core/error.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "message/message.hpp"

namespace warpcipher::cuda {

// The view of a message without its start and key.
inline MessageView view_of(const Message& message) {
  MessageView view{};
  view.in = message.in;
  view.out = message.out;
  view.in_len = message.in_len;
  view.out_len = message.output_len();
  view.units = message.units();
  view.pad = static_cast<std::uint32_t>(view.out_len - view.in_len);
  return view;
}

// How many messages a core of the host takes at a time, when it fills in views.
inline constexpr std::size_t messages_at_once = 2048;

// Up to 16 bytes of the host as a block, the rest zero.
inline Block to_block(const std::uint8_t* bytes, std::size_t len) {
  Block block{};
  for (std::size_t i = 0; i < len; ++i) block.words[i / 4] |= std::uint32_t{bytes[i]} << (8 * (i % 4));
  return block;
}

// Page-locked memory through which a speculative launch (speculation.hpp) sends the batch summary to the host while it
// runs.

class HostMailbox {
 public:
  explicit HostMailbox(Stream stream) : stream_(stream), mailbox_(new(take_pinned(sizeof(Mailbox))) Mailbox{}) {}
  HostMailbox(const HostMailbox&) = delete;
  HostMailbox& operator=(const HostMailbox&) = delete;
  ~HostMailbox() {
    if (expected_ && !is_there()) cudaStreamSynchronize(native(stream_));  // a kernel may still write it
    give_pinned(mailbox_, sizeof(Mailbox), 0);
  }

  Mailbox* get() const { return mailbox_; }

  // Call this when a kernel has been launched that will fill it.
  void expect() { expected_ = true; }

  void wait() const {
    for (std::uint32_t turn = 1; !is_there(); ++turn) {
      if (turn % 4096 != 0) continue;
      const cudaError_t error = cudaStreamQuery(native(stream_));
      if (error == cudaErrorNotReady) {
        cudaGetLastError();
      } else {
        check(error, "summary a batch");
        if (!is_there()) throw Error(Status::engine_failure, "the GPU did not say what it found of a batch");
      }
      std::this_thread::yield();
    }
  }

 private:
  bool is_there() const {
    return std::atomic_ref<std::uint32_t>(mailbox_->is_there).load(std::memory_order_acquire) != 0;
  }

  const Stream stream_;
  Mailbox* const mailbox_;
  bool expected_ = false;
};

}  // namespace warpcipher::cuda
