// SPDX-License-Identifier: Apache-2.0
#include "file_plain.hpp"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases.hpp"
#include "engine/device_engine.hpp"
#include "flow/file/cobblestone.hpp"
#include "flow/file/read_chunks.hpp"
#include "flow/file/write_chunks.hpp"
#include "unnamed_file.hpp"

namespace {

using namespace warpcipher;
using conformance::must;
using conformance::random_below;
using conformance::random_bytes;

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint8_t guard = 0xa5;
constexpr std::size_t margin = 40;  // of `out`, on both sides of what is read

class PlainFile {
 public:
  explicit PlainFile(std::size_t size) : content_(random_bytes(size)) { file_.write(content_, 0); }

  void truncate(std::size_t size) const { file_.truncate(size); }
  void use_no_descriptor() { is_file_ = false; }

  // The content of device memory after a read of [begin, begin + len), with margins; fills in what became of it.
  Bytes read(int device, std::size_t begin, std::size_t len, const ReadOptions& options,
             std::optional<ReadFailure>& failure, std::string& error) const {
    DeviceEngine& engine = cuda_engine();
    const SelectedDevice scope(engine, device);
    const std::size_t size = len + 2 * margin;
    void* memory = nullptr;
    must(cudaMalloc(&memory, size), "cudaMalloc");
    must(cudaMemset(memory, guard, size), "cudaMemset");
    auto* const out = static_cast<std::uint8_t*>(memory) + margin;
    try {
      failure =
          read_plain("cuda", {is_file_ ? file_.descriptor() : -1, begin, Memory::device, {out, len}}, nullptr, options);
    } catch (const std::exception& thrown) {
      error = thrown.what();
    }
    Bytes got(size);
    must(cudaMemcpy(got.data(), memory, size, cudaMemcpyDeviceToHost), "cudaMemcpy");
    must(cudaFree(memory), "cudaFree");
    return got;
  }

  Bytes expected(std::size_t begin, std::size_t len) const {
    Bytes all(len + 2 * margin, guard);
    std::copy_n(content_.begin() + static_cast<std::ptrdiff_t>(begin), len, all.begin() + margin);
    return all;
  }

