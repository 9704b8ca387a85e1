// SPDX-License-Identifier: Apache-2.0
// Pieces that wait in device memory for others, and are then decrypted together: the calls of a batch for each of them
// would take a thread as long as a good part of its bytes. A short read is decrypted as a whole at its end. A long one
// is by windows, as many as follow each other in a ring, each by the thread whose piece is the last to arrive:
//
//   threads     window 0: pieces 0 to 7    window 1: 8 to 15    ...    window n: into the memory of window 0
//   decrypted                              window 0             ...
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "dispatch/run.hpp"
#include "engine/device_engine.hpp"
#include "flow/file/file_piece.hpp"
#include "flow/file/reading.hpp"
#include "flow/file/work.hpp"

namespace warpcipher {

// Bytes of a short read, and of its pieces. H200, 32 MiB of a file in memory, 16 threads: 1.8 ms where each piece is
// decrypted by itself, of 1 MiB, the best length for that.
inline constexpr std::uint64_t most_short_len = std::uint64_t{64} << 20;
inline constexpr std::size_t short_piece_len = std::size_t{512} << 10;

// Pieces of a window of a longer read.
inline constexpr std::size_t window_pieces = 8;

// Windows begin where memory of the device does: after pieces of an odd length the text of every window but the first
// would need the kernels for text that is not aligned.
inline constexpr std::uint64_t window_alignment = 256;

// The ring: how long a window is, and how many there are.
struct JointShape {
  std::uint64_t window_len = 0;
  std::size_t windows = 0;  // 0: each piece is decrypted by itself
};

// Chunks of which a part is wanted cannot wait with others, and long ones need not: then none does. The first and the
// last may be of which a part is wanted: they are decrypted by themselves meanwhile. room: of a piece. threads: each
// has as many pieces on their way as slots, and two windows more are decrypted.
inline JointShape joint_shape(const ChunkRooms& rooms, bool is_short, std::size_t room, std::size_t threads) {
  if (!rooms.are_whole() || rooms.total() <= room) return {};
  if (is_short) return {rooms.for_all(), 1};
  if (room > most_slot_len) return {};
  const std::size_t under_way = (slots_of_thread * threads + window_pieces - 1) / window_pieces;
  const std::uint64_t len = window_pieces * std::uint64_t{room};
  return {(len + window_alignment - 1) / window_alignment * window_alignment, under_way + 2};
}

class Joint {
 public:
  Joint(std::string_view name, DeviceEngine& engine, Reading& reading, const JointShape& shape)
      : name_(name),
        engine_(engine),
        reading_(reading),
        chunks_(reading.chunks()),
        window_len_(static_cast<std::size_t>(shape.window_len)),
        windows_(shape.windows) {
    try {
      for (std::size_t i = 0; i < windows_.size(); ++i) {
        windows_[i].number = i;
        windows_[i].stream = engine_.create_stream();
        windows_[i].has_stream = true;
      }
      memory_ = static_cast<std::uint8_t*>(engine_.allocate(len(), windows_[0].stream));
      engine_.wait(windows_[0].stream);  // other streams use it
    } catch (...) {
      release();
      throw;
    }
  }
  Joint(const Joint&) = delete;
  Joint& operator=(const Joint&) = delete;
  ~Joint() { release(); }

  // Whether the window that had the memory of a piece's window has been decrypted.
  bool has_room(const FilePiece& piece) {
    const std::lock_guard lock(mutex_);
    return window_of(piece).number == piece.place.window;
  }

  // Waits for that. The thread has no piece on its way: the window may need it. False: the piece is of no use any more.
  bool wait_for_room(const FilePiece& piece) {
    while (!has_room(piece)) {
      if (!reading_.needs(piece)) return false;
      std::unique_lock lock(mutex_);
      decrypted_.wait_for(lock, std::chrono::milliseconds(10),
                          [&] { return window_of(piece).number == piece.place.window; });
    }
    return true;
  }

  // Where a piece waits. Its window has room.
  std::uint8_t* place(const FilePiece& piece) const {
    const std::uint64_t begin = piece.place.begin;
    if (begin > window_len_ || piece.len > window_len_ - begin) {
      refuse("the chunks changed while they were read: the columns must stay as they are");
    }
    return memory_ + piece.place.window % windows_.size() * window_len_ + begin;
  }

