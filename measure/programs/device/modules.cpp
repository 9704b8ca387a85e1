// SPDX-License-Identifier: Apache-2.0
// Batches of long and short messages by turns, whose texts begin at any byte: all modules of encrypted Parquet, a
// header of some 30 bytes before each page. Decrypted from one buffer in device memory to another, columns there too.
// The time is from the call until the device is done; GB/s of plaintext. Samples of the text and all tags are checked.
// What the kernels alone take: run with --once under a profiler (ncu --metrics gpu__time_duration.sum).
//
//   device_modules [--once] [--mib N] [--header BYTES] [--aad BYTES] [--apart BYTES] [--repeat N] [PAGE ...]
//
// PAGE: bytes of a page; without one 8 KiB, 64 KiB and 1 MiB. --mib: of all pages, 8192. --header: 31; 0: pages alone.
// --aad: of each message, 20. --apart: what lies between texts besides their tags: 16, a length and a nonce.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "buffers.hpp"
#include "core/bytes.hpp"
#include "dispatch/columns.hpp"
#include "dispatch/run.hpp"
#include "engine/cuda/engine.hpp"

namespace {

using namespace warpcipher;
using bench::must;
using bench::read;
using Clock = std::chrono::steady_clock;

constexpr std::size_t tag_len = 16;
constexpr std::size_t iv_len = 12;
constexpr std::size_t samples = 64;
constexpr std::size_t sample_len = 65536;

struct Options {
  bool once = false;
  std::size_t mib = 8192;
  std::size_t header = 31;
  std::size_t aad = 20;
  std::size_t apart = 16;
  int repeat = 7;
};

// Memory of the device.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t len) : len_(len) {
    void* memory = nullptr;
    must(cudaMalloc(&memory, std::max<std::size_t>(len, 1)), "cudaMalloc");
    data_ = static_cast<std::uint8_t*>(memory);
  }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  ~DeviceBytes() { cudaFree(data_); }

  template <class T>
  static std::unique_ptr<DeviceBytes> copy_of(const std::vector<T>& values) {
    auto copy = std::make_unique<DeviceBytes>(values.size() * sizeof(T));
    must(cudaMemcpy(copy->data_, values.data(), copy->len_, cudaMemcpyHostToDevice), "cudaMemcpy");
    return copy;
  }

  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data_), len_ / sizeof(T)};
  }

 private:
  std::size_t len_;
  std::uint8_t* data_ = nullptr;
};