 private:
  const Bytes content_;
  const conformance::UnnamedFile file_;
  bool is_file_ = true;
};

int report(bool is_right, const std::string& what) {
  const bool gave_back = PinnedBudget::in_use() == 0;
  if (!is_right) std::printf("bytes of a plain file: %s\n", what.c_str());
  if (!gave_back) std::printf("bytes of a plain file: page-locked memory is kept: %s\n", what.c_str());
  return is_right && gave_back ? 0 : 1;
}

ReadOptions random_options() {
  const std::size_t threads[] = {0, 1, 2, 5, SIZE_MAX / 2 + 1}, pieces[] = {1000, 5000, 65536, 0, SIZE_MAX / 2 + 1};
  ReadOptions options;
  options.threads = threads[random_below(5)];
  options.piece_len = pieces[random_below(5)];
  return options;
}

int test_ranges(bool quick) {
  int failures = 0;
  for (unsigned i = 0; i < (quick ? 12 : 100); ++i) {
    const std::size_t size = i == 0 ? std::size_t{40} << 20 : 1 + random_below(quick ? 100'000 : 3'000'000);
    const PlainFile file(size);
    const std::size_t begin = i == 0 ? 1 : random_below(size), len = i == 0 ? size - 1 : random_below(size - begin + 1);
    const int device = static_cast<int>(i % 2) * (cuda_engine().devices().size() > 1 ? 1 : 0);
    std::optional<ReadFailure> failure;
    std::string error;
    const Bytes got = file.read(device, begin, len, i == 0 ? ReadOptions{} : random_options(), failure, error);
    failures += report(!failure && error.empty() && got == file.expected(begin, len),
                       "range " + std::to_string(i) + ": other bytes" + error);
  }
  return failures;
}

int test_failures(bool quick) {
  int failures = 0;
  for (unsigned i = 0; i < (quick ? 8 : 60); ++i) {
    const std::size_t size = 1 + random_below(200'000);
    PlainFile file(size);
    const std::size_t end = random_below(size);
    if (i % 2 == 0) {
      file.truncate(end);
    } else {
      file.use_no_descriptor();
    }
    std::optional<ReadFailure> failure;
    std::string error;
    file.read(0, 0, size, random_options(), failure, error);
    const bool is_right = i % 2 == 0 ? failure && failure->kind == ReadFailure::Kind::ended && failure->position == end
                                     : failure && failure->kind == ReadFailure::Kind::error && failure->error == EBADF;
    failures += report(is_right && error.empty(), "failure " + std::to_string(i) + " is reported otherwise" + error);
  }
  PlainFile file(100'000);
  ReadOptions options;
  options.piece_len = 1000;
  options.threads = 1;
  options.check = [calls = 0](bool) mutable {
    if (++calls == 3) throw std::runtime_error("interrupted");
  };
  std::optional<ReadFailure> failure;
  std::string error;
  file.read(0, 0, 100'000, options, failure, error);
  return failures + report(error == "interrupted", "an exception of the caller's is lost");
}

// Texts of device and host memory, written to a file.
int test_writes(bool quick) {
  int failures = 0;
  for (unsigned i = 0; i < (quick ? 8 : 60); ++i) {
    const Bytes text = random_bytes(i == 0 ? std::size_t{40} << 20 : 1 + random_below(quick ? 100'000 : 3'000'000));
    void* memory = nullptr;
    must(cudaMalloc(&memory, text.size()), "cudaMalloc");
    must(cudaMemcpy(memory, text.data(), text.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // a short copy from pageable memory returns earlier
    std::vector<TextPart> parts;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t len = std::min(text.size() - begin, 1 + random_below(text.size()));
      const bool on_device = parts.empty() || random_below(3) != 0;
      parts.push_back({(on_device ? static_cast<const std::uint8_t*>(memory) : text.data()) + begin, len,
                       on_device ? Memory::device : Memory::host});
      begin += len;
    }
    const ReadOptions random = random_options();
    WriteOptions options;
    if (i != 0) {
      options.threads = random.threads;
      options.piece_len = random.piece_len;
    }
    const conformance::UnnamedFile file;
    const auto failure = write_plain("cuda", file.descriptor(), parts, options);
    Bytes got(text.size());
    const ssize_t count = pread(file.descriptor(), got.data(), got.size(), 0);
    must(cudaFree(memory), "cudaFree");
    failures += report(!failure && count == static_cast<ssize_t>(text.size()) && got == text,
                       "write " + std::to_string(i) + ": other bytes");
  }
  return failures;
}

// The bytes that a read of device memory leaves there.
Bytes read_to_device(const CobblestoneFile& file, std::size_t begin, std::size_t len,
                     std::optional<ReadFailure>& failure) {
  void* memory = nullptr;
  must(cudaMalloc(&memory, len + 1), "cudaMalloc");
  must(cudaMemset(memory, guard, len + 1), "cudaMemset");
  failure = file.read({static_cast<std::uint8_t*>(memory), len}, Memory::device, begin, nullptr);
  Bytes got(len + 1);
  must(cudaMemcpy(got.data(), memory, len + 1, cudaMemcpyDeviceToHost), "cudaMemcpy");
  must(cudaFree(memory), "cudaFree");
  return got;
}

// Files that the device encrypts, as wc_seal_file(), and reads of them into device memory, as wc_file_read().
int test_sealed_files(bool quick) {
  constexpr std::size_t chunk = Cobblestone::chunk_len;
  const Bytes key = random_bytes(32), context = random_bytes(5);
  int failures = 0;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, chunk - 1, chunk, chunk + 1, 5 * chunk, (quick ? 40 : 2000) * chunk + 77}) {
    const std::string what = "sealed file of " + std::to_string(size) + ": ";
    const Bytes text = random_bytes(size);
    const conformance::UnnamedFile plain, sealed;
    plain.write(text, 0);
    const auto unsealed = seal_cobblestone("cuda", sealed.descriptor(), plain.descriptor(), key, context);
    Bytes whole(size);
    const CobblestoneFile by_reference("reference", sealed.descriptor(), key, context);
    const auto unread = by_reference.read(whole, Memory::host, 0, nullptr);
    failures += report(!unsealed && !unread && whole == text, what + "other bytes for engine reference");

    const CobblestoneFile file("cuda", sealed.descriptor(), key, context);
    const std::size_t begin = random_below(size + 1), len = random_below(size - begin + 1);
    std::optional<ReadFailure> failure;
    Bytes expected(text.begin() + static_cast<std::ptrdiff_t>(begin),
                   text.begin() + static_cast<std::ptrdiff_t>(begin + len));
    expected.push_back(guard);
    failures += report(read_to_device(file, begin, len, failure) == expected && !failure, what + "other bytes");
    if (size <= chunk) continue;

    std::uint8_t byte = 0;
    const std::size_t place = Cobblestone::header_len + 9;
    failures += report(pread(sealed.descriptor(), &byte, 1, place) == 1, what + "cannot be read");
    sealed.write({static_cast<std::uint8_t>(byte ^ 1)}, place);
    Bytes zeros(size, 0);
    zeros.push_back(guard);
    const Bytes got = read_to_device(file, 0, size, failure);
    failures += report(failure && failure->kind == ReadFailure::Kind::bad_tag && failure->chunk == 0 && got == zeros,
                       what + "a damaged chunk leaves text");
  }
  return failures;
}

}  // namespace

int test_file_plain(bool quick) {
  const int failures = test_ranges(quick) + test_failures(quick) + test_writes(quick) + test_sealed_files(quick);
  std::printf("%-16s      reads and writes of files %s\n", "plain", failures == 0 ? "ok" : "FAILED");
  return failures;
}
