// SPDX-License-Identifier: Apache-2.0
#include "flow/file/file_piece.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "core/thread_pool.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t alignment = 16;  // what GPUs load at once
constexpr std::size_t most_vectors = 64;
// Of the file between two extents: it is read with them and not looked at, which takes less time than a read more. The
// headers of Parquet's pages are some 60 bytes.
constexpr std::uint64_t most_gap_in_file = 512;
// Chunks may be the same bytes over and over: what they take together could be beyond 64 bits.
constexpr std::uint64_t most_total = std::uint64_t{1} << 62;

constexpr std::size_t aligned(std::size_t n) { return (n + alignment - 1) / alignment * alignment; }

// The room of a chunk in a buffer. A tag that is given follows the ciphertext, as one from the file does.
std::size_t room_of(const FileChunks& c, std::size_t i) { return c.front_len(i) + c.lengths[i] + c.tag_len; }

void check_fit(const FileChunks& c, std::size_t i, bool has_room, std::uint64_t place) {
  const std::uint64_t len = c.lengths[i], skip = c.skip(i), take = c.take(i);
  const bool fits = skip <= len && take <= len - skip && place <= c.out.size() && take <= c.out.size() - place;
  if (has_room && fits) return;
  refuse("chunk ", i, " changed while it was read: the columns must stay as they are");
}

// The chunk of a piece that a byte of the buffer is of.
std::size_t chunk_at(const FileChunks& c, const FilePiece& piece, std::size_t at) {
  for (const FilePiece::Item& item : piece.items) {
    const std::size_t begin = item.at - c.front_len(item.chunk);
    if (at >= begin && at - begin < c.len_in_file(item.chunk)) return item.chunk;
  }
  return piece.items.front().chunk;
}

// Where the gap before an extent is so short that both are read at once.
bool has_short_gap(const std::vector<FilePiece::Extent>& extents, std::size_t i) {
  const std::uint64_t end = extents[i - 1].file_offset + extents[i - 1].len;
  return extents[i].file_offset >= end && extents[i].file_offset - end <= most_gap_in_file;
}

// Reads extents from `first` to `end` that follow each other in the file, except for short gaps.
std::optional<ReadFailure> read_extents(const FileChunks& c, const FilePiece& piece, std::size_t first, std::size_t end,
                                        std::uint8_t* buffer, const std::function<void()>& check) {
  std::array<std::uint8_t, most_gap_in_file> unused;  // what gaps hold
  std::uint64_t position = piece.extents[first].file_offset;
  std::vector<iovec> parts;
  std::uint64_t known = position;
  for (std::size_t i = first; i < end; ++i) {
    const FilePiece::Extent& extent = piece.extents[i];
    if (extent.file_offset != known)
      parts.push_back({unused.data(), static_cast<std::size_t>(extent.file_offset - known)});
    parts.push_back({buffer + extent.at, extent.len});
    known = extent.file_offset + extent.len;
  }
  for (std::size_t next = 0; next < parts.size();) {
    const std::size_t count = std::min(parts.size() - next, most_vectors);
    const ssize_t got =
        preadv(c.source.descriptor, parts.data() + next, static_cast<int>(count), static_cast<off_t>(position));
    if (got < 0 && errno == EINTR) {
      check();
      continue;
    }
    if (got <= 0) {
      const int error = got < 0 ? errno : 0;
      const auto* at = static_cast<const std::uint8_t*>(parts[next].iov_base);
      if (at >= unused.data() && at < unused.data() + unused.size()) {
        at = static_cast<const std::uint8_t*>(parts[next + 1].iov_base);
      }
      const std::size_t chunk = chunk_at(c, piece, static_cast<std::size_t>(at - buffer));
      return ReadFailure{got < 0 ? ReadFailure::Kind::error : ReadFailure::Kind::ended, chunk, position, error};
    }
    position += static_cast<std::uint64_t>(got);
    for (std::size_t left = static_cast<std::size_t>(got); left != 0;) {
      iovec& part = parts[next];
      const std::size_t taken = std::min(left, part.iov_len);
      left -= taken;
      part.iov_base = static_cast<std::uint8_t*>(part.iov_base) + taken;
      part.iov_len -= taken;
      if (part.iov_len == 0) ++next;
    }
  }
  return std::nullopt;
}

std::optional<ReadFailure> read_all(const FileChunks& c, const FilePiece& piece, std::uint8_t* buffer,
                                    const std::function<void()>& check) {
  for (std::size_t first = 0; first < piece.extents.size();) {
    std::size_t end = first + 1;
    while (end < piece.extents.size() && has_short_gap(piece.extents, end)) ++end;
    if (const auto failure = read_extents(c, piece, first, end, buffer, check)) return failure;
    first = end;
  }
  return std::nullopt;
}

}  // namespace

