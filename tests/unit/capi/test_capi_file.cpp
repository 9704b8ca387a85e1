// SPDX-License-Identifier: Apache-2.0
// Chunks of encrypted files through the C ABI.
#include <gtest/gtest.h>
#include <unistd.h>
#include <warpcipher.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<unsigned char>;

// Three chunks of 5000 bytes, back to back, and what reads them.
class FileChunks : public testing::Test {
 protected:
  static constexpr std::size_t count = 3, len = 5000, sealed_len = len + 16;

  void SetUp() override {
    const Bytes key_bytes(32, 7);
    ASSERT_EQ(wc_key_new(&key, "aes-256-gcm", key_bytes.data(), key_bytes.size()), WC_OK);
    for (std::size_t i = 0; i < count * len; ++i) text.push_back(static_cast<unsigned char>(i * 7 + i / 256));
    for (std::size_t i = 0; i < 12 * count; ++i) ivs.push_back(static_cast<unsigned char>(i));
    sealed.resize(count * sealed_len);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(wc_seal(key, sealed.data() + i * sealed_len, sealed_len, text.data() + i * len, len,
                        ivs.data() + 12 * i, 12, nullptr, 0),
                WC_OK);
    }
    file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    write();
    chunks.file = fileno(file);
    chunks.keys = &const_key;
    chunks.key_count = 1;
    chunks.count = count;
    chunks.offsets = offsets;
    chunks.lengths = lengths;
    chunks.ivs = ivs.data();
    chunks.iv_len = 12;
    chunks.tag_len = 16;
    chunks.out = out.data();
    chunks.out_len = out.size();
    const_key = key;
  }
  void TearDown() override {
    wc_key_free(key);
    if (file != nullptr) std::fclose(file);
  }

  void write() {
    ASSERT_EQ(pwrite(fileno(file), sealed.data(), sealed.size(), 0), static_cast<ssize_t>(sealed.size()));
  }

  wc_key* key = nullptr;
  const wc_key* const_key = nullptr;
  std::FILE* file = nullptr;
  Bytes text, sealed, ivs, out = Bytes(count * len, 0xa5);
  const std::uint64_t offsets[count] = {0, sealed_len, 2 * sealed_len};
  const std::uint64_t lengths[count] = {len, len, len};
  wc_file_chunks chunks = {};
  std::size_t failed = 77;
};

TEST_F(FileChunks, FromAFileAndFromMemory) {
  ASSERT_EQ(wc_read_chunks(nullptr, &failed, &chunks, nullptr), WC_OK) << wc_last_error();
  EXPECT_EQ(out, text);
  EXPECT_EQ(failed, count);
  std::fill(out.begin(), out.end(), 0);
  chunks.file = -1;
  chunks.bytes = sealed.data();
  chunks.bytes_len = sealed.size();
  ASSERT_EQ(wc_read_chunks("cpu", nullptr, &chunks, nullptr), WC_OK) << wc_last_error();
  EXPECT_EQ(out, text);
}

TEST_F(FileChunks, EmptyMemory) {
  chunks.file = -1;
  chunks.count = 0;
  EXPECT_EQ(wc_read_chunks(nullptr, &failed, &chunks, nullptr), WC_OK) << wc_last_error();
  EXPECT_EQ(failed, 0u);
}

TEST_F(FileChunks, OutInWhatIsRead) {
  chunks.file = -1;
  chunks.bytes = sealed.data();
  chunks.bytes_len = sealed.size();
  chunks.out = sealed.data() + 3;
  const Bytes before = sealed;
  EXPECT_EQ(wc_read_chunks(nullptr, &failed, &chunks, nullptr), WC_INVALID_ARGUMENT);
  EXPECT_NE(std::string(wc_last_error()).find("source overlaps out"), std::string::npos) << wc_last_error();
  EXPECT_EQ(sealed, before);
  chunks.bytes = before.data();
  std::vector<std::uint64_t> lengths_in_out(count * len / 8, len);
  chunks.lengths = lengths_in_out.data();
  chunks.out = lengths_in_out.data();
  EXPECT_EQ(wc_read_chunks(nullptr, &failed, &chunks, nullptr), WC_INVALID_ARGUMENT);
  EXPECT_NE(std::string(wc_last_error()).find("lengths overlaps out"), std::string::npos) << wc_last_error();
  EXPECT_EQ(lengths_in_out, std::vector<std::uint64_t>(count * len / 8, len));
}

