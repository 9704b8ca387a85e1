// SPDX-License-Identifier: Apache-2.0
// Chunks decrypted from memory and from a file.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parquet/open_chunks.hpp"
#include "parquet_chunks.hpp"
#include "parquet_support.hpp"

namespace warpcipher::parquet {
namespace {

// A file that vanishes.
class TestFile {
 public:
  explicit TestFile(const Text& text) : file_(std::tmpfile()) {
    EXPECT_EQ(std::fwrite(text.data(), 1, text.size(), file_), text.size());
    std::fflush(file_);
  }
  ~TestFile() { std::fclose(file_); }
  TestFile(const TestFile&) = delete;
  TestFile& operator=(const TestFile&) = delete;
  int descriptor() const { return fileno(file_); }

 private:
  std::FILE* const file_;
};

ChunkSource of_file(int descriptor) {
  ChunkSource source;
  source.descriptor = descriptor;
  return source;
}

ChunkSource of_bytes(Bytes bytes, std::uint64_t begin = 0) {
  ChunkSource source;
  source.bytes = bytes;
  source.begin = begin;
  return source;
}

// One after another.
Text joined(std::initializer_list<Bytes> parts) {
  Text text;
  for (const Bytes part : parts) text.insert(text.end(), part.begin(), part.end());
  return text;
}

struct Opened {
  OpenResult result;
  Text out;
};

Opened open(const ChunkSource& source, const std::vector<SealedChunk>& chunks, bool counter = false,
            std::size_t threads = 0, std::size_t more_room = 9) {
  const TestKeys keys;
  const std::vector<std::uint32_t> index(chunks.size());
  const Key* const head[] = {&keys.gcm};
  const Key* const page[] = {counter ? &keys.ctr : &keys.gcm};
  std::size_t room = more_room;
  for (const SealedChunk& chunk : chunks) room += chunk.size;
  Opened found{{}, Text(room, 0xee)};
  found.result = open_chunks("cpu", {source, chunks, index, head, page, prefix, found.out}, nullptr, threads,
                             std::function<void(bool)>());
  return found;
}

bool is_zero(std::span<const std::uint8_t> bytes) {
  for (const std::uint8_t byte : bytes) {
    if (byte != 0) return false;
  }
  return true;
}

void expect_opened(const Opened& found, const std::vector<const SealedPages*>& chunks) {
  ASSERT_FALSE(found.result.failure);
  ASSERT_EQ(found.result.chunks.size(), chunks.size());
  std::uint64_t end = 0;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const SealedPages& chunk = *chunks[c];
    const OpenedChunk& opened = found.result.chunks[c];
    EXPECT_EQ(opened.out, end);
    ASSERT_EQ(opened.pages.size(), chunk.texts.size());
    std::uint64_t at = 0, position = 0;
    for (std::size_t i = 0; i < chunk.texts.size(); ++i) {
      EXPECT_EQ(opened.pages[i].position, position);
      EXPECT_EQ(opened.pages[i].out, at);
      EXPECT_EQ(opened.pages[i].size, chunk.header_sizes[i] + chunk.texts[i].size());
      const std::uint64_t text = end + at + chunk.header_sizes[i];
      EXPECT_EQ(Text(found.out.begin() + static_cast<std::ptrdiff_t>(text),
                     found.out.begin() + static_cast<std::ptrdiff_t>(text + chunk.texts[i].size())),
                chunk.texts[i]);
      at += opened.pages[i].size;
      position = chunk.ends[2 * i + 1];
    }
    EXPECT_EQ(opened.size, at);
    end += at;
  }
  EXPECT_TRUE(is_zero(std::span(found.out).subspan(end)));
}

// Shorter and longer than a piece, one after another, and many short ones.
std::vector<std::size_t> page_sizes() {
  std::vector<std::size_t> sizes{100, 70'000, 0, 300'000, 65'000, 65'000, 1, 1'100'000, 12};
  sizes.insert(sizes.end(), 300, 1000);
  return sizes;
}

TEST(ParquetOpen, ChunksOfAnyPages) {
  const TestKeys keys;
  for (const bool counter : {false, true}) {
    const SealedPages first(keys, page_sizes(), 1, true, counter), second(keys, {5000, 131'072}, 2, false, counter);
    const Text text = joined({Text(4, 0xaa), first.data, second.data});
    const std::vector<SealedChunk> chunks{first.at(4), second.at(4 + first.data.size())};
    const TestFile file(text);
    for (const std::size_t threads : {0u, 1u, 2u, 99u}) {
      expect_opened(open(of_file(file.descriptor()), chunks, counter, threads), {&first, &second});
      expect_opened(open(of_bytes(text), chunks, counter, threads), {&first, &second});
    }
    expect_opened(open(of_bytes(std::span(text).subspan(4), 4), chunks, counter), {&first, &second});
    expect_opened(open(of_file(file.descriptor()), {chunks[1], chunks[0]}, counter), {&second, &first});
  }
}

TEST(ParquetOpen, PaddingBehindHeadersIsLeftOut) {
  const TestKeys keys;
  const SealedPages all(keys, page_sizes(), 1, true, false, [](std::size_t) { return 70; });
  const SealedPages some(keys, page_sizes(), 2, false, false,
                         [](std::size_t page) { return page % 3 == 1 ? page : 0; });
  const SealedPages none(keys, {5000, 131'072}, 3, false, false);
  const SealedPages last(keys, {0, 9}, 4, true, false, [](std::size_t page) { return page == 1 ? 1 : 0; });
  const Text text = joined({all.data, some.data, none.data, last.data});
  std::uint64_t at = 0;
  std::vector<SealedChunk> chunks;
  for (const SealedPages* chunk : {&all, &some, &none, &last}) {
    chunks.push_back(chunk->at(at));
    at += chunk->data.size();
  }
  const TestFile file(text);
  for (const std::size_t threads : {0u, 1u, 99u}) {
    expect_opened(open(of_file(file.descriptor()), chunks, false, threads), {&all, &some, &none, &last});
    expect_opened(open(of_bytes(text), chunks, false, threads), {&all, &some, &none, &last});
  }
}

TEST(ParquetOpen, ChunksWithoutPagesAndWithoutEncryption) {
  const TestKeys keys;
  const SealedPages sealed(keys, {50}, 0, false, false);
  const Text text = joined({bytes_of("plain"), sealed.data});
  const std::vector<SealedChunk> chunks{sealed.at(5), {0, 5}, {3, 0}, {5, 0, 0, 0, true}};
  const TestFile file(text);
  for (const ChunkSource& source : {of_file(file.descriptor()), of_bytes(text)}) {
    const Opened found = open(source, chunks);
    ASSERT_FALSE(found.result.failure);
    const OpenedChunk& plain = found.result.chunks[1];
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(found.out.data() + plain.out), plain.size), "plain");
    EXPECT_EQ(found.result.chunks[2].size, 0u);
    EXPECT_EQ(found.result.chunks[3].size, 0u);
  }
}

TEST(ParquetOpen, AChangeInAnyModuleIsNamedAndNothingIsLeft) {
  const TestKeys keys;
  const SealedPages chunk(keys, {100, 200'000, 3000, 50}, 1, true, false);
  std::size_t begin = 0;
  for (std::size_t module = 0; module < chunk.ends.size(); ++module) {
    for (const std::size_t at : {begin + length_size, chunk.ends[module] - 1}) {
      Text changed = chunk.data;
      changed[at] ^= 1;
      const TestFile file(changed);
      for (const ChunkSource& source : {of_file(file.descriptor()), of_bytes(changed)}) {
        const Opened found = open(source, {chunk.at(0)});
        ASSERT_TRUE(found.result.failure);
        EXPECT_EQ(found.result.failure->kind, OpenFailure::Kind::bad_tag);
        EXPECT_EQ(found.result.failure->module, module);
        EXPECT_TRUE(is_zero(found.out));
      }
    }
    begin = chunk.ends[module];
  }
}

TEST(ParquetOpen, LengthsThatLieAreRefused) {
  const TestKeys keys;
  const SealedPages chunk(keys, {100, 5000}, 1, false, false);
  const auto why = [&](const std::function<void(Text&)>& change) {
    Text changed = chunk.data;
    change(changed);
    SealedChunk sealed = chunk.at(0);
    sealed.size = changed.size();
    const Opened found = open(of_bytes(changed), {sealed});
    EXPECT_TRUE(found.result.failure && is_zero(found.out));
    return found.result.failure ? found.result.failure->why : "";
  };
  const std::string sum = "the lengths of its modules do not add up to its ";
  const std::string all = std::to_string(chunk.data.size());
  EXPECT_EQ(why([](Text& text) { store_le32(text.data(), 0xffffffff); }), sum + all + " bytes");
  EXPECT_EQ(why([](Text& text) { store_le32(text.data(), 11); }), "a module of 11 bytes is shorter than its nonce");
  EXPECT_EQ(why([](Text& text) { text = modules_of({20, 40}); }), "a module is shorter than its nonce and tag");
  EXPECT_EQ(why([&](Text& text) { text.resize(chunk.ends[2]); }),
            "3 modules: expected a header and a page for each of up to 32768 pages");
  EXPECT_EQ(why([&](Text& text) { text.resize(chunk.ends[2] + 3); }),
            sum + std::to_string(chunk.ends[2] + 3) + " bytes");
}

TEST(ParquetOpen, MorePagesThanTheFormatNumbersAreRefused) {
  const TestKeys keys;
  const std::vector<std::size_t> sizes(32'770, 1);
  const SealedPages chunk(keys, sizes, 0, true, false);
  const Opened found = open(of_bytes(chunk.data), {chunk.at(0)});
  ASSERT_TRUE(found.result.failure);
  EXPECT_EQ(found.result.failure->why, "65540 modules: expected a header and a page for each of up to 32768 pages");
}

TEST(ParquetOpen, AHeaderOfAnotherPageIsRefused) {
  const TestKeys keys;
  const SealedPages chunk(keys, {100}, 0, false, true);
  const Opened found = open(of_bytes(chunk.data), {chunk.at(0)});  // as GCM: the page is 16 bytes shorter
  ASSERT_TRUE(found.result.failure);
  EXPECT_EQ(found.result.failure->kind, OpenFailure::Kind::bad_tag);
  SealedChunk dictionary = chunk.at(0);
  dictionary.dictionary = true;
  EXPECT_TRUE(open(of_bytes(chunk.data), {dictionary}, true).result.failure);
}

TEST(ParquetOpen, AFileThatEndsOrCannotBeRead) {
  const TestKeys keys;
  const SealedPages chunk(keys, {1000, 300'000}, 0, false, false);
  const TestFile file(Text(chunk.data.begin(), chunk.data.end() - 10));
  const Opened ended = open(of_file(file.descriptor()), {chunk.at(0)});
  ASSERT_TRUE(ended.result.failure);
  EXPECT_EQ(ended.result.failure->kind, OpenFailure::Kind::file);
  EXPECT_EQ(ended.result.failure->read.position, chunk.data.size() - 10);
  EXPECT_EQ(ended.result.failure->read.error, 0);
  const Opened closed = open(of_file(1 << 20), {chunk.at(0)});
  ASSERT_TRUE(closed.result.failure);
  EXPECT_EQ(closed.result.failure->read.error, EBADF);
}

TEST(ParquetOpen, ArgumentsThatCannotBeRightAreRefused) {
  const TestKeys keys;
  const SealedPages chunk(keys, {100}, 0, false, false);
  const auto says = [&](const SealedChunk& sealed) {
    return refusal([&] { open(of_bytes(chunk.data), {sealed}, false, 0, 0); });
  };
  SealedChunk wrong = chunk.at(1);
  EXPECT_EQ(says(wrong), "chunk 0: it does not fit");
  wrong.position = UINT64_MAX;
  EXPECT_EQ(says(wrong), "chunk 0: it does not fit");
}

}  // namespace
}  // namespace warpcipher::parquet
