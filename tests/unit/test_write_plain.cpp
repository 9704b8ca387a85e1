// SPDX-License-Identifier: Apache-2.0
// Texts written to a file as they are (flow/file/write_chunks.hpp), of a device too: one that is made of host memory.
#include "flow/file/write_chunks.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <vector>

#include "flow/slot_memory.hpp"
#include "host_device_engine.hpp"
#include "support.hpp"

namespace warpcipher {
namespace {

using test::Bytes;
using test::HostDeviceEngine;

struct File {
  File() : stream(std::tmpfile()) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { std::fclose(stream); }

  int descriptor() const { return fileno(stream); }
  Bytes content(std::size_t most) const {
    Bytes found(most);
    const ssize_t count = pread(descriptor(), found.data(), most, 0);
    found.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    return found;
  }

  std::FILE* const stream;
};

// Parts of these lengths, every other one in the memory of the device; what they are together.
struct Parts {
  explicit Parts(const std::vector<std::size_t>& lens) {
    std::mt19937 random(5);
    for (const std::size_t len : lens) texts.push_back(test::random_bytes(random, len));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      parts.push_back({texts[i].data(), texts[i].size(), i % 2 == 0 ? Memory::device : Memory::host});
      all.insert(all.end(), texts[i].begin(), texts[i].end());
    }
  }

  std::vector<Bytes> texts;
  std::vector<TextPart> parts;
  Bytes all;
};

WriteOptions in_pieces(std::size_t len) {
  WriteOptions options;
  options.threads = 1;  // the engine of the tests is for one
  options.piece_len = len;
  return options;
}

TEST(WritePlain, PartsLieInTheFileOneAfterAnother) {
  for (const std::size_t piece : {1, 7, 100, 1000}) {
    for (const auto& lens : {std::vector<std::size_t>{1}, {100}, {3, 0, 200, 100, 0}, {99, 1, 1, 99, 500}}) {
      HostDeviceEngine engine;
      const Parts given(lens);
      const File file;
      EXPECT_FALSE(write_plain(engine, file.descriptor(), given.parts, in_pieces(piece)));
      EXPECT_EQ(file.content(2000), given.all);
      EXPECT_TRUE(engine.balanced());  // and what the slots held is wiped
    }
  }
}

TEST(WritePlain, NoPartsAreNoBytes) {
  HostDeviceEngine engine;
  const File file;
  EXPECT_FALSE(write_plain(engine, file.descriptor(), Parts({0, 0}).parts, in_pieces(0)));
  EXPECT_FALSE(write_plain("auto", file.descriptor(), {}, {}));
  EXPECT_TRUE(file.content(1).empty());
}

TEST(WritePlain, FailuresAreTold) {
  HostDeviceEngine engine;
  const Parts given({50, 1000});
  const auto failure = write_plain(engine, -1, given.parts, in_pieces(100));
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->position, 0u);
  EXPECT_EQ(failure->error, EBADF);
  WriteOptions options = in_pieces(100);
  options.check = [calls = 0](bool) mutable {
    if (++calls == 3) throw std::runtime_error("interrupted");
  };
  const File file;
  EXPECT_THROW(write_plain(engine, file.descriptor(), given.parts, options), std::runtime_error);
  EXPECT_TRUE(engine.balanced());
  EXPECT_EQ(PinnedBudget::in_use(), 0u);
}

TEST(PinnedBudget, CallsLeaveEachOtherEnough) {
  HostDeviceEngine engine;
  EXPECT_EQ(PinnedBudget::of_call(), PinnedBudget::most);
  {
    SlotMemory slot(engine), other(engine);
    slot.pinned(1000);
    other.on_device(5000);  // which is another budget
    EXPECT_EQ(PinnedBudget::in_use(), 1000u);
    EXPECT_EQ(PinnedBudget::of_call(), PinnedBudget::most - 1000);
    other.pinned(PinnedBudget::most);
    EXPECT_EQ(PinnedBudget::of_call(), PinnedBudget::least);
  }
  EXPECT_EQ(PinnedBudget::in_use(), 0u);
  EXPECT_TRUE(engine.balanced());
}

}  // namespace
}  // namespace warpcipher