TEST_F(FileChunks, Parts) {
  const std::uint64_t skips[count] = {100, 0, 4999}, takes[count] = {4900, 5000, 1};
  chunks.skips = skips;
  chunks.takes = takes;
  chunks.threads = 2;
  chunks.piece_len = 6000;
  ASSERT_EQ(wc_read_chunks(nullptr, &failed, &chunks, nullptr), WC_OK) << wc_last_error();
  Bytes expected(text.begin() + 100, text.begin() + 10000);
  expected.push_back(text.back());
  expected.resize(out.size(), 0xa5);
  EXPECT_EQ(out, expected);
}

TEST_F(FileChunks, ABadTagWipes) {
  sealed[sealed_len + 9] ^= 1;
  write();
  EXPECT_EQ(wc_read_chunks(nullptr, &failed, &chunks, nullptr), WC_INVALID_TAG);
  EXPECT_EQ(failed, 1u);
  EXPECT_NE(std::string(wc_last_error()).find("chunk 1"), std::string::npos);
  EXPECT_EQ(out, Bytes(out.size(), 0));
}

TEST_F(FileChunks, AFileThatEndsWipes) {
  ASSERT_EQ(ftruncate(fileno(file), 2 * sealed_len + 1), 0);
  EXPECT_EQ(wc_read_chunks(nullptr, &failed, &chunks, nullptr), WC_READ_FAILED);
  EXPECT_EQ(failed, 2u);
  EXPECT_EQ(std::string(wc_last_error()), "chunk 2: the file ends at byte 10033");
  EXPECT_STREQ(wc_status_text(WC_READ_FAILED), "read failed");
  EXPECT_EQ(out, Bytes(out.size(), 0));
  chunks.file = 1 << 20;  // nobody's
  EXPECT_EQ(wc_read_chunks(nullptr, &failed, &chunks, nullptr), WC_READ_FAILED);
  EXPECT_NE(std::string(wc_last_error()).find("Bad file descriptor"), std::string::npos);
}

TEST_F(FileChunks, WhatCannotBeRightWritesNothing) {
  const auto refused = [&](const char* text_of_error) {
    EXPECT_EQ(wc_read_chunks(nullptr, &failed, &chunks, nullptr), WC_INVALID_ARGUMENT);
    EXPECT_NE(std::string(wc_last_error()).find(text_of_error), std::string::npos) << wc_last_error();
  };
  const wc_file_chunks right = chunks;
  EXPECT_EQ(wc_read_chunks(nullptr, nullptr, nullptr, nullptr), WC_INVALID_ARGUMENT);
  chunks.keys = nullptr;
  refused("keys is a null pointer");
  chunks = right;
  chunks.offsets = nullptr;
  refused("offsets is a null pointer");
  chunks = right;
  chunks.lengths = nullptr;
  refused("lengths is a null pointer");
  chunks = right;
  chunks.file = -1;
  refused("chunk 0: in range");  // of no bytes
  chunks = right;
  chunks.out_len = 14999;
  refused("chunk 2: out range");
  chunks = right;
  chunks.tag_len = 3;
  refused("takes a tag of");
  chunks = right;
  chunks.aad_lengths = lengths;
  refused("aad_offsets and aad_lengths go together");
  chunks = right;
  chunks.count = std::size_t{1} << 33;
  refused("");
  chunks = right;
  chunks.iv_len = std::size_t{1} << 60;
  refused("an IV");
  chunks = right;
  chunks.ivs = nullptr;  // in the file then, and in front of the text: longer chunks than there are
  chunks.file = -1;
  chunks.bytes = sealed.data();
  chunks.bytes_len = sealed.size();
  refused("chunk 2: in range");
  EXPECT_EQ(out, Bytes(out.size(), 0xa5));
}

}  // namespace
