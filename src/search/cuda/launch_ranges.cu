// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/launch_ranges.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <deque>

#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/device.hpp"

namespace warpcipher::search::cuda {

namespace {

using warpcipher::cuda::check;
using warpcipher::cuda::native;

constexpr std::size_t usual_hits = 64;  // this many come to the host in the copy that brings their number

}  // namespace

HitBuffer::HitBuffer(std::uint32_t capacity) : capacity_(capacity) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "create a stream");
  stream_ = stream;
  memory_ = std::make_unique<warpcipher::cuda::StreamBuffer>(sizeof(HitWords) * (std::size_t{capacity} + 1), stream_);
}

HitBuffer::~HitBuffer() {
  memory_.reset();
  if (warpcipher::cuda::is_lost_at_fork()) return;
  cudaStreamSynchronize(native(stream_));
  cudaStreamDestroy(native(stream_));
}

void HitBuffer::clear() {
  const std::size_t few = std::min<std::size_t>(usual_hits, capacity_);
  check(cudaMemsetAsync(memory_->data(), 0, sizeof(HitWords) * (few + 1), native(stream_)), "clear the hits");
}

bool HitBuffer::take(std::vector<HitWords>& hits) {
  std::array<HitWords, usual_hits + 1> first;
  const std::size_t few = std::min<std::size_t>(usual_hits, capacity_);
  check(cudaMemcpyAsync(first.data(), memory_->data(), sizeof(HitWords) * (few + 1), cudaMemcpyDeviceToHost,
                        native(stream_)),
        "copy hits");
  check(cudaStreamSynchronize(native(stream_)), "search");
  const std::uint32_t count = first[0].words[0];
  if (count > capacity_) return false;
  hits.assign(first.begin() + 1, first.begin() + 1 + static_cast<std::ptrdiff_t>(std::min<std::size_t>(count, few)));
  if (count <= few) return true;
  hits.resize(count);
  check(cudaMemcpyAsync(hits.data(), memory_->data() + sizeof(HitWords), sizeof(HitWords) * count,
                        cudaMemcpyDeviceToHost, native(stream_)),
        "copy hits");
  check(cudaStreamSynchronize(native(stream_)), "copy hits");
  return true;
}

LaunchRanges::LaunchRanges(std::uint32_t capacity, const LaunchTimes& times)
    : buffers_{HitBuffer(capacity), HitBuffer(capacity), HitBuffer(capacity)}, size_(times) {}

std::uint64_t LaunchRanges::run(std::uint64_t total, std::uint64_t fewest, std::uint64_t most,
                                const std::atomic<bool>& cancel) {
  struct Flight {
    std::uint64_t at, count;
    std::size_t buffer;
  };
  using Clock = std::chrono::steady_clock;
  std::deque<Flight> flights;
  std::uint64_t next = 0;
  std::size_t buffer = 0;
  Clock::time_point last = Clock::now();
  size_.limit(fewest, most);
  bool resized = false;
  while (true) {
    while (flights.size() < 2 && next < total && !resized && !cancel.load(std::memory_order_relaxed)) {
      const std::uint64_t count = std::min({total - next, room(next), size_.units()});
      launch(buffers_[buffer], next, count);
      flights.push_back({next, count, buffer});
      next += count;
      buffer = 1 - buffer;
    }
    if (flights.empty()) return next;
    const Flight flight = flights.front();
    flights.pop_front();
    if (!collect(buffers_[flight.buffer], flight.at, flight.count)) redo(flight.at, flight.count);
    const Clock::time_point now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - last).count();
    last = now;
    size_.took(flight.count, seconds);
    if (resized || !(size_.units_too_long() || size_.units_too_short())) continue;
    resized = resize(size_.units_too_short());
    size_.start_again(resized);
  }
}

bool LaunchRanges::collect(HitBuffer& buffer, std::uint64_t at, std::uint64_t count) {
  if (!buffer.take(hits_)) return false;
  for (const HitWords& hit : hits_) report(at, count, hit);
  return true;
}

// In halves, until the buffer holds the hits of each.
void LaunchRanges::redo(std::uint64_t at, std::uint64_t count) {
  const std::uint64_t half = std::max<std::uint64_t>(count / 2, 1);
  for (std::uint64_t i = 0; i < count; i += half) {
    const std::uint64_t part = std::min(half, count - i);
    launch(buffers_[2], at + i, part);
    if (collect(buffers_[2], at + i, part)) continue;
    if (part == 1) throw Error(Status::engine_failure, "a launch of one unit reported more hits than it has keys");
    redo(at + i, part);
  }
}

}  // namespace warpcipher::search::cuda
