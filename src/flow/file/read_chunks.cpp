// SPDX-License-Identifier: Apache-2.0
#include "flow/file/read_chunks.hpp"

#include <algorithm>
#include <string>

#include "dispatch/select.hpp"
#include "flow/copy.hpp"
#include "flow/file/reading.hpp"

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
    throw Error(Status::invalid_argument, "a chunk of " + std::to_string(longest) +
                                              " bytes, and a read to a device takes chunks of at most " +
                                              std::to_string(most_device_chunk_len));
  }
  DeviceEngine& device = select_device_engine(engine);
  return wiping([&] { return read_to_device(engine, device, chunks, rooms, stream, options); },
                [&] { wipe_on_device(chunks, device, stream); });
}

}  // namespace warpcipher
