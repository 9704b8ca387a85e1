// SPDX-License-Identifier: Apache-2.0
#include "flow/file/read_chunks.hpp"

#include <algorithm>
#include <cerrno>
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

// engine: of device memory.
void wipe(const FileChunks& c, DeviceEngine* engine, Stream stream) noexcept {
  try {
    for_outputs(c, [&](std::uint64_t begin, std::uint64_t len) {
      if (engine == nullptr) return wipe_in_parallel(c.out.data() + begin, len);
      engine->clear(c.out.data() + begin, len, stream);
    });
    if (engine != nullptr) engine->wait(stream);
  } catch (const Error&) {  // the driver is gone, and with it what it held
  }
}

}  // namespace

std::optional<ReadFailure> read_chunks(std::string_view engine, const FileChunks& chunks, Stream stream,
                                       const ReadOptions& asked) {
  check_file_chunks(chunks);
  if (chunks.count == 0) return std::nullopt;
  const ChunkRooms rooms(chunks);
  ReadOptions options = asked;
  options.threads = threads_for(asked.threads);
  DeviceEngine* device = nullptr;
  if (chunks.memory == Memory::device) {
    const std::size_t longest = rooms.longest();
    if (longest > most_device_chunk_len) {
      refuse("a chunk of ", longest, " bytes, and a read to a device takes chunks of at most ", most_device_chunk_len);
    }
    device = &select_device_engine(engine);
  }
  std::optional<ReadFailure> failure;
  try {
    failure = device == nullptr ? read_to_host(engine, chunks, rooms, options)
                                : read_to_device(engine, *device, chunks, rooms, stream, options);
  } catch (...) {
    wipe(chunks, device, stream);
    throw;
  }
  if (failure) wipe(chunks, device, stream);
  return failure;
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
      if (chunks_.is_plain()) {
        if (!reading_.read(piece_, chunks_.out.data() + piece_.items.front().place)) return;
        continue;
      }
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
    if (!reading_.are_right(results_, piece_.items)) return false;
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

// Bytes that are not encrypted are chunks without keys, one a piece.
std::optional<ReadFailure> read_plain(std::string_view engine, const PlainBytes& bytes, Stream stream,
                                      const ReadOptions& asked) {
  if (bytes.begin > most_offset) {
    refuse("bytes of a file from ", bytes.begin, " on: expected at most 2^62");
  }
  const std::size_t size = bytes.out.size();
  if (size == 0) return std::nullopt;
  if (bytes.descriptor < 0 && bytes.source.empty()) {
    return ReadFailure{ReadFailure::Kind::error, 0, bytes.begin, EBADF};
  }
  const bool on_host = bytes.memory == Memory::host;
  ReadOptions options = asked;
  options.threads = threads_for(asked.threads);
  if (options.piece_len == 0) options.piece_len = on_host ? most_slot_len : slot_len_for(size, options.threads);
  options.piece_len = std::min({options.piece_len, size, most_device_chunk_len});
  std::vector<std::uint64_t> offsets, lengths;
  for (std::size_t at = 0; at < size; at += lengths.back()) {
    offsets.push_back(bytes.begin + at);
    lengths.push_back(std::min(options.piece_len, size - at));
  }
  FileChunks chunks;
  chunks.count = lengths.size();
  chunks.file_offsets = offsets;
  chunks.lengths = lengths;
  chunks.source = {bytes.descriptor, bytes.source, bytes.begin};
  chunks.memory = bytes.memory;
  chunks.out = bytes.out;
  const ChunkRooms rooms(chunks);
  std::optional<ReadFailure> failure =
      on_host ? read_to_host(engine, chunks, rooms, options)
              : read_to_device(engine, select_device_engine(engine), chunks, rooms, stream, options);
  if (failure) failure->chunk = 0;
  return failure;
}

}  // namespace warpcipher
