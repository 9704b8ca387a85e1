// SPDX-License-Identifier: Apache-2.0
#include "flow/file/read_chunks.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>

#include "core/error.hpp"
#include "dispatch/select.hpp"
#include "engine/device_engine.hpp"
#include "flow/file/sealing.hpp"
#include "flow/file/work.hpp"

namespace warpcipher {
namespace {

class PlainReading {
 public:
  PlainReading(const PlainBytes& bytes, const ReadOptions& options, std::size_t piece_len)
      : bytes_(bytes), work_(options.check), cutter_(bytes.out.size(), piece_len) {}

  // The next piece of `out` for this thread; empty when there is none, or something failed.
  std::span<std::uint8_t> next() {
    if (!work_.goes_on()) return {};
    const TextCutter::Piece piece = cutter_.next();
    return bytes_.out.subspan(piece.begin, piece.len);
  }

  // Reads the bytes of a piece of `out` into a buffer; false where that failed.
  bool read(std::span<const std::uint8_t> piece, std::uint8_t* buffer) {
    const auto at = static_cast<std::size_t>(piece.data() - bytes_.out.data());
    const std::uint64_t begin = bytes_.begin + at;
    if (!bytes_.source.empty()) {
      std::memcpy(buffer, bytes_.source.data() + at, piece.size());
      return true;
    }
    for (std::size_t done = 0; done < piece.size();) {
      const std::uint64_t position = begin + done;
      const ssize_t got = pread(bytes_.descriptor, buffer + done, piece.size() - done, static_cast<off_t>(position));
      if (got < 0 && errno == EINTR) {
        work_.check(true);
        continue;
      }
      if (got <= 0) {
        fail({got < 0 ? ReadFailure::Kind::error : ReadFailure::Kind::ended, 0, position, got < 0 ? errno : 0});
        return false;
      }
      done += static_cast<std::size_t>(got);
    }
    return true;
  }

  template <class Body>
  std::optional<ReadFailure> run(std::size_t threads, Body&& body) {
    work_.run(threads, body);
    return failure_;
  }

 private:
  // The first byte that is missing is told, of those that were read.
  void fail(const ReadFailure& failure) {
    work_.stop();
    const std::lock_guard lock(mutex_);
    if (!failure_ || failure.position < failure_->position) failure_ = failure;
  }

  const PlainBytes& bytes_;
  FileWork work_;
  TextCutter cutter_;
  std::mutex mutex_;
  std::optional<ReadFailure> failure_;
};

// Page-locked memory on its way to the device.
class PlainSlot {
 public:
  PlainSlot(DeviceEngine& engine, PlainReading& reading, std::size_t room)
      : engine_(engine), reading_(reading), room_(room), slot_(engine) {}

  // Reads the next piece and starts its copy, once the one before has arrived; false when there is none, or it failed.
  bool load() {
    settle();
    const std::span<std::uint8_t> piece = reading_.next();
    if (piece.empty()) return false;
    if (memory_ == nullptr) memory_ = slot_.pinned(room_);
    used_ = std::max(used_, piece.size());
    slot_.set_secret(memory_, used_);
    if (!reading_.read(piece, memory_)) return false;
    engine_.copy_to_device(piece.data(), memory_, piece.size(), slot_.stream());
    return true;
  }

  void settle() { slot_.wait(); }

 private:
  DeviceEngine& engine_;
  PlainReading& reading_;
  const std::size_t room_;
  SlotMemory slot_;
  std::uint8_t* memory_ = nullptr;
  std::size_t used_ = 0;
};

std::optional<ReadFailure> read_to_host(const PlainBytes& bytes, const ReadOptions& options) {
  const std::size_t piece_len = std::min(options.piece_len != 0 ? options.piece_len : most_slot_len, bytes.out.size());
  const std::uint64_t others = (bytes.out.size() - 1) / piece_len;
  PlainReading reading(bytes, options, piece_len);
  return reading.run(std::min<std::uint64_t>(threads_for(options.threads), others + 1), [&] {
    while (true) {
      const std::span<std::uint8_t> piece = reading.next();
      if (piece.empty() || !reading.read(piece, piece.data())) return;
    }
  });
}

std::optional<ReadFailure> read_to_device(DeviceEngine& engine, const PlainBytes& bytes, Stream stream,
                                          const ReadOptions& options) {
  const std::size_t most = threads_for(options.threads);
  const std::size_t piece_len = options.piece_len != 0 ? options.piece_len : slot_len_for(bytes.out.size(), most);
  const std::size_t room = std::min({piece_len, bytes.out.size(), PinnedBudget::most / slots_of_thread});
  PlainReading reading(bytes, options, room);
  // What the caller has put on the stream may still use `out`. On this thread: the stream may be its own default one.
  engine.wait(stream);
  const int device = engine.current_device();
  return reading.run(threads_with_slots(most, bytes.out.size(), room), [&] {
    const SelectedDevice scope(engine, device);  // before the slots, and so there when they go
    std::array<PlainSlot, slots_of_thread> slots{PlainSlot(engine, reading, room), PlainSlot(engine, reading, room)};
    for (std::size_t turn = 0; slots[turn % slots_of_thread].load(); ++turn) {
    }
    for (PlainSlot& slot : slots) slot.settle();
  });
}

}  // namespace

std::optional<ReadFailure> read_plain(std::string_view engine, const PlainBytes& bytes, Stream stream,
                                      const ReadOptions& options) {
  if (bytes.begin > most_offset) {
    throw Error(Status::invalid_argument,
                "bytes of a file from " + std::to_string(bytes.begin) + " on: expected at most 2^62");
  }
  if (bytes.out.empty()) return std::nullopt;
  if (bytes.memory == Memory::host) return read_to_host(bytes, options);
  return read_to_device(select_device_engine(engine), bytes, stream, options);
}

}  // namespace warpcipher
