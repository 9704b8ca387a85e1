// SPDX-License-Identifier: Apache-2.0
// Pieces that wait in device memory until all of a read are there, and are then decrypted together. A short read has
// few pieces, and the calls of a batch for each of them would take longer than its bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "dispatch/columns.hpp"
#include "engine/device_engine.hpp"
#include "file/piece_columns.hpp"
#include "file/reading.hpp"

namespace warpcipher {

// Bytes of such a read, and of its pieces. H200, 32 MiB of a file in memory, 16 threads: 1.8 ms where each piece is
// decrypted by itself, of 1 MiB, the best length for that.
inline constexpr std::uint64_t most_joint_len = std::uint64_t{64} << 20;
inline constexpr std::size_t joint_piece_len = std::size_t{512} << 10;

class Joint {
 public:
  // Whether all chunks of a read can be joined but the first and the last: those of which a part is wanted cannot.
  static bool suits(const FileChunks& chunks, std::uint64_t total_len) {
    if (total_len <= joint_piece_len || total_len > most_joint_len) return false;
    for (std::size_t i = 1; i + 1 < chunks.count; ++i) {
      if (!chunks.is_whole(i)) return false;
    }
    return true;
  }

  Joint(std::string_view name, DeviceEngine& engine, Reading& reading)
      : name_(name),
        engine_(engine),
        reading_(reading),
        chunks_(reading.chunks()),
        size_(static_cast<std::size_t>(PieceCutter::room_for_all(chunks_))),
        stream_(engine.create_stream()) {
    try {
      if (chunks_.has_iv_in_file()) ivs_.resize(chunks_.count * chunks_.iv_len);
      memory_ = static_cast<std::uint8_t*>(engine_.allocate(size_, stream_));
      engine_.wait(stream_);  // other streams use it
    } catch (...) {
      release();
      throw;
    }
  }
  Joint(const Joint&) = delete;
  Joint& operator=(const Joint&) = delete;
  ~Joint() { release(); }

  // Where a piece waits.
  std::uint8_t* place(const FilePiece& piece) const {
    if (piece.begin > size_ || piece.len > size_ - piece.begin) {
      throw Error(Status::invalid_argument,
                  "the chunks changed while they were read: the columns must stay as they are");
    }
    return memory_ + piece.begin;
  }

  // A piece is there. buffer: what was read of it.
  void add(const FilePiece& piece, const std::uint8_t* buffer) {
    const std::lock_guard lock(mutex_);
    for (FilePiece::Item item : piece.items) {
      if (!ivs_.empty()) {
        std::copy_n(iv_of(chunks_, item, buffer), chunks_.iv_len, ivs_.data() + item.chunk * chunks_.iv_len);
      }
      item.at += static_cast<std::size_t>(piece.begin);
      items_.push_back(item);
    }
  }

  // Decrypts the pieces that are there, up to a chunk that failed. No thread adds any more.
  void decrypt() {
    std::sort(items_.begin(), items_.end(), [](const auto& a, const auto& b) { return a.chunk < b.chunk; });
    if (const auto failure = reading_.failure()) {
      while (!items_.empty() && items_.back().chunk >= failure->chunk) items_.pop_back();
    }
    if (items_.empty()) return;
    const std::size_t first = items_.front().chunk, last = items_.back().chunk;
    const std::span<const std::uint8_t> all(ivs_);
    const auto ivs = all.empty() ? all : all.subspan(first * chunks_.iv_len, items_.size() * chunks_.iv_len);
    PieceColumns columns;
    std::vector<Result> results(items_.size());
    naming_chunks(chunks_.first_number + first, chunks_.first_number + last, [&] {
      run_columns(name_, columns.make(chunks_, items_, {memory_, size_}, ivs, false), results, stream_);
      engine_.wait(stream_);
    });
    const auto bad =
        std::find_if(results.begin(), results.end(), [](const Result& r) { return r.status != Status::ok; });
    if (bad == results.end()) return;
    reading_.fail({ReadFailure::Kind::bad_tag, items_[static_cast<std::size_t>(bad - results.begin())].chunk});
  }

 private:
  void release() noexcept {
    try {
      engine_.wait(stream_);
    } catch (const Error&) {  // the error that brought us here is already reported
    }
    if (memory_ != nullptr) engine_.deallocate(memory_, size_, 0, stream_);
    engine_.destroy_stream(stream_);
  }

  const std::string_view name_;
  DeviceEngine& engine_;
  Reading& reading_;
  const FileChunks& chunks_;
  const std::size_t size_;
  const Stream stream_;
  std::uint8_t* memory_ = nullptr;  // ciphertext alone
  std::mutex mutex_;
  std::vector<FilePiece::Item> items_;
  std::vector<std::uint8_t> ivs_;  // of all chunks of the read, where they are in the file
};

}  // namespace warpcipher