  // A piece is there. buffer: its bytes. Decrypts its window if that is the last to arrive.
  void add(FilePiece& piece, const std::uint8_t* buffer) {
    Part part{std::move(piece.items), {}};
    piece.items.clear();
    for (FilePiece::Item& item : part.items) {
      if (chunks_.has_iv_in_file()) {
        const std::uint8_t* const iv = iv_of(chunks_, item, buffer);
        part.ivs.insert(part.ivs.end(), iv, iv + chunks_.iv_len);
      }
      item.at += static_cast<std::size_t>(piece.place.begin);
    }
    Window& window = window_of(piece);
    {
      const std::lock_guard lock(mutex_);
      if (window.parts.size() <= piece.place.number) window.parts.resize(piece.place.number + 1);
      window.parts[piece.place.number] = std::move(part);
      ++window.arrived;
      window.is_closed = window.is_closed || piece.place.is_last;
      if (!window.is_closed || window.arrived != window.parts.size()) return;
    }
    decrypt(window);
    {
      const std::lock_guard lock(mutex_);
      window.parts.clear();
      window.arrived = 0;
      window.is_closed = false;
      window.number += windows_.size();
    }
    decrypted_.notify_all();
  }

  // Decrypts the pieces that are there, up to a chunk that failed. No thread adds any more.
  void decrypt_rest() {
    std::sort(windows_.begin(), windows_.end(), [](const Window& a, const Window& b) { return a.number < b.number; });
    for (Window& window : windows_) decrypt(window);
  }

 private:
  // A piece that waits.
  struct Part {
    std::vector<FilePiece::Item> items;
    std::vector<std::uint8_t> ivs;  // where they are in the file
  };

  struct Window {
    std::uint64_t number = 0;
    Stream stream = nullptr;
    bool has_stream = false;
    std::vector<Part> parts;
    std::size_t arrived = 0;
    bool is_closed = false;  // its last piece is there: it has as many as `parts`
    std::vector<FilePiece::Item> items;
    std::vector<std::uint8_t> ivs;
    PieceColumns columns;
    std::vector<Result> results;
  };

  Window& window_of(const FilePiece& piece) { return windows_[piece.place.window % windows_.size()]; }
  std::size_t len() const { return window_len_ * windows_.size(); }

  void decrypt(Window& window) {
    gather(window);
    if (window.items.empty()) return;
    const std::vector<FilePiece::Item>& items = window.items;
    const std::span<std::uint8_t> memory{memory_ + window.number % windows_.size() * window_len_, window_len_};
    window.results.assign(items.size(), {});
    naming_chunks(chunks_.first_number + items.front().chunk, chunks_.first_number + items.back().chunk, [&] {
      run_columns(name_, window.columns.make(chunks_, Direction::decrypt, items, memory, chunks_.out, window.ivs),
                  window.results, window.stream);
      engine_.wait(window.stream);
    });
    reading_.are_right(window.results, items);
  }

  // The items of a window in order, up to a chunk that failed.
  void gather(Window& window) {
    window.items.clear();
    window.ivs.clear();
    for (const Part& part : window.parts) {
      window.items.insert(window.items.end(), part.items.begin(), part.items.end());
      window.ivs.insert(window.ivs.end(), part.ivs.begin(), part.ivs.end());
    }
    const auto failure = reading_.failure();
    while (failure && !window.items.empty() && window.items.back().chunk >= failure->chunk) window.items.pop_back();
    if (chunks_.has_iv_in_file()) window.ivs.resize(window.items.size() * chunks_.iv_len);
  }

  void release() noexcept {
    for (const Window& window : windows_) {
      try {
        if (window.has_stream) engine_.wait(window.stream);
      } catch (const Error&) {  // the error that brought us here is already reported
      }
    }
    // The next read takes the streams in the order of this one, and finds the memory that was kept for each.
    std::sort(windows_.begin(), windows_.end(), [&](const Window& a, const Window& b) {
      return a.number % windows_.size() > b.number % windows_.size();
    });
    for (const Window& window : windows_) {
      if (memory_ != nullptr && &window == &windows_.back()) engine_.deallocate(memory_, len(), 0, window.stream);
      if (window.has_stream) engine_.destroy_stream(window.stream);
    }
  }

  const std::string_view name_;
  DeviceEngine& engine_;
  Reading& reading_;
  const FileChunks& chunks_;
  const std::size_t window_len_;
  std::uint8_t* memory_ = nullptr;  // only ciphertext
  std::mutex mutex_;
  std::condition_variable decrypted_;
  std::vector<Window> windows_;
};

}  // namespace warpcipher
