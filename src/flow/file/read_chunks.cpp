// SPDX-License-Identifier: Apache-2.0
#include "flow/file/read_chunks.hpp"

#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "core/wipe.hpp"
#include "dispatch/run.hpp"
#include "dispatch/select.hpp"
#include "engine/device_engine.hpp"
#include "flow/copy.hpp"
#include "flow/file/reading.hpp"
#include "flow/file/sealing.hpp"
#include "flow/file/work.hpp"

namespace warpcipher {
namespace {

// Calls body(begin, len) for the ranges of `out` that are written to; those that touch are one. None leaves `out`,
// though somebody changes the columns.
template <class Body>
void for_outputs(const FileChunks& c, Body&& body) {
  std::uint64_t begin = 0, end = 0;
  for (std::size_t i = 0; i < c.count; ++i) {
    const std::uint64_t place = std::min<std::uint64_t>(c.out_offsets.empty() ? end : c.out_offsets[i], c.out.size());
    if (place != end) {
      if (end != begin) body(begin, end - begin);
      begin = place;
    }
    end = place + std::min<std::uint64_t>(c.take(i), c.out.size() - place);
  }
  if (end != begin) body(begin, end - begin);
}

void wipe_on_host(const FileChunks& c) {
  for_outputs(c, [&](std::uint64_t begin, std::uint64_t len) { wipe_in_parallel(c.out.data() + begin, len); });
}

void wipe_on_device(const FileChunks& c, DeviceEngine& engine, Stream stream) noexcept {
  try {
    for_outputs(c, [&](std::uint64_t begin, std::uint64_t len) { engine.clear(c.out.data() + begin, len, stream); });
    engine.wait(stream);
  } catch (const Error&) {  // the driver is gone, and with it what it held
  }
}

// What read() returns; wipes unless that is nothing.
template <class Read, class Wipe>
std::optional<ReadFailure> wiping(Read&& read, Wipe&& wipe) {
  std::optional<ReadFailure> failure;
  try {
    failure = read();
  } catch (...) {
    wipe();
    throw;
  }
  if (failure) wipe();
  return failure;
}

}  // namespace

std::optional<ReadFailure> read_chunks(std::string_view engine, const FileChunks& chunks, Stream stream,
                                       const ReadOptions& asked) {
  check_file_chunks(chunks);
  if (chunks.count == 0) return std::nullopt;
  const ChunkRooms rooms(chunks);
  ReadOptions options = asked;
  options.threads = threads_for(asked.threads);
  if (chunks.memory == Memory::host) {
    return wiping([&] { return read_to_host(engine, chunks, rooms, options); }, [&] { wipe_on_host(chunks); });
  }
  const std::size_t longest = rooms.longest();
  if (longest > most_device_chunk_len) {
    refuse("a chunk of ", longest, " bytes, and a read to a device takes chunks of at most ", most_device_chunk_len);
  }
  DeviceEngine& device = select_device_engine(engine);
  return wiping([&] { return read_to_device(engine, device, chunks, rooms, stream, options); },
                [&] { wipe_on_device(chunks, device, stream); });
}

// To host memory: each thread reads a piece into a buffer of its own, which a core's cache holds, and decrypts it.

namespace {

// Processor time of a 2-core EPYC for chunks of 16 KiB, a file in memory: pieces of 64 KiB 0.37 ns a byte, of 256 KiB
// to 1 MiB 0.34 to 0.36, of 4 MiB, which no core's cache holds, 0.36 to 0.41.
constexpr std::size_t most_read_len = std::size_t{512} << 10;
constexpr std::size_t least_read_len = std::size_t{64} << 10;
constexpr std::size_t pieces_of_thread = 4;  // of each thread, so that threads end together

class HostWorker {
 public:
  HostWorker(std::string_view engine, Reading& reading, const PieceCheck& piece_check, std::size_t room)
      : engine_(engine), reading_(reading), chunks_(reading.chunks()), room_(room), piece_check_(piece_check) {}
  HostWorker(const HostWorker&) = delete;
  HostWorker& operator=(const HostWorker&) = delete;
  ~HostWorker() {
    if (held_plaintext_) secure_wipe(buffer_.get(), room_);
  }

  void work() {
    while (reading_.next(piece_)) {
      if (buffer_ == nullptr) buffer_ = std::make_unique_for_overwrite<std::uint8_t[]>(room_);
      if (!reading_.read(piece_, buffer_.get())) return;
      if (const auto failure = piece_check_.find_bad(piece_, buffer_.get())) return reading_.fail(*failure);
      if (!decrypt()) return;
    }
  }

 private:
  bool decrypt() {
    held_plaintext_ = held_plaintext_ || piece_.is_partial;
    messages_.clear();
    for (const FilePiece::Item& item : piece_.items) {
      std::uint8_t* const in = buffer_.get() + item.at;
      messages_.push_back(chunks_.message(item.chunk, Direction::decrypt, in,
                                          piece_.is_partial ? in : chunks_.out.data() + item.place,
                                          iv_of(chunks_, item, buffer_.get()), in + chunks_.lengths[item.chunk]));
    }
    results_.assign(messages_.size(), {});
    reading_.naming(piece_, [&] { run(engine_, messages_, results_); });
    for (std::size_t k = 0; k < results_.size(); ++k) {
      if (results_[k].status == Status::ok) continue;
      reading_.fail({ReadFailure::Kind::bad_tag, piece_.items[k].chunk});
      return false;
    }
    if (!piece_.is_partial) return true;
    for (const FilePiece::Item& item : piece_.items) {
      std::copy_n(buffer_.get() + item.at + chunks_.skip(item.chunk), chunks_.take(item.chunk),
                  chunks_.out.data() + item.place);
    }
    return true;
  }

