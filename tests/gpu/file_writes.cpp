// SPDX-License-Identifier: Apache-2.0
#include "file_writes.hpp"

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "cases.hpp"
#include "core/error.hpp"
#include "engine/device_engine.hpp"
#include "flow/file/read_chunks.hpp"
#include "flow/file/write_chunks.hpp"

namespace {

using namespace warpcipher;
using conformance::must;
using conformance::random_below;
using conformance::random_bytes;
using conformance::random_key;

using Bytes = std::vector<std::uint8_t>;

struct Free {
  void operator()(std::uint8_t* memory) const { cudaFree(memory); }
};

// Chunks with a text in parts, and the file that they are written to.
class Writes {
 public:
  // first_len: of the first chunk; 0: as of the others.
  Writes(const Algorithm& algorithm, bool quick, std::size_t first_len = 0) {
    // Files of a tmpfs are mapped, others written to.
    char in_memory[] = "/dev/shm/warpcipher-writes-XXXXXX", on_disk[] = "/tmp/warpcipher-writes-XXXXXX";
    char* const name = random_below(2) == 0 ? in_memory : on_disk;
    descriptor_ = mkstemp(name);
    if (descriptor_ < 0) throw std::runtime_error("mkstemp");
    unlink(name);
    const std::size_t edges[] = {0, 1, 15, 16, 17, 300, 4080, 4096, 4097, 16384};
    const bool gaps = random_below(2) == 0;
    tags_apart_ = random_below(3) == 0;
    const std::size_t keys = random_below(2) == 0 ? 1 : 3;
    for (std::size_t k = 0; k < keys; ++k) keys_.push_back(&random_key(algorithm));
    std::uint64_t position = random_below(100);
    for (std::size_t count = 1 + random_below(quick ? 12 : 200); count != 0; --count) {
      lengths_.push_back(lengths_.empty() && first_len != 0 ? first_len : edges[random_below(10)]);
      file_offsets_.push_back(position);
      key_index_.push_back(static_cast<std::uint32_t>(random_below(keys)));
      const Bytes iv = random_bytes(12);
      ivs_.insert(ivs_.end(), iv.begin(), iv.end());
      position += lengths_.back() + (tags_apart_ ? 0 : 16) + (gaps ? random_below(50) : 0);
      text_len_ += lengths_.back();
    }
    if (tags_apart_) tags_.resize(16 * lengths_.size());
    text_ = random_bytes(text_len_);
    for (std::size_t begin = 0, len = 0; begin < text_len_; begin += len) {
      len = std::min<std::size_t>(1 + random_below(20000), text_len_ - begin);
      add_part(begin, len);
    }
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // the copies: other streams do not wait for them
  }
  Writes(const Writes&) = delete;
  Writes& operator=(const Writes&) = delete;
  ~Writes() { close(descriptor_); }

  std::optional<WriteFailure> write(const WriteOptions& options) { return write_to(descriptor_, options); }

  std::optional<WriteFailure> write_to(int descriptor, const WriteOptions& options) {
    ChunksToWrite c;
    c.descriptor = descriptor;
    c.parts = parts_;
    c.count = lengths_.size();
    c.keys = keys_;
    if (keys_.size() > 1) c.key_index = key_index_;
    c.file_offsets = file_offsets_;
    c.lengths = lengths_;
    c.ivs = ivs_;
    c.iv_len = 12;
    c.tags = tags_;
    c.tag_len = 16;
    return write_chunks("cuda", c, options);
  }

  // The bytes that the host reads of the file.
  Bytes read() {
    Bytes out(text_len_);
    FileChunks c;
    c.source.descriptor = descriptor_;
    c.count = lengths_.size();
    c.keys = keys_;
    if (keys_.size() > 1) c.key_index = key_index_;
    c.file_offsets = file_offsets_;
    c.lengths = lengths_;
    c.ivs = ivs_;
    c.iv_len = 12;
    c.tags = tags_;
    c.tag_len = 16;
    c.out = out;
    const auto failure = read_chunks("cpu", c, nullptr, {});
    if (failure) throw std::runtime_error("chunk " + std::to_string(failure->chunk) + " cannot be read back");
    return out;
  }

