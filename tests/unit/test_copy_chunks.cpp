// SPDX-License-Identifier: Apache-2.0
// Chunks copied from file to file by several threads (file/copy_chunks.hpp): what is in the target after a failure, and
// where in their pages the system copies from and to.
#include "flow/file/copy_chunks.hpp"

#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "flow/file/work.hpp"
#include "message/key.hpp"
#include "mode/algorithm.hpp"
#include "support.hpp"
#include "vector_io.hpp"

namespace {
std::atomic<bool> writes_are_slow{false};
std::atomic<int> writes_left{-1};  // until one fails; negative: none does
std::atomic<std::size_t> shifted_copies{0}, copies{0};
std::mutex readers_mutex;
std::set<std::thread::id> readers;

// Counts copies, and those whose target lies elsewhere in a page than their source.
void count_copies(const iovec* vectors, int count, off_t offset) {
  auto place = static_cast<std::uintptr_t>(offset);
  for (int i = 0; i < count; ++i) {
    const auto at = reinterpret_cast<std::uintptr_t>(vectors[i].iov_base);
    ++copies;
    if ((at - place) % 4096 != 0) ++shifted_copies;
    place += vectors[i].iov_len;
  }
}
// While one thread writes, the others get ahead of it.
int before_write(const iovec* vectors, int count, off_t offset) {
  count_copies(vectors, count, offset);
  if (writes_are_slow) std::this_thread::sleep_for(std::chrono::milliseconds(3));
  return writes_left >= 0 && writes_left-- == 0 ? ENOSPC : 0;
}

int before_read(const iovec* vectors, int count, off_t offset) {
  count_copies(vectors, count, offset);
  return 0;
}
}  // namespace

namespace warpcipher {
namespace {

constexpr std::size_t count = 24, len = 300'000, tag_len = 16, iv_len = 12;  // each chunk is a piece of its own

struct Closing {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

class CopyChunks : public testing::Test {
 protected:
  CopyChunks() {
    keys_[0] = &key_;
    sealing_.keys = keys_;
    sealing_.nonce_base = nonce_;
    sealing_.iv_len = iv_len;
    sealing_.tag_len = tag_len;
    sealing_.chunk_len = len;
    put(plain_, text_);
    test::before_preadv = before_read;
    test::before_pwritev = before_write;
    EXPECT_EQ(copy(Direction::encrypt, plain_, sealed_).count, count);
    writes_are_slow = true;
  }
  ~CopyChunks() override {
    test::before_preadv = nullptr;
    test::before_pwritev = nullptr;
    writes_are_slow = false;
    writes_left = -1;
  }

  using File = std::unique_ptr<std::FILE, Closing>;

  CopiedChunks copy(Direction direction, const File& source, const File& target, std::uint64_t source_offset = 0,
                    std::uint64_t target_offset = 0) {
    return copy_chunks(
        "cpu", sealing_,
        {direction, fileno(source.get()), fileno(target.get()), source_offset, target_offset, first_, count}, {});
  }

  static test::Bytes random_text() {
    std::mt19937 random(23);
    return test::random_bytes(random, count * len);
  }

