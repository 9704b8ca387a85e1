// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/inputs/column_upload.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/thread_pool.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/pinned_pool.hpp"
#include "engine/cuda/runtime/stream.hpp"

namespace warpcipher::cuda {
namespace {

constexpr std::size_t piece_len = std::size_t{2} << 20;
constexpr std::size_t share_len = std::size_t{128} << 10;  // of one core
constexpr std::size_t least_len = std::size_t{512} << 10;  // for less, waking the cores takes too long

}  // namespace

ColumnUpload::~ColumnUpload() {
  if (!pieces_.empty()) cudaStreamSynchronize(native(stream_));  // the device may still read them
  release();
}

void ColumnUpload::release() noexcept {
  for (void* const piece : pieces_) give_pinned(piece, piece_len, 0);
  pieces_.clear();
}

void ColumnUpload::send(void* device, const void* host, std::size_t size) {
  const auto copy = [&](std::size_t offset, const void* from, std::size_t len) {
    check(cudaMemcpyAsync(static_cast<std::uint8_t*>(device) + offset, from, len, cudaMemcpyHostToDevice,
                          native(stream_)),
          "copy columns to the device");
  };
  if (size < least_len || is_pinned(host, size)) return copy(0, host, size);
  for (std::size_t offset = 0; offset < size; offset += piece_len) {
    const std::size_t len = std::min(piece_len, size - offset);
    pieces_.reserve(pieces_.size() + 1);
    auto* const piece = static_cast<std::uint8_t*>(take_pinned(piece_len));
    pieces_.push_back(piece);
    const auto* const from = static_cast<const std::uint8_t*>(host) + offset;
    ThreadPool::instance().parallel_for((len + share_len - 1) / share_len, 1, [&](std::size_t begin, std::size_t end) {
      const std::size_t first = begin * share_len;
      std::memcpy(piece + first, from + first, std::min(end * share_len, len) - first);
    });
    copy(offset, piece, len);
  }
}

}  // namespace warpcipher::cuda