  void forget_a_byte() { parts_.back().len += 1; }

  const Bytes& text() const { return text_; }
  std::uint64_t file_size() const { return static_cast<std::uint64_t>(lseek(descriptor_, 0, SEEK_END)); }

 private:
  void add_part(std::size_t begin, std::size_t len) {
    const std::uint8_t* const text = text_.data() + begin;
    if (random_below(4) == 0) {
      parts_.push_back({text, len, Memory::host});
      return;
    }
    void* memory = nullptr;
    must(cudaMalloc(&memory, len), "cudaMalloc");
    memory_.emplace_back(static_cast<std::uint8_t*>(memory));
    must(cudaMemcpy(memory, text, len, cudaMemcpyHostToDevice), "cudaMemcpy");
    parts_.push_back({memory_.back().get(), len, Memory::device});
  }

  int descriptor_;
  bool tags_apart_;
  std::vector<const Key*> keys_;
  std::vector<std::uint32_t> key_index_;
  std::vector<std::uint64_t> file_offsets_, lengths_;
  Bytes ivs_, tags_, text_;
  std::size_t text_len_ = 0;
  std::vector<TextPart> parts_;
  std::vector<std::unique_ptr<std::uint8_t, Free>> memory_;
};

WriteOptions random_options() {
  const std::size_t threads[] = {0, 1, 2, 5, SIZE_MAX / 2 + 1}, pieces[] = {1, 5000, 20000, 0, SIZE_MAX};
  WriteOptions options;
  options.threads = threads[random_below(5)];
  options.piece_len = pieces[random_below(5)];
  return options;
}

// The error, or nothing.
std::string run_layout(const Algorithm& algorithm, bool quick) {
  Writes writes(algorithm, quick);
  try {
    if (const auto failure = writes.write(random_options())) return "error " + std::to_string(failure->error);
    return writes.read() == writes.text() ? "" : "other bytes";
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string run_failures(const Algorithm& algorithm) {
  Writes writes(algorithm, true, 4096);
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  const auto failure = writes.write_to(full, {});
  close(full);
  if (!failure || failure->error != ENOSPC) return "a full disk is not reported";
  WriteOptions interrupted;
  interrupted.threads = 1;
  interrupted.check = [](bool) { throw std::runtime_error("interrupted"); };
  try {
    writes.write(interrupted);
    return "an exception of the caller's is lost";
  } catch (const std::runtime_error& error) {
    if (std::string(error.what()) != "interrupted") return error.what();
  }
  writes.forget_a_byte();
  const std::uint64_t size = writes.file_size();
  try {
    writes.write({});
    return "parts of another length than the chunks are taken";
  } catch (const Error& error) {
    if (error.status() != Status::invalid_argument) return error.what();
  }
  return writes.file_size() == size ? "" : "something was written";
}

}  // namespace

int test_file_writes(bool quick, const std::string& only, const std::function<bool()>& is_mine) {
  int failures = 0;
  for (const char* name : {"aes-128-gcm", "aes-256-gcm"}) {
    if ((!only.empty() && only != name) || !is_mine()) continue;
    const Algorithm& algorithm = find_algorithm(name);
    const unsigned layouts = quick ? 12 : 200;
    int failed = 0;
    for (unsigned i = 0; i <= layouts; ++i) {
      const std::string what = i == layouts ? run_failures(algorithm) : run_layout(algorithm, quick);
      if (what.empty()) continue;
      ++failed;
      std::printf("%s, chunks written to a file, layout %u: %s\n", name, i, what.c_str());
    }
    std::printf("%-16s %4u writes of files %s\n", name, layouts + 1, failed == 0 ? "ok" : "FAILED");
    std::fflush(stdout);
    failures += failed;
  }
  return failures;
}
