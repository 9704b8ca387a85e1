// SPDX-License-Identifier: Apache-2.0
// The columns of regular files (flow/file/sealing.hpp), as many as several cores make, and the checks of columns, which
// all cores share too.
#include "flow/file/sealing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "flow/file/file_piece.hpp"
#include "support.hpp"

namespace warpcipher {
namespace {

constexpr std::uint64_t chunk_len = 100, overhead = 16, header_len = 40, first_lacks = 30;
constexpr std::uint64_t count = 50'000, text_len = count * chunk_len - first_lacks - 7;
constexpr std::size_t iv_len = 12;

struct Regular {
  Regular(std::uint64_t begin, std::uint64_t len) : made(sealing(), text_len, count, begin, len), out_len(len) {
    chunks = made.chunks();
    chunks.source.descriptor = 0;  // nothing is read
    chunks.out = {reinterpret_cast<std::uint8_t*>(std::uintptr_t{1} << 40), len};
  }

  Sealing sealing() const {
    Sealing s;
    s.keys = keys;
    s.iv_len = iv_len;
    s.tag_len = overhead;
    s.header_len = header_len;
    s.chunk_len = chunk_len;
    s.first_lacks = first_lacks;
    s.nonce_base = base;
    s.counter_shift = 8;
    s.final_shift = 0;
    return s;
  }

  std::array<std::uint8_t, iv_len> base{1, 2, 3};
  Key key{find_algorithm("aes-128-gcm"), test::Bytes(16)};
  std::array<const Key*, 1> keys{&key};
  RegularChunks made;
  std::uint64_t out_len;
  FileChunks chunks;
};

std::uint64_t begin_of(std::uint64_t i) { return i == 0 ? 0 : i * chunk_len - first_lacks; }

TEST(RegularChunks, AllOfAFile) {
  const Regular file(0, text_len);
  const FileChunks& c = file.chunks;
  ASSERT_EQ(c.count, count);
  EXPECT_TRUE(c.skips.empty());
  for (std::uint64_t i = 0; i < count; ++i) {
    ASSERT_EQ(c.file_offsets[i], header_len + begin_of(i) + i * overhead);
    ASSERT_EQ(c.lengths[i], std::min(begin_of(i + 1), text_len) - begin_of(i));
    test::Bytes iv(file.base.begin(), file.base.end());
    iv[10] ^= static_cast<std::uint8_t>(i);
    iv[9] ^= static_cast<std::uint8_t>(i >> 8);
    iv[11] ^= i + 1 == count ? 1 : 0;
    ASSERT_TRUE(std::equal(iv.begin(), iv.end(), c.ivs.begin() + static_cast<std::ptrdiff_t>(i * iv_len))) << i;
  }
  check_file_chunks(c);
}

TEST(RegularChunks, ARangeOfAFile) {
  constexpr std::uint64_t begin = 1234, end = text_len - 55;
  const Regular file(begin, end - begin);
  const FileChunks& c = file.chunks;
  ASSERT_EQ(c.takes.size(), c.count);
  std::uint64_t next = begin;
  for (std::uint64_t i = 0; i < c.count; ++i) {
    ASSERT_EQ(begin_of(c.first_number + i) + c.skip(i), next);
    ASSERT_EQ(c.skip(i) != 0, i == 0);
    next += c.take(i);
  }
  EXPECT_EQ(next, end);
  check_file_chunks(c);
  EXPECT_TRUE(ChunkRooms(c).are_whole());
  EXPECT_EQ(ChunkRooms(c).longest(), chunk_len + overhead);
}

// Heads and associated data by their rules, as messages of the AWS Encryption SDK have them; the final ones differ.
TEST(RegularChunks, Patterns) {
  constexpr std::array<std::uint8_t, 16> head{9}, aad{7};
  constexpr std::array<std::uint8_t, 24> final_head{0xff, 0xff, 0xff, 0xff};
  constexpr std::array<std::uint8_t, 20> final_aad{8};
  const Key key(find_algorithm("aes-128-gcm"), test::Bytes(16));
  const std::array<const Key*, 1> keys{&key};
  const std::array<std::uint8_t, iv_len> base{};
  Sealing s;
  s.keys = keys;
  s.iv_len = iv_len;
  s.tag_len = overhead;
  s.header_len = header_len;
  s.chunk_len = chunk_len;
  s.nonce_base = base;
  s.number_from = 1;
  s.aad_rule = {aad, 1, false, -1, 8};
  s.final_aad_rule = {final_aad, 1, true, -1, 8};
  s.head_rule = {head, 0, true, 4, 0};
  s.final_head_rule = {final_head, 4, true, 8, 4};
  const RegularChunks made(s, 2 * chunk_len + 5, 3, 0, 2 * chunk_len + 5);
  FileChunks c = made.chunks();
  c.source.descriptor = 0;
  c.out = {reinterpret_cast<std::uint8_t*>(std::uintptr_t{1} << 40), 2 * chunk_len + 5};
  check_file_chunks(c);
  const auto bytes = [](std::span<const std::uint8_t> span) { return test::Bytes(span.begin(), span.end()); };
  EXPECT_EQ(bytes(c.head(1)), (test::Bytes{0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}));
  EXPECT_EQ(bytes(c.head(2)),
            (test::Bytes{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 5}));
  EXPECT_EQ(bytes(c.aad_of(1)), (test::Bytes{7, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100}));
  EXPECT_EQ(bytes(c.aad_of(2)), (test::Bytes{8, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5}));
  EXPECT_EQ(c.file_offsets[2], header_len + 2 * (chunk_len + head.size() + overhead));
  EXPECT_EQ(c.len_in_file(2), final_head.size() + 5 + overhead);

  s.head_rule->nonce_at = 5;  // it would end after the head
  EXPECT_THROW(RegularChunks(s, 1, 1, 0, 1), Error);
}

TEST(FileChunks, TheFirstOfManyThatIsWrongIsNamed) {
  const auto error_of = [](auto&& change) {
    Regular file(0, text_len);
    std::vector<std::uint64_t> lengths(file.chunks.lengths.begin(), file.chunks.lengths.end());
    std::vector<std::uint64_t> offsets(file.chunks.file_offsets.begin(), file.chunks.file_offsets.end());
    file.chunks.lengths = lengths;
    file.chunks.file_offsets = offsets;
    file.chunks.wanted = 0;  // the columns are a caller's
    change(lengths, offsets, file.chunks);
    try {
      check_file_chunks(file.chunks);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error_of([](auto&, auto& offsets, auto&) {
              offsets[41'000] = offsets[20'000] = std::uint64_t{1} << 63;
            }).substr(0, 12),
            "chunk 20000:");
  EXPECT_EQ(error_of([](auto& lengths, auto&, auto&) { lengths[30'001] = UINT64_MAX; }).substr(0, 12), "chunk 30001:");
  EXPECT_EQ(error_of([](auto&, auto&, auto& chunks) { chunks.out = chunks.out.first(text_len - 1); }).substr(0, 12),
            "chunk 49999:");
  // Sums beyond 64 bits.
  EXPECT_EQ(error_of([](auto& lengths, auto&, auto&) { std::ranges::fill(lengths, most_buffer_len); }).substr(0, 8),
            "chunk 0:");
}

}  // namespace
}  // namespace warpcipher