bool PieceCutter::next(FilePiece& piece) {
  piece.items.clear();
  piece.extents.clear();
  piece.len = 0;
  const std::lock_guard lock(mutex_);
  const FileChunks& c = chunks_;
  for (; next_ < c.count; ++next_) {
    const std::size_t i = next_;
    const bool is_partial = !c.is_whole(i);
    if (!piece.empty() && is_partial != piece.is_partial) break;
    piece.is_partial = is_partial;
    const std::uint64_t file_offset = c.file_offsets[i];
    const std::size_t len = c.len_in_file(i);
    const bool follows = !piece.extents.empty() &&
                         piece.extents.back().file_offset + piece.extents.back().len == file_offset &&
                         piece.extents.back().at + piece.extents.back().len == piece.len;
    const std::size_t begin = follows ? piece.len : aligned(piece.len);
    const std::size_t room = room_of(c, i);
    if (!piece.empty() && (begin > room_ || room > room_ - begin)) break;
    const std::uint64_t place = c.out_offsets.empty() ? place_ : c.out_offsets[i];
    check_fit(c, i, room <= room_, place);
    if (follows) {
      piece.extents.back().len += len;
    } else if (len != 0) {
      piece.extents.push_back({file_offset, begin, len});
    }
    piece.len = begin + room;
    piece.items.push_back({i, begin + c.front_len(i), place});
    place_ += c.take(i);
  }
  if (!piece.empty() && !piece.is_partial) put(piece);
  return !piece.empty();
}

// Gives a piece the next place; the window ends where the longest piece would not fit after it.
void PieceCutter::put(FilePiece& piece) {
  const std::uint64_t end = free_.begin + aligned(piece.len);
  free_.is_last = end > window_len_ || room_ > window_len_ - end;
  piece.place = free_;
  if (free_.is_last) {
    free_ = {free_.window + 1};
  } else {
    ++free_.number;
    free_.begin = end;
  }
}

ChunkRooms::ChunkRooms(const FileChunks& c) : count_(c.count) {
  std::mutex mutex;
  ThreadPool::instance().parallel_for(c.count, chunks_at_once, [&](std::size_t begin, std::size_t end) {
    std::size_t longest = 0;
    std::uint64_t total = 0;
    bool are_whole = true;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t room = room_of(c, i);
      longest = std::max(longest, room);
      total = std::min(total + room, most_total);
      are_whole = are_whole && (c.is_whole(i) || i == 0 || i + 1 == c.count);
    }
    const std::lock_guard lock(mutex);
    longest_ = std::max(longest_, longest);
    total_ = std::min(total_ + total, most_total);
    are_whole_ = are_whole_ && are_whole;
  });
}

std::size_t ChunkRooms::for_piece(std::size_t piece_len) const {
  return std::max(longest_, static_cast<std::size_t>(std::min<std::uint64_t>(piece_len, for_all())));
}

std::uint64_t ChunkRooms::for_all() const { return total_ + alignment * count_; }

void FilePiece::cut(std::size_t chunk) {
  const auto end = std::find_if(items.begin(), items.end(), [&](const Item& item) { return item.chunk >= chunk; });
  if (end != items.end()) len = end->at;
  items.erase(end, items.end());
}

std::optional<ReadFailure> read_piece(const FileChunks& c, FilePiece& piece, std::uint8_t* buffer,
                                      const std::function<void()>& check) {
  std::optional<ReadFailure> failure;
  if (c.source.descriptor >= 0) {
    failure = read_all(c, piece, buffer, check);
    if (failure) piece.cut(failure->chunk);
  } else {
    for (const FilePiece::Extent& extent : piece.extents) {
      std::memcpy(buffer + extent.at, c.source.bytes.data() + (extent.file_offset - c.source.begin), extent.len);
    }
  }
  if (!c.tags.empty()) {
    for (const FilePiece::Item& item : piece.items) {
      std::memcpy(buffer + item.at + c.lengths[item.chunk], c.tags.data() + item.chunk * c.tag_len, c.tag_len);
    }
  }
  return failure;
}

const std::uint8_t* iv_of(const FileChunks& c, const FilePiece::Item& item, const std::uint8_t* buffer) {
  return c.has_iv_in_file() ? buffer + item.at - c.iv_len : c.ivs.data() + item.chunk * c.iv_len;
}

}  // namespace warpcipher
