// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/execution/columns_device.hpp"

#include <atomic>

#include "core/error.hpp"
#include "core/thread_pool.hpp"
#include "engine/cuda/runtime/device.hpp"

namespace warpcipher::cuda {
namespace {

constexpr std::size_t texts_at_once = 16384;

// For texts with memory of their own each, and columns on the host. run() reports the errors.
const Device& device_of_texts(const Columns& c) {
  std::atomic<int> found{-1};
  ThreadPool::instance().parallel_for(c.count, texts_at_once, [&](std::size_t begin, std::size_t end) {
    TextLocator locator;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t tag_len = c.direction == Direction::encrypt ? c.tag_len : 0;
      const std::size_t out_len = c.in_lengths[i] + tag_len;
      if (c.in_lengths[i] != 0) locator.add(c.in.data() + c.in_offsets[i], "in", i);
      if (out_len != 0) locator.add(c.out.data() + c.out_offsets[i], "out", i);
    }
    int before = -1;
    if (locator.device() >= 0 && !found.compare_exchange_strong(before, locator.device()) &&
        before != locator.device()) {
      throw Error(Status::invalid_argument, "texts lie on several GPUs");
    }
  });
  return found < 0 ? current_device() : find_device(found);
}

}  // namespace

const Device& device_of(const Columns& c) {
  if (c.scattered) return device_of_texts(c);
  BufferLocator locator;
  if (!c.in.empty()) locator.add(c.in.data(), "in");
  if (!c.out.empty()) locator.add(c.out.data(), "out");
  if (c.columns_memory == Memory::device) {
    const auto add = [&](const auto& column, const char* what) {
      if (!column.empty()) locator.add(column.data(), what);
    };
    add(c.key_bytes, "key_bytes");
    add(c.key_index, "key_index");
    add(c.in_offsets, "in_offsets");
    add(c.in_lengths, "in_lengths");
    add(c.out_offsets, "out_offsets");
    add(c.ivs, "ivs");
    add(c.aad, "aad");
    add(c.aad_offsets, "aad_offsets");
    add(c.aad_lengths, "aad_lengths");
  }
  return locator.device();
}

}  // namespace warpcipher::cuda
