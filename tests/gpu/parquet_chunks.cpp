// SPDX-License-Identifier: Apache-2.0
#include "parquet_chunks.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "../unit/parquet_chunks.hpp"
#include "cases.hpp"
#include "engine/device_engine.hpp"
#include "parquet/open_chunks.hpp"
#include "unnamed_file.hpp"

namespace {

using namespace warpcipher;
using conformance::must;
using parquet::ChunksToOpen;
using parquet::OpenResult;
using parquet::SealedChunk;
using parquet::SealedPages;

using Text = std::vector<std::uint8_t>;

constexpr std::uint8_t guard = 0xa5;

// Chunks of several keys with a plain one between them, in a file that begins with other bytes.
class TestFile {
 public:
  explicit TestFile(bool counter) : counter_(counter), text_(9, guard) {
    const auto padding = [](std::size_t page) { return page % 3; };
    add(SealedPages(keys_, {100, 70'000, 0, 5000, 1}, 1, true, counter, padding));
    for (const std::size_t size : {5000u, 300u}) {  // that follow each other
      chunks_.push_back({text_.size(), size});
      text_.resize(text_.size() + size, static_cast<std::uint8_t>(size));
    }
    add(SealedPages(keys_, std::vector<std::size_t>(300, 1000), 2, false, counter));
    add(SealedPages(long_keys_, {300'000, 20}, 3, false, counter));
    chunks_.push_back({text_.size(), 0, 5, 4, true});
    file_.write(text_, 0);
  }

  std::size_t chunks() const { return chunks_.size(); }
  std::uint64_t position(std::size_t chunk) const { return chunks_[chunk].position; }
  std::uint64_t end(std::size_t chunk) const { return chunks_[chunk].position + chunks_[chunk].size; }
  void change(std::uint64_t at) {
    text_[at] ^= 1;
    file_.write({text_[at]}, at);
  }
  void truncate(std::uint64_t size) const { file_.truncate(size); }

  // The content of memory then.
  Text open(Memory memory, bool in_file, std::uint64_t longest_page, OpenResult& result) const {
    const Key* const heads[] = {&keys_.gcm, &long_keys_.gcm};
    const Key* const pages[] = {counter_ ? &keys_.ctr : &keys_.gcm, counter_ ? &long_keys_.ctr : &long_keys_.gcm};
    const std::vector<std::uint32_t> index{0, 0, 0, 0, 1, 0};
    Text out(text_.size(), guard);
    ChunksToOpen wanted{{}, chunks_, index, heads, pages, parquet::prefix, out, memory, longest_page};
    if (in_file) {
      wanted.source.descriptor = file_.descriptor();
    } else {
      wanted.source.bytes = text_;
    }
    if (memory == Memory::host) {
      result = open_chunks("cpu", wanted, nullptr, 0, {});
      return out;
    }
    void* there = nullptr;
    must(cudaMalloc(&there, out.size()), "cudaMalloc");
    must(cudaMemset(there, guard, out.size()), "cudaMemset");
    wanted.out = {static_cast<std::uint8_t*>(there), out.size()};
    result = open_chunks("auto", wanted, nullptr, 0, {});
    must(cudaMemcpy(out.data(), there, out.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    must(cudaFree(there), "cudaFree");
    return out;
  }

 private:
  void add(const SealedPages& sealed) {
    chunks_.push_back(sealed.at(text_.size()));
    text_.insert(text_.end(), sealed.data.begin(), sealed.data.end());
  }

  const bool counter_;
  const parquet::TestKeys keys_, long_keys_{32};
  Text text_;
  std::vector<SealedChunk> chunks_;
  const conformance::UnnamedFile file_;
};

int report(bool is_right, const std::string& what) {
  if (!is_right) std::printf("Parquet's chunks: %s\n", what.c_str());
  return is_right ? 0 : 1;
}

// Pages of more bytes than that go another way: of all, of some, of none.
constexpr std::uint64_t longest_pages[] = {10, 4000, most_device_chunk_len};

int test_same_as_on_the_host() {
  int failures = 0;
  for (const bool counter : {false, true}) {
    const TestFile file(counter);
    OpenResult host, device;
    const Text expected = file.open(Memory::host, true, 0, host);
    for (const std::uint64_t longest : longest_pages) {
      for (const bool in_file : {false, true}) {
        const Text got = file.open(Memory::device, in_file, longest, device);
        bool is_right = !host.failure && !device.failure && got == expected && device.chunks.size() == file.chunks();
        for (std::size_t i = 0; is_right && i < file.chunks(); ++i) {
          is_right = device.chunks[i].out == host.chunks[i].out && device.chunks[i].size == host.chunks[i].size &&
                     device.chunks[i].pages.size() == host.chunks[i].pages.size();
        }
        failures += report(is_right, std::string(counter ? "CTR" : "GCM") + ": other bytes than on the host");
      }
    }
  }
  return failures;
}

int test_failures() {
  int failures = 0;
  const auto is_empty = [](const Text& out) {
    return std::all_of(out.begin(), out.end(), [](std::uint8_t byte) { return byte == 0; });
  };
  for (const std::uint64_t longest : longest_pages) {
    for (const std::size_t chunk : {0u, 3u, 4u}) {
      TestFile file(false);
      OpenResult result;
      for (const bool is_head : {false, true}) {  // what fails first comes second
        file.change(is_head ? file.position(chunk) + 20 : file.end(chunk) - 1);
        const Text out = file.open(Memory::device, chunk != 3, longest, result);
        failures += report(result.failure && result.failure->kind == parquet::OpenFailure::Kind::bad_tag &&
                               result.failure->chunk == chunk && (result.failure->module == 0) == is_head,
                           "a change is reported otherwise");
        failures += report(is_empty(out), "text is left");
      }
    }
    TestFile file(true);
    OpenResult result;
    file.truncate(file.end(1) - 1);
    const Text out = file.open(Memory::device, true, longest, result);
    failures += report(result.failure && result.failure->kind == parquet::OpenFailure::Kind::file && is_empty(out),
                       "a file that ends");
  }
  return failures;
}

}  // namespace

int test_parquet_chunks() {
  const int failures = test_same_as_on_the_host() + test_failures();
  std::printf("%-16s      chunks of Parquet files %s\n", "parquet", failures == 0 ? "ok" : "FAILED");
  return failures;
}