class Modules {
 public:
  Modules(const Options& options, std::size_t page)
      : options_(options), page_(page), pages_((options.mib << 20) / page) {
    const std::size_t of_page = options.header != 0 ? 2 : 1;
    count_ = of_page * pages_;
    std::vector<std::uint64_t> plain(count_), sealed(count_), aad_offsets(count_), aad_lengths(count_, options.aad);
    std::vector<std::uint64_t> lengths(count_), sealed_lengths(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      lengths[i] = i % of_page + 1 == of_page ? page : options.header;
      sealed_lengths[i] = lengths[i] + tag_len;
      plain[i] = plain_len_;
      sealed[i] = sealed_len_ + options.apart;
      aad_offsets[i] = options.aad * i;
      plain_len_ += lengths[i];
      sealed_len_ = sealed[i] + sealed_lengths[i];
    }
    std::vector<std::uint8_t> ivs(iv_len * count_), aad(options.aad * count_);
    for (std::size_t i = 0; i < count_; ++i) {
      store_be64(ivs.data() + iv_len * i, 0x9e3779b97f4a7c15 * (i + 1));
      if (options.aad >= 8) store_be64(aad.data() + options.aad * i, i);
    }
    plain_ = DeviceBytes::copy_of(plain);
    sealed_ = DeviceBytes::copy_of(sealed);
    lengths_ = DeviceBytes::copy_of(lengths);
    sealed_lengths_ = DeviceBytes::copy_of(sealed_lengths);
    aad_offsets_ = DeviceBytes::copy_of(aad_offsets);
    aad_lengths_ = DeviceBytes::copy_of(aad_lengths);
    ivs_ = DeviceBytes::copy_of(ivs);
    aad_ = DeviceBytes::copy_of(aad);
    results_ = std::make_unique<DeviceBytes>(count_ * sizeof(Result));
    text_ = std::make_unique<DeviceBytes>(plain_len_);
    cipher_text_ = std::make_unique<DeviceBytes>(sealed_len_);
    must(cudaMemset(text_->as<std::uint8_t>().data(), 0, plain_len_), "cudaMemset");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  // False: something is wrong.
  bool measure() {
    make_text();
    std::vector<std::vector<std::uint8_t>> expected;
    for (std::size_t i = 0; i < samples; ++i) expected.push_back(sample(i));
    run(Direction::encrypt);
    must(cudaStreamSynchronize(native()), "cudaStreamSynchronize");  // cudaMemset() does not wait for it
    must(cudaMemset(text_->as<std::uint8_t>().data(), 0, plain_len_), "cudaMemset");
    std::vector<double> call, all;
    for (int i = 0; i < (options_.once ? 1 : options_.repeat + 1); ++i) {
      must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      const auto start = Clock::now();
      const Status status = run(Direction::decrypt);
      const auto returned = Clock::now();
      must(cudaStreamSynchronize(native()), "cudaStreamSynchronize");
      const auto done = Clock::now();
      if (status != Status::ok) throw std::runtime_error("a tag is wrong");
      if (i == 0 && !options_.once) continue;
      const auto ms = [](auto from, auto to) { return std::chrono::duration<double, std::milli>(to - from).count(); };
      call.push_back(ms(start, returned));
      all.push_back(ms(start, done));
    }
    bool good = true;
    for (std::size_t i = 0; i < samples; ++i) good = good && sample(i) == expected[i];
    std::sort(call.begin(), call.end());
    std::sort(all.begin(), all.end());
    const double median = all[all.size() / 2];
    std::printf(
        "pages of %7zu, headers of %2zu, AAD %2zu, apart %2zu: %8zu messages, call %7.2f  all %7.2f ms (%.2f to %.2f)"
        "  %6.1f GB/s  %s\n",
        page_, options_.header, options_.aad, options_.apart, count_, call[call.size() / 2], median, all.front(),
        all.back(), static_cast<double>(plain_len_) / 1e6 / median, good ? "checked" : "WRONG OUTPUT");
    std::fflush(stdout);
    return good;
  }

 private:
  cudaStream_t native() const { return static_cast<cudaStream_t>(stream_.stream); }

  // A key stream.
  void make_text() {
    const std::vector<std::uint8_t> bytes(16, 3);
    const Key key(find_algorithm("aes-128-ctr"), bytes);
    const std::vector<std::uint8_t> iv(16, 5);
    Message m;
    m.key = &key;
    m.memory = Memory::device;
    m.in = m.out = text_->as<std::uint8_t>().data();
    m.in_len = m.out_len = plain_len_;
    m.iv = iv.data();
    m.iv_len = iv.size();
    Result result;
    warpcipher::run("cuda", {&m, 1}, {&result, 1}, stream_.stream);
    must(cudaStreamSynchronize(native()), "cudaStreamSynchronize");
  }

  std::vector<std::uint8_t> sample(std::size_t number) const {
    const std::size_t len = std::min(sample_len, plain_len_);
    const std::size_t begin = (plain_len_ - len) / (samples - 1) * number;
    return read(text_->as<std::uint8_t>().data() + begin, len);
  }

  Status run(Direction direction) {
    const bool encrypts = direction == Direction::encrypt;
    const auto plain = plain_->as<const std::uint64_t>(), sealed = sealed_->as<const std::uint64_t>();
    Columns columns;
    columns.direction = direction;
    columns.memory = columns.columns_memory = Memory::device;
    columns.count = count_;
    columns.keys = keys_;
    columns.in = (encrypts ? text_ : cipher_text_)->as<const std::uint8_t>();
    columns.out = (encrypts ? cipher_text_ : text_)->as<std::uint8_t>();
    columns.in_offsets = encrypts ? plain : sealed;
    columns.out_offsets = encrypts ? sealed : plain;
    columns.in_lengths = (encrypts ? lengths_ : sealed_lengths_)->as<const std::uint64_t>();
    columns.ivs = ivs_->as<const std::uint8_t>();
    columns.iv_len = iv_len;
    columns.tag_len = tag_len;
    columns.aad = aad_->as<const std::uint8_t>();
    columns.aad_offsets = aad_offsets_->as<const std::uint64_t>();
    columns.aad_lengths = aad_lengths_->as<const std::uint64_t>();
    return run_columns("cuda", columns, results_->as<Result>(), stream_.stream);
  }

  struct OwnStream {
    Stream stream = cuda_engine().create_stream();
    ~OwnStream() { cuda_engine().destroy_stream(stream); }
  };

  const Options& options_;
  const std::size_t page_, pages_;
  std::size_t count_ = 0, plain_len_ = 0, sealed_len_ = 0;
  const std::vector<std::uint8_t> key_bytes_ = std::vector<std::uint8_t>(16, 7);
  const Key key_{find_algorithm("aes-128-gcm"), key_bytes_};
  const std::vector<const Key*> keys_{&key_};
  std::unique_ptr<DeviceBytes> plain_, sealed_, lengths_, sealed_lengths_, aad_offsets_, aad_lengths_, ivs_, aad_;
  std::unique_ptr<DeviceBytes> results_, text_, cipher_text_;
  OwnStream stream_;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    Options options;
    std::vector<std::size_t> pages;
    for (int i = 1; i < argc; ++i) {
      const auto number = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
      if (std::strcmp(argv[i], "--once") == 0) {
        options.once = true;
      } else if (std::strcmp(argv[i], "--mib") == 0) {
        options.mib = number();
      } else if (std::strcmp(argv[i], "--header") == 0) {
        options.header = number();
      } else if (std::strcmp(argv[i], "--aad") == 0) {
        options.aad = number();
      } else if (std::strcmp(argv[i], "--apart") == 0) {
        options.apart = number();
      } else if (std::strcmp(argv[i], "--repeat") == 0) {
        options.repeat = static_cast<int>(std::max<unsigned long long>(1, number()));
      } else if (const std::size_t page = std::strtoull(argv[i], nullptr, 10); page != 0) {
        pages.push_back(page);
      } else {
        throw std::runtime_error(
            "usage: device_modules [--once] [--mib N] [--header BYTES] [--aad BYTES] [--apart BYTES] [--repeat N] "
            "[PAGE ...]");
      }
    }
    if (pages.empty()) pages = {8192, 65536, 1048576};
    for (const std::string& device : cuda_engine().devices()) std::printf("%s\n", device.c_str());
    bool good = true;
    for (const std::size_t page : pages) good = Modules(options, page).measure() && good;
    return good ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device_modules: %s\n", error.what());
    return 1;
  }
}
