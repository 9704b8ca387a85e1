// SPDX-License-Identifier: Apache-2.0
// Page-locked memory through which a speculative launch (speculation.hpp) sends the batch summary to the host while it
// runs.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <new>
#include <thread>

#include "core/error.hpp"
#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "engine/cuda/runtime/pinned_pool.hpp"

namespace warpcipher::cuda {

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
