// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/inputs/placed_columns.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "core/thread_pool.hpp"
#include "core/wipe.hpp"
#include "engine/cuda/inputs/host_views.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/memory.hpp"

namespace warpcipher::cuda {

PlacedColumns::PlacedColumns(const Columns& columns, Stream stream) : c_(columns), stream_(stream), upload_(stream) {
  view_.in_lengths = place(c_.in_lengths);
  view_.in_offsets = place(c_.in_offsets);
  const bool same = c_.out_offsets.data() == c_.in_offsets.data() && c_.out_offsets.size() == c_.in_offsets.size();
  view_.out_offsets = same ? view_.in_offsets : place(c_.out_offsets);
  view_.key_index = place(c_.key_index);
  view_.ivs = place(c_.ivs);
  view_.aad = place(c_.aad);
  view_.aad_offsets = place(c_.aad_offsets);
  view_.aad_lengths = place(c_.aad_lengths);
  describe();
}

template <class T>
const T* PlacedColumns::place(std::span<const T> column) {
  if (column.empty()) return nullptr;
  if (c_.columns_memory == Memory::device) return column.data();
  copies_.push_back(std::make_unique<StreamBuffer>(column.size_bytes(), stream_, Wiping::needless));
  upload_.send(copies_.back()->data(), column.data(), column.size_bytes());
  return reinterpret_cast<const T*>(copies_.back()->data());
}

// Fills in all that is not a column.
void PlacedColumns::describe() {
  const Algorithm& algorithm = c_.algorithm_of_all();
  const bool is_padded = c_.padding == Padding::pkcs7;
  view_.encrypting = c_.direction == Direction::encrypt;
  view_.in = c_.in.data();
  view_.out = c_.out.data();
  view_.in_len = c_.in.size();
  view_.out_len = c_.out.size();
  view_.aad_len = c_.aad.size();
  view_.least_text_len = is_padded && !view_.encrypting ? algorithm.block_len() : algorithm.mode.least_text_len;
  view_.most_text_len = std::min(algorithm.mode.most_text_len_with(c_.iv_len), most_buffer_len);
  view_.most_aad_len = algorithm.mode.most_aad_len;
  view_.count = static_cast<std::uint32_t>(c_.count);
  view_.keys = static_cast<std::uint32_t>(c_.key_count());
  view_.tag_len = static_cast<std::uint32_t>(c_.tag_len);
  view_.iv_len = static_cast<std::uint32_t>(c_.iv_len);
  view_.block_log = static_cast<std::uint32_t>(std::countr_zero(algorithm.block_len()));
  view_.unit_log = algorithm.unit_len() == 1 ? 0 : view_.block_log;
  view_.pads = is_padded && view_.encrypting;
  view_.steals = algorithm.mode.steals;
  view_.whole_blocks = algorithm.mode.whole_blocks && !view_.pads;
  view_.is_aead = algorithm.is_aead();
  view_.hashes_plaintext = algorithm.mode.hashes_plaintext;
  view_.is_ccm = algorithm.mode.id == Mode::ccm;
  view_.counts_blocks = algorithm.mode.id == Mode::stream;
  const auto in = reinterpret_cast<std::uintptr_t>(view_.in);
  const auto out = reinterpret_cast<std::uintptr_t>(view_.out);
  view_.apart = in + view_.in_len <= out || out + view_.out_len <= in;
}

const std::uint8_t* PlacedColumns::place_key_bytes() {
  if (c_.algorithm != nullptr && c_.columns_memory == Memory::device) return c_.key_bytes.data();
  const std::size_t key_len = c_.algorithm_of_all().key_len();
  const std::size_t keys = c_.key_count();
  const std::uint8_t* bytes = c_.key_bytes.data();
  SecretBytes gathered;
  if (c_.algorithm == nullptr) {
    gathered = SecretBytes(keys * key_len);
    ThreadPool::instance().parallel_for(keys, messages_at_once, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) {
        std::copy_n(c_.keys[k]->bytes(), key_len, gathered.data() + key_len * k);
      }
    });
    bytes = gathered.data();
  }
  key_copy_ = std::make_unique<StreamBuffer>(keys * key_len, stream_, Wiping::needed);
  check(cudaMemcpyAsync(key_copy_->data(), bytes, key_copy_->size(), cudaMemcpyHostToDevice, native(stream_)),
        "copy keys to the device");
  return key_copy_->data();
}

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
