// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/runtime/stream_pool.hpp"

#include <cuda_runtime_api.h>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "core/fork.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "engine/cuda/runtime/memory.hpp"

namespace warpcipher::cuda {
namespace {

// Kept for each device: enough for a read of a file, which takes two a core and some more, on 128 cores.
constexpr std::size_t most_kept = 320;

// Never destroyed: the driver may be gone by then.
struct Pool {
  std::mutex mutex;
  std::map<Stream, int> device_of;
  std::map<int, std::vector<Stream>> idle;
};

Pool& pool() {
  static constinit FirstUse<Pool> instance;
  return instance.get();
}

// An event after all work that is on a stream now.
cudaError_t mark(Stream stream, cudaEvent_t& event) {
  const cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  return error != cudaSuccess ? error : cudaEventRecord(event, native(stream));
}

// Later work on `later` waits for the work that is on `earlier` now.
cudaError_t order(Stream earlier, Stream later) {
  cudaEvent_t reached = nullptr;
  cudaError_t error = mark(earlier, reached);
  if (error == cudaSuccess) error = cudaStreamWaitEvent(native(later), reached, 0);
  if (reached != nullptr) cudaEventDestroy(reached);
  return error;
}

}  // namespace

Stream take_stream() {
  int device = 0;
  check(cudaGetDevice(&device), "find the current device");
  const std::lock_guard lock(pool().mutex);
  std::vector<Stream>& idle = pool().idle[device];
  if (!idle.empty()) {
    const Stream stream = idle.back();
    idle.pop_back();
    return stream;
  }
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "create a stream");
  pool().device_of[stream] = device;
  keep_memory_of(stream);
  return stream;
}

void give_stream(Stream stream) noexcept {
  if (is_lost_at_fork()) return;
  try {
    const std::lock_guard lock(pool().mutex);
    const auto found = pool().device_of.find(stream);
    std::vector<Stream>& idle = pool().idle[found->second];
    if (idle.size() < most_kept) {
      idle.push_back(stream);
      return;
    }
    pool().device_of.erase(found);
  } catch (const std::bad_alloc&) {  // no memory to keep it: destroy it
  }
  let_memory_go(stream);
  cudaStreamDestroy(native(stream));
}

SideStreams::SideStreams(Stream stream, std::size_t concurrent) : stream_(stream), concurrent_(concurrent) {
  if (concurrent == 0) return;
  cudaEvent_t begun = nullptr;
  const cudaError_t error = mark(stream, begun);
  begun_ = begun;
  if (error == cudaSuccess) return;
  if (begun != nullptr) cudaEventDestroy(begun);
  check(error, "mark a place in a stream");
}

Stream SideStreams::of_group(std::size_t group) {
  if (concurrent_ == 0 || group == 0) return stream_;
  Stream& side = sides_[group < concurrent_ ? 1 + (group - 1) % most_chains : 0];
  if (side == nullptr) {
    side = take_stream();
    check(cudaStreamWaitEvent(native(side), static_cast<cudaEvent_t>(begun_), 0), "let a stream wait for another");
  }
  return side;
}

SideStreams::~SideStreams() {
  for (const Stream side : sides_) {
    if (side == nullptr) continue;
    if (order(side, stream_) != cudaSuccess) cudaStreamSynchronize(native(side));
    give_stream(side);
  }
  if (begun_ != nullptr) cudaEventDestroy(static_cast<cudaEvent_t>(begun_));
}

}  // namespace warpcipher::cuda
