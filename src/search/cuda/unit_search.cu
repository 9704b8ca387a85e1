// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/unit_search.hpp"

#include <cuda_runtime_api.h>
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <deque>
#include <utility>

#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/device.hpp"

namespace warpcipher::search::cuda {
namespace {

constexpr std::size_t group_bits = 8;  // units whose keys are computed from one key

}  // namespace

UnitSearch::UnitSearch(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test,
                       std::uint32_t capacity, const UnitCounts& units, const UnitLoops& loops,
                       const LaunchTimes& times)
    : LaunchRanges(capacity, times),
      space_(std::move(space)),
      test_(std::move(test)),
      units_(units),
      unit_loops_(loops) {}

std::uint64_t UnitSearch::search(const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits,
                                 const std::atomic<bool>& cancel) {
  const bool many = count >> unit_loops_.log2_many != 0;
  wanted_loops_ = static_cast<std::uint32_t>(
      std::min<std::size_t>(space_->free_bits().size(), many ? unit_loops_.many : unit_loops_.few));
  first_ = first;
  end_ = first + KeyNumber(count);
  hits_ = &hits;
  KeyNumber next = first;
  while (true) {  // once for each length of units
    loops_ = divisible() ? std::min(wanted_loops_, most_loops_) : wanted_loops_;
    first_unit_ = next >> loops_;
    cursor_.reset();
    const std::uint64_t units = (((end_ - 1) >> loops_) - first_unit_).low64() + 1;
    const std::uint64_t tested = run(units, units_.fewest, units_.most, cancel);
    if (tested > 0) next = std::min(end_, (first_unit_ + KeyNumber(tested)) << loops_);
    if (tested == units || cancel.load(std::memory_order_relaxed)) return (next - first).low64();
  }
}

bool UnitSearch::resize(bool longer) {
  const std::uint32_t fewest = std::min(wanted_loops_, UnitLoops::fewest);
  if (!divisible() || (longer ? loops_ >= wanted_loops_ : loops_ <= fewest)) return false;
  most_loops_ = longer ? loops_ + 1 : loops_ - 1;
  return true;
}

void UnitSearch::launch(HitBuffer& buffer, std::uint64_t at, std::uint64_t count) {
  SecretBytes keys(count * space_->key_len());
  write_keys(at, count, keys.data());
  const warpcipher::cuda::StreamBuffer device_keys(keys.size(), buffer.stream());
  warpcipher::cuda::check(cudaMemcpyAsync(device_keys.data(), keys.data(), keys.size(), cudaMemcpyHostToDevice,
                                          static_cast<cudaStream_t>(buffer.stream())),
                          "copy keys to the device");
  buffer.clear();
  start(buffer, device_keys.data(), static_cast<std::uint32_t>(count));
}

// Computes the first key of each unit. Within a combination of candidates, 256 masks give them from one key.
void UnitSearch::write_keys(std::uint64_t at, std::uint64_t count, std::uint8_t* keys) {
  const std::size_t key_len = space_->key_len();
  const auto free_bits = space_->free_bits().subspan(loops_);
  const std::uint64_t group = std::uint64_t{1} << std::min(free_bits.size(), group_bits);
  std::array<std::array<std::uint8_t, max_key_len>, std::size_t{1} << group_bits> masks{};
  for (std::size_t i = 1; i < group; ++i) {
    masks[i] = masks[i & (i - 1)];
    const std::uint16_t bit = free_bits[static_cast<std::size_t>(std::countr_zero(i))];
    masks[i][bit / 8u] = static_cast<std::uint8_t>(masks[i][bit / 8u] ^ 0x80u >> bit % 8);
  }
  Secret<std::array<std::uint8_t, max_key_len>> base;
  KeyNumber unit = first_unit_ + KeyNumber(at);
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t begin = unit.low64() % group;
    const std::uint64_t part = std::min(group - begin, count - done);
    base_key(unit - KeyNumber(begin), base->data());
    for (std::uint64_t i = begin; i < begin + part; ++i) {
      for (std::size_t byte = 0; byte < key_len; ++byte) {
        *keys++ = static_cast<std::uint8_t>((*base)[byte] ^ masks[i][byte]);
      }
    }
    done += part;
    unit += KeyNumber(part);
  }
}

// The key of the first unit of a group. If a group is a whole combination, the cursor steps from one combination to the
// next.
void UnitSearch::base_key(const KeyNumber& unit, std::uint8_t* key) {
  const KeyNumber number = unit << loops_;
  const std::size_t free_bits = space_->free_bits().size();
  if (free_bits > loops_ + group_bits) return space_->key_at(number, key);
  if (!cursor_ || number < cursor_at_) {
    cursor_.emplace(*space_, number);
    cursor_at_ = number;
  }
  for (; cursor_at_ < number; cursor_at_ += KeyNumber(1) << free_bits) cursor_->next_combination();
  std::copy_n(cursor_->key(), space_->key_len(), key);
}

void UnitSearch::report(std::uint64_t at, std::uint64_t count, const HitWords& hit) {
  const auto [first_unit, turn, passed, unused] = hit.words;
  for (std::uint32_t i = 0; i < 32; ++i) {
    const std::uint64_t unit = std::uint64_t{first_unit} + i;
    if ((passed >> i & 1u) == 0 || unit >= count) continue;
    const KeyNumber number = ((first_unit_ + KeyNumber(at + unit)) << loops_) + KeyNumber(number_of(turn));
    if (number < first_ || number >= end_) continue;
    Secret<std::array<std::uint8_t, max_key_len>> key;
    space_->key_at(number, key->data());
    if (test_->passes(key->data())) hits_->push_back(number);
  }
}

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
