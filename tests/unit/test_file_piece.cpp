// SPDX-License-Identifier: Apache-2.0
// Pieces of a file's chunks, and reading them (file/file_piece.hpp).
#include "flow/file/file_piece.hpp"

#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "core/error.hpp"
#include "flow/file/joint.hpp"
#include "flow/file/reading.hpp"
#include "support.hpp"
#include "vector_io.hpp"

namespace {
int interruptions = 0;  // of reads to come

// No file of a test is so slow that a signal interrupts a read.
int interrupt(const iovec* /*vectors*/, int /*count*/, off_t /*offset*/) {
  if (interruptions == 0) return 0;
  --interruptions;
  return EINTR;
}
}  // namespace

namespace warpcipher {
namespace {

constexpr std::size_t count = 4, len = 100, tag_len = 16, sealed_len = len + tag_len;

struct Columns {
  explicit Columns() {
    for (std::size_t i = 0; i < count; ++i) file_offsets.push_back(i * sealed_len);
    chunks.count = count;
    chunks.source.bytes = sealed;
    chunks.file_offsets = file_offsets;
    chunks.lengths = lengths;
    chunks.takes = takes;
    chunks.skips = skips;
    chunks.ivs = ivs;
    chunks.iv_len = 12;
    chunks.tag_len = tag_len;
    chunks.out = out;
  }

  test::Bytes sealed = test::Bytes(count * sealed_len), ivs = test::Bytes(12 * count), out = test::Bytes(count * len);
  std::vector<std::uint64_t> file_offsets, lengths = std::vector<std::uint64_t>(count, len), takes = lengths,
                                           skips = std::vector<std::uint64_t>(count, 0);
  FileChunks chunks;
};

TEST(FilePiece, RoomIsForTheLongestChunkAndNoMoreThanAllTake) {
  Columns c;
  const ChunkRooms rooms(c.chunks);
  EXPECT_EQ(rooms.for_piece(1), sealed_len);
  EXPECT_EQ(rooms.for_piece(300), 300u);
  const std::size_t most = rooms.for_piece(SIZE_MAX);
  EXPECT_GE(most, count * sealed_len);
  EXPECT_LT(most, (count + 1) * sealed_len);
  PieceCutter cutter(c.chunks, most);
  FilePiece piece;
  ASSERT_TRUE(cutter.next(piece));
  EXPECT_EQ(piece.items.size(), count);
  EXPECT_FALSE(cutter.next(piece));
}

TEST(FilePiece, LengthsThatSumToMoreThan64BitsHold) {
  Columns c;
  for (std::uint64_t& length : c.lengths) length = std::uint64_t{1} << 62;
  EXPECT_EQ(ChunkRooms(c.chunks).total(), std::uint64_t{1} << 62);
}

TEST(FilePiece, PiecesLieSideBySideInWindows) {
  Columns c;
  // Two of one chunk each fit, aligned to 16 bytes; a third would not.
  PieceCutter cutter(c.chunks, sealed_len, 2 * 128);
  FilePiece piece;
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(cutter.next(piece));
    EXPECT_EQ(piece.place.window, i / 2);
    EXPECT_EQ(piece.place.number, i % 2);
    EXPECT_EQ(piece.place.begin, i % 2 * 128);
    EXPECT_EQ(piece.place.is_last, i % 2 == 1);
  }
}

// Of chunks that are longer than a piece would be.
TEST(FilePiece, WindowsOfOddChunksBeginAligned) {
  for (const std::uint64_t odd : {0, 1, 2, 12, 15}) {
    Columns c;
    c.lengths.assign(count, (std::uint64_t{1} << 20) + odd);
    c.takes = c.lengths;
    const ChunkRooms rooms(c.chunks);
    const std::size_t room = rooms.for_piece(least_slot_len);
    const JointShape shape = joint_shape(rooms, false, room, 2);
    EXPECT_GT(shape.windows, 1u);
    EXPECT_EQ(shape.window_len % window_alignment, 0u) << odd;
    EXPECT_GE(shape.window_len, window_pieces * room) << odd;
    EXPECT_LT(shape.window_len, window_pieces * room + window_alignment) << odd;
  }
}

TEST(FilePiece, SlotsTogetherStayInTheCaches) {
  constexpr std::uint64_t total = std::uint64_t{8} << 30;
  EXPECT_EQ(slot_len_for(total, 1), most_slot_len);
  EXPECT_EQ(slot_len_for(total, 16), most_slot_len);
  EXPECT_EQ(slot_len_for(total, 32), most_slot_len / 2);
  EXPECT_EQ(slot_len_for(total, 48), least_slot_len);
  EXPECT_EQ(slot_len_for(total, 1000), least_slot_len);
  EXPECT_EQ(slot_len_for(std::uint64_t{64} << 20, 16), std::size_t{2} << 20) << "and all threads have work";
}

TEST(FilePiece, APieceOfPartsHasNoPlace) {
  Columns c;
  c.skips[0] = 1;
  c.takes[0] -= 1;
  PieceCutter cutter(c.chunks, sealed_len, 2 * 128);
  FilePiece piece;
  ASSERT_TRUE(cutter.next(piece));
  EXPECT_TRUE(piece.is_partial);
  ASSERT_TRUE(cutter.next(piece));
  EXPECT_EQ(piece.place.number, 0u);
}

TEST(FilePiece, WhetherChunksAreWhole) {
  Columns c;
  EXPECT_TRUE(ChunkRooms(c.chunks).are_whole());
  c.takes[0] = c.takes[count - 1] = 1;
  EXPECT_TRUE(ChunkRooms(c.chunks).are_whole());
  c.takes[1] = 1;
  EXPECT_FALSE(ChunkRooms(c.chunks).are_whole());
}

// The content of a column that another thread changed after the check.
TEST(FilePiece, AChunkThatNoLongerFitsIsRefused) {
  const auto refused = [](auto&& change) {
    Columns c;
    PieceCutter cutter(c.chunks, 2 * sealed_len);
    FilePiece piece;
    ASSERT_TRUE(cutter.next(piece));
    ASSERT_EQ(piece.items.back().chunk, 1u);
    change(c);
    EXPECT_THROW(cutter.next(piece), Error);
  };
  refused([](Columns& c) { c.lengths[2] = c.takes[2] = 2 * sealed_len; });
  refused([](Columns& c) { c.takes[2] = len + 1; });
  refused([](Columns& c) { c.skips[2] = 1; });
  refused([](Columns& c) { c.chunks.out = c.chunks.out.first(3 * len - 1); });
}

TEST(FilePiece, AReadThatASignalInterruptsIsTold) {
  Columns c;
  FilePiece piece;
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(pwrite(fileno(file), c.sealed.data(), c.sealed.size(), 0), static_cast<ssize_t>(c.sealed.size()));
  c.chunks.source = {fileno(file), {}, 0};
  std::vector<bool> calls;
  ReadOptions options;
  options.check = [&](bool interrupted) { calls.push_back(interrupted); };
  Reading reading(c.chunks, options, ChunkRooms(c.chunks).for_piece(SIZE_MAX));
  ASSERT_TRUE(reading.next(piece));
  EXPECT_EQ(calls, std::vector<bool>{false});
  test::before_preadv = interrupt;
  interruptions = 2;
  test::Bytes buffer(piece.len);
  EXPECT_TRUE(reading.read(piece, buffer.data()));
  test::before_preadv = nullptr;
  EXPECT_EQ(calls, (std::vector<bool>{false, true, true}));
  EXPECT_EQ(piece.items.size(), count);
  std::fclose(file);
}

}  // namespace
}  // namespace warpcipher