  const std::string_view engine_;
  Reading& reading_;
  const FileChunks& chunks_;
  const std::size_t room_;
  std::unique_ptr<std::uint8_t[]> buffer_;
  bool held_plaintext_ = false;  // of chunks of which a part is wanted
  FilePiece piece_;
  PieceCheck piece_check_;
  std::vector<Message> messages_;
  std::vector<Result> results_;
};

}  // namespace

std::optional<ReadFailure> read_to_host(std::string_view engine, const FileChunks& chunks, const ChunkRooms& rooms,
                                        const ReadOptions& options) {
  const std::uint64_t total = rooms.total();
  const std::size_t piece_len = options.piece_len != 0
                                    ? options.piece_len
                                    : static_cast<std::size_t>(std::clamp<std::uint64_t>(
                                          total / (pieces_of_thread * options.threads), least_read_len, most_read_len));
  const std::size_t room = rooms.for_piece(piece_len);
  const std::size_t pieces = static_cast<std::size_t>((total + room - 1) / room);
  Reading reading(chunks, options, room);
  const PieceCheck piece_check(chunks);
  reading.run(threads_with_buffers(std::clamp<std::size_t>(pieces, 1, options.threads), room),
              [&] { HostWorker(engine, reading, piece_check, room).work(); });
  return reading.failure();
}

namespace {

class PlainReading : public FailingWork<ReadFailure> {
 public:
  PlainReading(const PlainBytes& bytes, const ReadOptions& options, std::size_t piece_len)
      : FailingWork(options.check), bytes_(bytes), cutter_(bytes.out.size(), piece_len) {}

  // The next piece of `out` for this thread; empty when there is none, or something failed.
  std::span<std::uint8_t> next() {
    if (!goes_on()) return {};
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
    const std::size_t done = move_all(
        piece.size(),
        [&](std::size_t at_piece, std::size_t left) {
          return pread(bytes_.descriptor, buffer + at_piece, left, static_cast<off_t>(begin + at_piece));
        },
        [&] { check(true); });
    if (done == piece.size()) return true;
    fail({errno != 0 ? ReadFailure::Kind::error : ReadFailure::Kind::ended, 0, begin + done, errno});
    return false;
  }

 private:
  const PlainBytes& bytes_;
  TextCutter cutter_;
};

// Page-locked memory on its way to the device.
class PlainSlot {
 public:
  PlainSlot(DeviceEngine& engine, PlainReading& reading, std::size_t room)
      : engine_(engine), reading_(reading), room_(room), slot_(engine) {}

  // Reads the next piece and starts its copy; false when there is none, or it failed.
  bool load(const auto&) {
    const std::span<std::uint8_t> piece = reading_.next();
    if (piece.empty()) return false;
    if (memory_ == nullptr) memory_ = slot_.pinned(room_);
    slot_.set_secret(memory_, piece.size());
    if (!reading_.read(piece, memory_)) return false;
    engine_.copy_to_device(piece.data(), memory_, piece.size(), slot_.stream());
    return true;
  }

  bool settle() {
    slot_.wait();
    return true;
  }

 private:
  DeviceEngine& engine_;
  PlainReading& reading_;
  const std::size_t room_;
  SlotMemory slot_;
  std::uint8_t* memory_ = nullptr;
};

std::optional<ReadFailure> read_to_host(const PlainBytes& bytes, const ReadOptions& options) {
  const std::size_t piece_len = std::min(options.piece_len != 0 ? options.piece_len : most_slot_len, bytes.out.size());
  const std::uint64_t others = (bytes.out.size() - 1) / piece_len;
  PlainReading reading(bytes, options, piece_len);
  reading.run(std::min<std::uint64_t>(threads_for(options.threads), others + 1), [&] {
    while (true) {
      const std::span<std::uint8_t> piece = reading.next();
      if (piece.empty() || !reading.read(piece, piece.data())) return;
    }
  });
  return reading.failure();
}

std::optional<ReadFailure> read_to_device(DeviceEngine& engine, const PlainBytes& bytes, Stream stream,
                                          const ReadOptions& options) {
  const std::size_t most = threads_for(options.threads);
  const std::size_t piece_len = options.piece_len != 0 ? options.piece_len : slot_len_for(bytes.out.size(), most);
  const std::size_t room = std::min({piece_len, bytes.out.size(), PinnedBudget::most / slots_of_thread});
  PlainReading reading(bytes, options, room);
  // What the caller has put on the stream may still use `out`. On this thread: the stream may be its own default one.
  engine.wait(stream);
  reading.run_slots<PlainSlot>(threads_with_slots(most, bytes.out.size(), room), engine, reading, room);
  return reading.failure();
}

}  // namespace

std::optional<ReadFailure> read_plain(std::string_view engine, const PlainBytes& bytes, Stream stream,
                                      const ReadOptions& options) {
  if (bytes.begin > most_offset) {
    refuse("bytes of a file from ", bytes.begin, " on: expected at most 2^62");
  }
  if (bytes.out.empty()) return std::nullopt;
  if (bytes.memory == Memory::host) return read_to_host(bytes, options);
  return read_to_device(select_device_engine(engine), bytes, stream, options);
}

}  // namespace warpcipher