  static void put(const File& file, const test::Bytes& bytes) {
    EXPECT_EQ(pwrite(fileno(file.get()), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }

  // The target before chunk `end` is the text.
  void expect_text_before(std::size_t end) {
    test::Bytes got(end * len);
    EXPECT_EQ(pread(fileno(back_.get()), got.data(), got.size(), 0), static_cast<ssize_t>(got.size()));
    EXPECT_EQ(got, test::Bytes(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(got.size())));
  }

  const Key key_{find_algorithm("aes-128-gcm"), test::Bytes(16, 7)};
  const Key* keys_[1] = {};
  const test::Bytes nonce_ = test::Bytes(iv_len), text_ = random_text();
  File plain_{std::tmpfile()}, sealed_{std::tmpfile()}, back_{std::tmpfile()};
  Sealing sealing_;
  std::uint64_t first_ = 0;
};

// A thread that finds a damaged chunk ends the copy while others still write what is before it.
TEST_F(CopyChunks, AllBeforeADamagedChunkIsWritten) {
  for (std::size_t damaged = 0; damaged < count; ++damaged) {
    std::uint8_t byte = 0;
    const auto place = static_cast<off_t>(damaged * (len + tag_len) + 5);
    ASSERT_EQ(pread(fileno(sealed_.get()), &byte, 1, place), 1);
    byte ^= 1;
    ASSERT_EQ(pwrite(fileno(sealed_.get()), &byte, 1, place), 1);
    ASSERT_EQ(ftruncate(fileno(back_.get()), 0), 0);
    EXPECT_EQ(copy(Direction::decrypt, sealed_, back_).count, damaged);
    expect_text_before(damaged);
    byte ^= 1;
    ASSERT_EQ(pwrite(fileno(sealed_.get()), &byte, 1, place), 1);
  }
}

TEST_F(CopyChunks, AllBeforeAFailedWriteIsWritten) {
  for (const int fine : {0, 1, 9}) {
    ASSERT_EQ(ftruncate(fileno(back_.get()), 0), 0);
    writes_left = fine;
    const CopiedChunks done = copy(Direction::decrypt, sealed_, back_);
    writes_left = -1;
    EXPECT_LT(done.count, count);
    EXPECT_EQ(done.read_error, 0);
    EXPECT_EQ(done.write_error, ENOSPC);
    expect_text_before(done.count);
  }
}

// The first chunk of a file may be shorter than the others; a copy may begin at any.
TEST_F(CopyChunks, AShorterFirstChunkAndLaterOnesLieBackToBack) {
  writes_are_slow = false;
  sealing_.first_lacks = 100;
  for (first_ = 0; first_ < 2; ++first_) {
    EXPECT_EQ(copy(Direction::encrypt, plain_, sealed_).count, count);
    EXPECT_EQ(copy(Direction::decrypt, sealed_, back_).count, count);
    expect_text_before(count - 1);
  }
  sealing_.number_from = 1;  // other nonces than before
  EXPECT_EQ(copy(Direction::decrypt, sealed_, back_).count, 0u);
}

// Chunks of 1000 bytes, all in one piece. On Zen 3 a copy to the bytes after its source's place in a page is slow.
TEST_F(CopyChunks, TheSystemCopiesFromAndToTheSamePlaceInAPage) {
  writes_are_slow = false;
  sealing_.chunk_len = 1000;
  for (std::uint64_t plain_offset = 0; plain_offset < 4096; plain_offset += 61) {
    for (const std::uint64_t sealed_offset : {plain_offset, plain_offset + 16, plain_offset + 33, plain_offset + 63}) {
      copies = shifted_copies = 0;
      EXPECT_EQ(copy(Direction::encrypt, plain_, sealed_, plain_offset, sealed_offset).count, count);
      EXPECT_EQ(copy(Direction::decrypt, sealed_, back_, sealed_offset, plain_offset).count, count);
      ASSERT_EQ(shifted_copies, 0u) << plain_offset << ' ' << sealed_offset;
      ASSERT_EQ(copies, 4u);
    }
  }
}

// Segments of Tink have up to 32 MiB.
TEST(FileWork, ThreadsHaveBuffersWithinABound) {
  for (const std::size_t threads : {1, 2, 16, 128}) {
    for (const std::size_t mib : {1, 2, 4, 32, 64, 512}) {
      const std::size_t allowed = threads_with_buffers(threads, mib << 20);
      EXPECT_LE(allowed * (mib << 20), most_buffers_len) << threads << ' ' << mib;
      EXPECT_TRUE(allowed == threads || (allowed + 1) * (mib << 20) > most_buffers_len) << threads << ' ' << mib;
    }
  }
  EXPECT_EQ(threads_with_buffers(128, std::size_t{8} << 30), 1u);
}

// Two of these would take 560 MiB.
TEST_F(CopyChunks, LongChunksHaveFewerThreads) {
  constexpr std::uint64_t long_len = 140 << 20;
  sealing_.chunk_len = long_len;
  ASSERT_EQ(ftruncate(fileno(plain_.get()), count * long_len), 0);
  readers.clear();
  test::before_preadv = [](const iovec*, int, off_t) {
    {
      const std::lock_guard lock(readers_mutex);
      readers.insert(std::this_thread::get_id());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // others begin meanwhile
    return EIO;
  };
  const CopiedChunks done = copy(Direction::encrypt, plain_, sealed_);
  EXPECT_EQ(done.count, 0u);
  EXPECT_EQ(done.read_error, EIO);
  EXPECT_EQ(readers.size(), 1u);
}

}  // namespace
}  // namespace warpcipher
