// SPDX-License-Identifier: Apache-2.0
// Encrypted files through the C ABI: what is sealed reads back wherever it is read, and what is wrong with keys, files
// and calls is said.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>
#include <warpcipher.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using Bytes = std::vector<unsigned char>;

constexpr std::size_t chunk_len = 16384, sealed_len = chunk_len + 16, header_len = 56;
const Bytes key(32, 7);
const std::string context = "a context";

struct Closing {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// A file without a name.
class File {
 public:
  explicit File(const Bytes& content = {}) : file_(std::tmpfile()) { put(content); }

  int fd() const { return fileno(file_.get()); }
  void put(const Bytes& content) const {
    EXPECT_EQ(ftruncate(fd(), 0), 0);
    EXPECT_EQ(pwrite(fd(), content.data(), content.size(), 0), static_cast<ssize_t>(content.size()));
  }
  Bytes all() const {
    Bytes content(static_cast<std::size_t>(lseek(fd(), 0, SEEK_END)));
    EXPECT_EQ(pread(fd(), content.data(), content.size(), 0), static_cast<ssize_t>(content.size()));
    return content;
  }

 private:
  const std::unique_ptr<std::FILE, Closing> file_;
};

Bytes painted(std::size_t len) {
  Bytes text(len);
  for (std::size_t i = 0; i < len; ++i) text[i] = static_cast<unsigned char>(i * 7 + i / 256);
  return text;
}

wc_status seal(const File& target, const File& source, const Bytes& with = key) {
  return wc_seal_file("cpu", target.fd(), source.fd(), with.data(), with.size(), context.data(), context.size());
}

struct Freeing {
  void operator()(wc_file* file) const { wc_file_free(file); }
};
using Opened = std::unique_ptr<wc_file, Freeing>;

wc_status open(Opened& out, int file, const Bytes& with = key, const std::string& under = context) {
  wc_file* made = nullptr;
  const wc_status status = wc_open_file(&made, "cpu", file, with.data(), with.size(), under.data(), under.size());
  EXPECT_EQ(made != nullptr, status == WC_OK);
  out.reset(made);
  return status;
}

Bytes read_all(const wc_file* file) {
  Bytes text(wc_file_size(file), 0xa5);
  EXPECT_EQ(wc_file_read(file, text.data(), text.size(), WC_MEMORY_HOST, 0, nullptr), WC_OK) << wc_last_error();
  return text;
}

// A file with two bytes before it, sealed, and its content.
Bytes sealed_of(const Bytes& text, const Bytes& with = key) {
  const File source(text), target;
  EXPECT_EQ(seal(target, source, with), WC_OK) << wc_last_error();
  return target.all();
}

std::vector<std::size_t> lengths() {
  std::vector<std::size_t> all{0, 1, chunk_len - 1, chunk_len, chunk_len + 1};
  for (const std::size_t extra : {0, 1, 5000})
    all.push_back(64 * chunk_len + extra);  // what goes through memory at once
  all.push_back(200 * chunk_len - 1);
  return all;
}

TEST(Files, ThereAndBack) {
  for (const std::size_t len : lengths()) {
    const Bytes text = painted(len);
    for (const Bytes& with : {key, Bytes(16, 9)}) {
      const File file(sealed_of(text, with));
      EXPECT_EQ(file.all().size(), header_len + len + (len / chunk_len + 1) * 16);
      Opened opened;
      ASSERT_EQ(open(opened, file.fd(), with), WC_OK) << wc_last_error();
      EXPECT_EQ(wc_file_size(opened.get()), len);
      EXPECT_EQ(read_all(opened.get()), text) << len;
    }
  }
}

TEST(Files, NoTwoAreAlike) { EXPECT_NE(sealed_of(painted(9)), sealed_of(painted(9))); }

TEST(Files, ThePositionsCount) {
  const Bytes text = painted(70 * chunk_len + 3);
  for (const int mode : {0, O_APPEND}) {  // pwrite() goes to the end of a file that is appended to
    const File source(text), target(Bytes(5, 1));
    ASSERT_EQ(fcntl(target.fd(), F_SETFL, mode), 0);
    lseek(source.fd(), 3, SEEK_SET);
    lseek(target.fd(), 0, SEEK_END);
    ASSERT_EQ(seal(target, source), WC_OK) << wc_last_error();
    const Bytes made = target.all();
    EXPECT_EQ(Bytes(made.begin(), made.begin() + 5), Bytes(5, 1));
    const File file(Bytes(made.begin() + 5, made.end()));
    Opened opened;
    ASSERT_EQ(open(opened, file.fd()), WC_OK) << wc_last_error();
    EXPECT_EQ(read_all(opened.get()), Bytes(text.begin() + 3, text.end()));
  }
  // Over what a file has: its end stays.
  const File source(text), target(Bytes(text.size() + 70'000, 1));
  ASSERT_EQ(seal(target, source), WC_OK);
  EXPECT_EQ(target.all().size(), text.size() + 70'000);
}

TEST(Files, Pipes) {
  const Bytes text = painted(130 * chunk_len + 1);
  int in[2], out[2];
  ASSERT_EQ(pipe(in) | pipe(out), 0);
  std::thread writer([&] {  // in pieces of an odd length, which a read gets one by one
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t done = write(in[1], text.data() + at, std::min<std::size_t>(60'001, text.size() - at));
      if (done <= 0) break;
      at += static_cast<std::size_t>(done);
    }
    close(in[1]);
  });
  Bytes made;
  std::thread reader([&] {
    Bytes part(4321);
    for (ssize_t got; (got = read(out[0], part.data(), part.size())) > 0;) {
      made.insert(made.end(), part.begin(), part.begin() + got);
    }
  });
  EXPECT_EQ(wc_seal_file(nullptr, out[1], in[0], key.data(), key.size(), context.data(), context.size()), WC_OK)
      << wc_last_error();
  close(out[1]);
  writer.join();
  reader.join();
  close(in[0]);
  close(out[0]);
  const File file(made);
  Opened opened;
  ASSERT_EQ(open(opened, file.fd()), WC_OK) << wc_last_error();
  EXPECT_EQ(read_all(opened.get()), text);
}

TEST(Files, AnywhereByManyThreads) {
  const Bytes text = painted(150 * chunk_len + 77);
  const File file(sealed_of(text));
  Opened opened;
  ASSERT_EQ(open(opened, file.fd()), WC_OK);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 20; ++i) {
        const std::size_t begin = (t * 7919 + i * 104'729) % text.size();
        const std::size_t len = std::min((i % 5) * 30'011, text.size() - begin);
        Bytes found(len + 1, 0xa5);
        EXPECT_EQ(wc_file_read(opened.get(), found.data(), len, WC_MEMORY_HOST, begin, nullptr), WC_OK);
        EXPECT_TRUE(std::equal(found.begin(), found.end() - 1, text.begin() + static_cast<std::ptrdiff_t>(begin)));
        EXPECT_EQ(found.back(), 0xa5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Files, TheHandleHasADescriptorOfItsOwn) {
  Opened opened;
  {
    const File file(sealed_of(painted(99)));
    ASSERT_EQ(open(opened, file.fd()), WC_OK);
  }
  EXPECT_EQ(read_all(opened.get()), painted(99));
}

TEST(Files, AWrongKeyOrContext) {
  const File file(sealed_of(painted(99)));
  Opened opened;
  EXPECT_EQ(open(opened, file.fd(), Bytes(32, 8)), WC_INVALID_TAG);
  EXPECT_NE(std::string(wc_last_error()).find("commitment"), std::string::npos);
  EXPECT_EQ(open(opened, file.fd(), Bytes(16, 7)), WC_INVALID_TAG);
  EXPECT_EQ(open(opened, file.fd(), key, "another"), WC_INVALID_TAG);
  EXPECT_EQ(open(opened, file.fd(), key, ""), WC_INVALID_TAG);
  Bytes changed = file.all();
  changed[3] ^= 1;
  file.put(changed);
  EXPECT_EQ(open(opened, file.fd()), WC_INVALID_TAG);
}

TEST(Files, ACutFile) {
  const Bytes text = painted(3 * chunk_len), whole = sealed_of(text);
  ASSERT_EQ(whole.size(), header_len + 3 * sealed_len + 16);
  for (const std::size_t len :
       {std::size_t{0}, std::size_t{1}, header_len - 1, header_len, header_len + 15, header_len + sealed_len,
        header_len + sealed_len + 15, header_len + 3 * sealed_len, whole.size() - 1}) {
    const File file(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(len)));
    Opened opened;
    EXPECT_EQ(open(opened, file.fd()), WC_READ_FAILED) << len;
    EXPECT_NE(std::string(wc_last_error()).find("truncated"), std::string::npos) << wc_last_error();
  }
  // Where a final chunk may end, its tag says that it does not.
  for (const std::size_t len : {header_len + 16, header_len + 2 * sealed_len + 700}) {
    const File file(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(len)));
    Opened opened;
    EXPECT_EQ(open(opened, file.fd()), WC_INVALID_TAG) << len;
    EXPECT_NE(std::string(wc_last_error()).find("final chunk"), std::string::npos) << wc_last_error();
  }
  // While it is open.
  const File file(whole);
  Opened opened;
  ASSERT_EQ(open(opened, file.fd()), WC_OK);
  ASSERT_EQ(ftruncate(file.fd(), header_len + 2 * sealed_len + 7), 0);
  Bytes found(text.size(), 0xa5);
  EXPECT_EQ(wc_file_read(opened.get(), found.data(), found.size(), WC_MEMORY_HOST, 0, nullptr), WC_READ_FAILED);
  EXPECT_EQ(found, Bytes(found.size(), 0));
  found.resize(chunk_len);
  EXPECT_EQ(wc_file_read(opened.get(), found.data(), found.size(), WC_MEMORY_HOST, chunk_len, nullptr), WC_OK);
  EXPECT_TRUE(std::equal(found.begin(), found.end(), text.begin() + chunk_len)) << "what is there can be read";
}

TEST(Files, ADamagedOrMovedChunk) {
  const Bytes text = painted(4 * chunk_len + 9), whole = sealed_of(text);
  const auto chunk_at = [&](Bytes& file, std::size_t i) {
    return file.begin() + static_cast<std::ptrdiff_t>(header_len + i * sealed_len);
  };
  Bytes damaged = whole, swapped = whole;
  chunk_at(damaged, 2)[100] ^= 1;
  std::swap_ranges(chunk_at(swapped, 2), chunk_at(swapped, 3), chunk_at(swapped, 3));
  for (const Bytes& content : {damaged, swapped}) {
    const File file(content);
    Opened opened;
    ASSERT_EQ(open(opened, file.fd()), WC_OK);
    Bytes found(5000, 0xa5);
    EXPECT_EQ(wc_file_read(opened.get(), found.data(), found.size(), WC_MEMORY_HOST, 2 * chunk_len + 11, nullptr),
              WC_INVALID_TAG);
    EXPECT_NE(std::string(wc_last_error()).find("chunk 2"), std::string::npos) << wc_last_error();
    EXPECT_EQ(found, Bytes(found.size(), 0));
    EXPECT_EQ(wc_file_read(opened.get(), found.data(), found.size(), WC_MEMORY_HOST, 77, nullptr), WC_OK);
    EXPECT_TRUE(std::equal(found.begin(), found.end(), text.begin() + 77));
  }
}

TEST(Files, SourcesAndTargetsThatFail) {
  const Bytes text = painted(100 * chunk_len);
  const File source(text), target;
  const auto sealed = [&](int to, int from) {
    return wc_seal_file("cpu", to, from, key.data(), key.size(), nullptr, 0);
  };
  const int full = ::open("/dev/full", O_WRONLY), folder = ::open("/", O_RDONLY), null = ::open("/dev/null", O_RDWR);
  EXPECT_EQ(sealed(full, source.fd()), WC_WRITE_FAILED);
  EXPECT_NE(std::string(wc_last_error()).find("No space left"), std::string::npos) << wc_last_error();
  EXPECT_EQ(sealed(target.fd(), folder), WC_READ_FAILED);
  EXPECT_NE(std::string(wc_last_error()).find("directory"), std::string::npos) << wc_last_error();
  EXPECT_EQ(sealed(1 << 20, source.fd()), WC_WRITE_FAILED);
  EXPECT_EQ(sealed(null, 1 << 20), WC_READ_FAILED);
  EXPECT_EQ(sealed(null, null), WC_OK) << "a file of no bytes";
  Opened opened;
  EXPECT_EQ(open(opened, 1 << 20), WC_READ_FAILED);
  EXPECT_EQ(open(opened, folder), WC_READ_FAILED);
  EXPECT_EQ(lseek(source.fd(), 5, SEEK_SET), 5);
  EXPECT_NE(open(opened, source.fd()), WC_OK);
  EXPECT_EQ(lseek(source.fd(), 0, SEEK_CUR), 5) << "positions stay";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(open(opened, ends[0]), WC_READ_FAILED) << "it has no places";
  close(ends[0]);
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(sealed(ends[1], source.fd()), WC_WRITE_FAILED);
  std::signal(SIGPIPE, before);
  for (const int file : {full, folder, null, ends[1]}) close(file);
}

// While many threads write.
TEST(Files, ADiskThatIsFullMeanwhile) {
  const Bytes text = painted(300 * chunk_len);
  const File source(text), target;
  rlimit was{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &was), 0);
  const rlimit least{100 * chunk_len, was.rlim_max};
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &least), 0);
  const wc_status status = seal(target, source);
  const std::string error = wc_last_error();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &was), 0);
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(status, WC_WRITE_FAILED);
  EXPECT_NE(error.find("File too large"), std::string::npos) << error;
  const Bytes left = target.all();
  ASSERT_GE(left.size(), header_len);
  ASSERT_LE(left.size(), least.rlim_cur);
  Opened opened;
  EXPECT_NE(open(opened, target.fd()), WC_OK) << "no part of a file is one";
}

TEST(Files, WhatCannotBeRight) {
  const File source(painted(9)), target, file(sealed_of(painted(9)));
  const auto refused = [](wc_status status, const char* text) {
    EXPECT_EQ(status, WC_INVALID_ARGUMENT);
    EXPECT_NE(std::string(wc_last_error()).find(text), std::string::npos) << wc_last_error();
  };
  for (const std::size_t len : {0, 15, 24, 33}) {
    refused(seal(target, source, Bytes(len, 1)), "16 or 32 bytes");
    Opened opened;
    refused(open(opened, file.fd(), Bytes(len, 1)), "16 or 32 bytes");
  }
  refused(wc_seal_file(nullptr, target.fd(), source.fd(), nullptr, 32, nullptr, 0), "key is a null pointer");
  refused(wc_seal_file(nullptr, target.fd(), source.fd(), key.data(), 32, nullptr, 1), "context is a null pointer");
  refused(wc_seal_file(nullptr, target.fd(), source.fd(), key.data(), SIZE_MAX, nullptr, 0), "key");
  EXPECT_EQ(target.all().size(), 0u);
  EXPECT_EQ(wc_file_size(nullptr), 0u);
  refused(seal(source, source), "source and target are one file");
  EXPECT_EQ(source.all(), painted(9));
  EXPECT_EQ(wc_seal_file("none", target.fd(), source.fd(), key.data(), 32, nullptr, 0), WC_ENGINE_UNAVAILABLE);
  EXPECT_TRUE(target.all().empty());
  refused(wc_open_file(nullptr, nullptr, file.fd(), key.data(), 32, nullptr, 0), "out is a null pointer");
  Opened opened;
  ASSERT_EQ(open(opened, file.fd()), WC_OK);
  Bytes found(10, 0xa5);
  refused(wc_file_read(nullptr, found.data(), 1, WC_MEMORY_HOST, 0, nullptr), "file is a null pointer");
  refused(wc_file_read(opened.get(), nullptr, 1, WC_MEMORY_HOST, 0, nullptr), "out is a null pointer");
  refused(wc_file_read(opened.get(), found.data(), 10, WC_MEMORY_HOST, 0, nullptr), "leaves the file");
  refused(wc_file_read(opened.get(), found.data(), 1, WC_MEMORY_HOST, 9, nullptr), "leaves the file");
  refused(wc_file_read(opened.get(), found.data(), 2, WC_MEMORY_HOST, UINT64_MAX, nullptr), "leaves the file");
  refused(wc_file_read(opened.get(), found.data(), SIZE_MAX, WC_MEMORY_HOST, 0, nullptr), "out");
  const volatile int unknown = 7;
  const auto nowhere = static_cast<wc_memory>(unknown);
  refused(wc_file_read(opened.get(), found.data(), 1, nowhere, 0, nullptr), "memory");
  EXPECT_EQ(wc_file_read(opened.get(), nullptr, 0, WC_MEMORY_HOST, 9, nullptr), WC_OK);
  EXPECT_EQ(found, Bytes(10, 0xa5));
  EXPECT_STREQ(wc_status_text(WC_WRITE_FAILED), "write failed");
  wc_file_free(nullptr);
}

}  // namespace
