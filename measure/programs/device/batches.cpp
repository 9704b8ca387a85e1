// SPDX-License-Identifier: Apache-2.0
// Batches of short messages in device memory through the CUDA engine, with one key and with a key for each message,
// against one message as long as all of them (Harrison 2008, section 7: the overhead of a payload). For each batch:
//
//   call   what the host does: run() until it returns
//   all    from the call of run() until the device is done, and the rate that follows from it
//
// Then the same texts as columnar batches, through run_columns(): with columns and Key objects on the host, and with
// all of them, keys included, in device memory.
//
// The first message, one in the middle and the last are checked against the reference engine. What the kernels alone
// take: run with --once under a profiler (ncu --metrics gpu__time_duration.sum).
//
//   device_batches [--once] [--columns] [--pages | --sectors | --stream-ciphers | --gcm-siv | --curve | --length N]
//   [--divide N] [ALGORITHM]
//
// --columns: those alone. --pages: columns of 65,536 messages of 64 KiB. --sectors: columns of data units of 4 KiB and
// of 512 bytes, 4 GiB to 16 MiB of them. --stream-ciphers: columns of ChaCha20 and its AEADs, 4 GiB to 256 MiB.
// --gcm-siv: columns of AES-GCM-SIV, 4 and 1 GiB. --curve: a serial mode, encrypted, as messages and as columns: 32 to
// 2^20 messages of 4 KiB. --length: columns of up to 2^20 messages of N bytes, 4 GiB at most. --divide: fewer messages.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "buffers.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "dispatch/columns.hpp"
#include "engine/cuda/engine.hpp"
#include "engine/reference/engine.hpp"
#include "message/plan.hpp"

namespace {

using namespace warpcipher;
using bench::must;
using bench::read;
using Clock = std::chrono::steady_clock;

constexpr std::size_t tag_len = 16;
constexpr std::size_t iv_room = 24;

struct Case {
  const char* algorithm;
  std::size_t messages;
  std::size_t len;
  std::size_t aad_len;
  bool own_keys;
  Direction direction = Direction::encrypt;
};

// About 1 GiB each; of 16 blocks a quarter: more messages would only take the host longer.
constexpr Case cases[] = {
    {"aes-128-ctr", 1, std::size_t{1} << 30, 0, false},
    {"aes-128-ctr", 4096, 16384 * 16, 0, false},
    {"aes-128-ctr", 4096, 16384 * 16, 0, true},
    {"aes-128-ctr", 131072, 512 * 16, 0, false},
    {"aes-128-ctr", 131072, 512 * 16, 0, true},
    {"aes-128-ctr", 1 << 20, 16 * 16, 0, false},
    {"aes-128-ctr", 1 << 20, 16 * 16, 0, true},
    {"aes-128-xts", 262144, 4096, 0, false},
    {"aes-256-xts", 262144, 4096, 0, false},
    {"aes-128-xts", 65536, 4096, 0, false},
    {"aes-128-xts", 2097152, 512, 0, false},
    {"aes-128-xts", 524288, 512, 0, false},
    {"aes-256-gcm", 1, 1024'000'000, 13, false},
    {"aes-256-gcm", 1'000'000, 1024, 13, false},
    {"aes-256-gcm", 1'000'000, 1024, 13, true},
    {"aes-128-ctr", 16384, 65536, 0, false},
    {"aes-128-ctr", 16384, 65536, 0, true},
    {"aes-128-gcm", 16384, 65536, 13, false},
    {"aes-128-gcm", 16384, 65536, 13, true},
    {"aes-256-xts", 262144, 4096, 0, false},
    {"aes-256-xts", 262144, 4096, 0, true},
    {"des-cbc", 262144, 4096, 0, false},
    {"des-cbc", 262144, 4096, 0, false, Direction::decrypt},
    {"des-ede3-cbc", 262144, 4096, 0, false},
    {"des-ede3-cbc", 262144, 4096, 0, true},
    {"des-ede3-cbc", 262144, 4096, 0, false, Direction::decrypt},
    {"des-ede3-cbc", 262144, 4096, 0, true, Direction::decrypt},
    {"des-ede3-ecb", 262144, 4096, 0, false},
    {"des-ede3-ecb", 262144, 4096, 0, false, Direction::decrypt},
};

// 4 GiB: so much longer that launches do not count.
constexpr Case pages[] = {
    {"aes-128-ctr", 65536, 65536, 0, false},
    {"aes-128-ctr", 65536, 65536, 0, true},
    {"aes-128-gcm", 65536, 65536, 13, false},
    {"aes-128-gcm", 65536, 65536, 13, true},
};

constexpr Case stream_ciphers[] = {
    {"chacha20", 1, std::size_t{1} << 32, 0, false},  {"chacha20-poly1305", 1, std::size_t{1} << 32, 13, false},
    {"chacha20-poly1305", 65536, 65536, 0, false},    {"chacha20-poly1305", 65536, 65536, 0, true},
    {"xchacha20-poly1305", 65536, 65536, 0, false},   {"chacha20-poly1305", 262144, 16384, 0, true},
    {"chacha20-poly1305", 1 << 20, 4096, 0, true},    {"chacha20-poly1305", 1'000'000, 1024, 13, false},
    {"chacha20-poly1305", 1'000'000, 1024, 13, true}, {"chacha20-poly1305", 1 << 20, 256, 0, false},
    {"chacha20-poly1305", 1 << 20, 256, 0, true},
};

constexpr Case gcm_siv[] = {
    {"aes-128-gcm-siv", 65536, 65536, 13, false},  {"aes-128-gcm-siv", 65536, 65536, 13, true},
    {"aes-256-gcm-siv", 65536, 65536, 13, false},  {"aes-256-gcm-siv", 65536, 65536, 13, true},
    {"aes-128-gcm-siv", 1 << 20, 1024, 13, false}, {"aes-128-gcm-siv", 1 << 20, 1024, 13, true},
    {"aes-256-gcm-siv", 1 << 20, 1024, 13, false}, {"aes-256-gcm-siv", 1 << 20, 1024, 13, true},
};

constexpr Case sectors[] = {
    {"aes-128-xts", 1 << 20, 4096, 0, false}, {"aes-128-xts", 1 << 23, 512, 0, false},
    {"aes-128-xts", 1 << 18, 4096, 0, false}, {"aes-128-xts", 1 << 21, 512, 0, false},
    {"aes-128-xts", 1 << 16, 4096, 0, false}, {"aes-128-xts", 1 << 19, 512, 0, false},
    {"aes-128-xts", 1 << 14, 4096, 0, false}, {"aes-128-xts", 1 << 17, 512, 0, false},
    {"aes-128-xts", 1 << 12, 4096, 0, false}, {"aes-128-xts", 1 << 15, 512, 0, false},
};

constexpr Case curve[] = {
    {"aes-128-cbc", 32, 4096, 0, false},      {"aes-128-cbc", 256, 4096, 0, false},
    {"aes-128-cbc", 2048, 4096, 0, false},    {"aes-128-cbc", 16384, 4096, 0, false},
    {"aes-128-cbc", 65536, 4096, 0, false},   {"aes-128-cbc", 1 << 18, 4096, 0, false},
    {"aes-128-cbc", 1 << 18, 4096, 0, true},  {"aes-128-cbc", 1 << 20, 4096, 0, false},
    {"aes-256-cbc", 1 << 18, 4096, 0, false},
};

std::size_t iv_len_of(const Algorithm& algorithm) { return algorithm.iv_len; }

const char* name_of(Direction direction) { return direction == Direction::encrypt ? "encrypt" : "decrypt"; }

class Bench {
 public:
  Bench(bool once, std::size_t divide, std::size_t size) : once_(once), divide_(divide), room_(size), buffers_(size) {}

  void measure(const Case& c) {
    const Algorithm& algorithm = find_algorithm(c.algorithm);
    const std::size_t count = std::max<std::size_t>(1, c.messages / divide_);
    const std::size_t step = (c.len + (algorithm.is_aead() ? tag_len : 0) + 15) / 16 * 16;
    if (step > room_ / count) throw std::runtime_error("the buffers are too small");
    std::deque<Key> keys;
    std::vector<std::uint8_t> bytes(algorithm.key_len());
    std::vector<std::uint8_t> ivs(iv_room * count), aad(c.aad_len, 7);
    std::vector<Message> messages(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (i == 0 || c.own_keys) {
        for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random_());
        keys.emplace_back(algorithm, bytes);
      }
      Message& m = messages[i];
      m.key = &keys.back();
      m.direction = c.direction;
      m.memory = Memory::device;
      m.in = buffers_.in() + step * i;
      m.out = buffers_.out() + step * i;
      m.in_len = m.out_len = c.len;
      m.iv = ivs.data() + iv_room * i;
      m.iv_len = iv_len_of(algorithm);
      store_be64(ivs.data() + iv_room * i, i);
      if (algorithm.is_aead()) {
        m.aad = aad.data();
        m.aad_len = aad.size();
        m.tag = m.out + c.len;
        m.tag_len = tag_len;
      }
    }
    std::vector<double> call, all;
    std::vector<Result> results(count);
    for (int i = 0; i < (once_ ? 1 : 7); ++i) {
      must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      const auto start = Clock::now();
      run("cuda", messages, results, buffers_.stream());
      const auto returned = Clock::now();
      must(cudaStreamSynchronize(buffers_.native()), "cudaStreamSynchronize");
      const auto done = Clock::now();
      const auto ms = [](auto from, auto to) { return std::chrono::duration<double, std::milli>(to - from).count(); };
      call.push_back(ms(start, returned));
      all.push_back(ms(start, done));
    }
    bool good = true;
    for (const std::size_t i : {std::size_t{0}, count / 2, count - 1}) good = good && is_right(messages[i]);
    wrong_ = wrong_ || !good;
    const double rate = static_cast<double>(c.len) * static_cast<double>(count) / 1e6 / median(all);
    std::printf("%-12s %s %8zu of %10zu B, %-9s messages               call %8.2f  all %8.2f ms  %7.1f GB/s  %s\n",
                c.algorithm, name_of(c.direction), count, c.len, c.own_keys ? "own keys," : "one key,", median(call),
                median(all), rate, good ? "checked" : "WRONG OUTPUT");
    std::fflush(stdout);
  }

  void measure_columns(const Case& c, bool on_device) {
    const Algorithm& algorithm = find_algorithm(c.algorithm);
    const bool aead = algorithm.is_aead();
    const std::size_t count = std::max<std::size_t>(1, c.messages / divide_);
    const std::size_t step = (c.len + (aead ? tag_len : 0) + 15) / 16 * 16;
    if (step > room_ / count) throw std::runtime_error("the buffers are too small");
    const std::size_t key_count = c.own_keys ? count : 1;
    std::vector<std::uint8_t> key_bytes(key_count * algorithm.key_len());
    for (std::uint8_t& byte : key_bytes) byte = static_cast<std::uint8_t>(random_());
    const std::size_t iv_len = iv_len_of(algorithm);
    std::vector<std::uint8_t> ivs(iv_len * count), aad(c.aad_len, 7);
    std::vector<std::uint64_t> offsets(count), lengths(count, c.len);
    std::vector<std::uint32_t> key_index(count);
    std::deque<Key> keys;
    std::vector<const Key*> pointers;
    for (std::size_t i = 0; i < count; ++i) {
      offsets[i] = step * i;
      key_index[i] = static_cast<std::uint32_t>(c.own_keys ? i : 0);
      if (iv_len != 0) store_be64(ivs.data() + iv_len * i, i);
    }
    for (std::size_t k = 0; k < key_count && !(on_device && c.own_keys); ++k) {
      pointers.push_back(
          &keys.emplace_back(algorithm, std::span(key_bytes).subspan(k * algorithm.key_len(), algorithm.key_len())));
    }
    Columns columns;
    columns.direction = c.direction;
    columns.memory = Memory::device;
    columns.count = count;
    columns.in = {buffers_.in(), step * count};
    columns.out = {buffers_.out(), step * count};
    columns.iv_len = iv_len;
    columns.tag_len = aead ? tag_len : 0;
    columns.keys = pointers;
    std::vector<Result> results(count);
    std::span<Result> outcome = results;
    std::vector<void*> copies;
    const auto place = [&](auto& vector) -> std::span<const typename std::decay_t<decltype(vector)>::value_type> {
      if (!on_device || vector.empty()) return vector;
      void* copy = nullptr;
      must(cudaMalloc(&copy, vector.size() * sizeof vector[0]), "cudaMalloc");
      must(cudaMemcpy(copy, vector.data(), vector.size() * sizeof vector[0], cudaMemcpyHostToDevice), "cudaMemcpy");
      copies.push_back(copy);
      return {static_cast<typename std::decay_t<decltype(vector)>::value_type*>(copy), vector.size()};
    };
    columns.in_offsets = columns.out_offsets = place(offsets);
    columns.in_lengths = place(lengths);
    columns.ivs = place(ivs);
    columns.aad = place(aad);
    if (c.own_keys) columns.key_index = place(key_index);
    if (on_device) {
      columns.columns_memory = Memory::device;
      const auto there = place(results);
      outcome = {const_cast<Result*>(there.data()), there.size()};
      if (c.own_keys) {
        columns.algorithm = &algorithm;
        columns.key_bytes = place(key_bytes);
      }
    }
    std::vector<double> call, all;
    for (int i = 0; i < (once_ ? 1 : 7); ++i) {
      must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      const auto start = Clock::now();
      run_columns("cuda", columns, outcome, buffers_.stream());
      const auto returned = Clock::now();
      must(cudaStreamSynchronize(buffers_.native()), "cudaStreamSynchronize");
      const auto done = Clock::now();
      const auto ms = [](auto from, auto to) { return std::chrono::duration<double, std::milli>(to - from).count(); };
      call.push_back(ms(start, returned));
      all.push_back(ms(start, done));
    }
    bool good = true;
    for (const std::size_t i : {std::size_t{0}, count / 2, count - 1}) {
      const Key key(algorithm,
                    std::span(key_bytes).subspan(c.own_keys ? i * algorithm.key_len() : 0, algorithm.key_len()));
      Message m;
      m.key = &key;
      m.direction = c.direction;
      m.in = buffers_.in() + offsets[i];
      m.out = buffers_.out() + offsets[i];
      m.in_len = m.out_len = c.len;
      m.iv = ivs.data() + iv_len * i;
      m.iv_len = iv_len;
      if (aead) {
        m.aad = aad.data();
        m.aad_len = aad.size();
        m.tag = m.out + c.len;
        m.tag_len = tag_len;
      }
      good = good && is_right(m);
    }
    for (void* const copy : copies) cudaFree(copy);
    wrong_ = wrong_ || !good;
    const double rate = static_cast<double>(c.len) * static_cast<double>(count) / 1e6 / median(all);
    std::printf("%-12s %s %8zu of %10zu B, %-9s columns on the %-6s  call %8.2f  all %8.2f ms  %7.1f GB/s  %s\n",
                c.algorithm, name_of(c.direction), count, c.len, c.own_keys ? "own keys," : "one key,",
                on_device ? "device" : "host", median(call), median(all), rate, good ? "checked" : "WRONG OUTPUT");
    std::fflush(stdout);
  }

  bool wrong() const { return wrong_; }

 private:
  static double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }

  // The tag too, when the text is short enough for the reference engine.
  bool is_right(const Message& on_device) const {
    const std::size_t len = std::min<std::size_t>(on_device.in_len, 1 << 16);
    std::vector<std::uint8_t> text = read(on_device.in, len);
    std::uint8_t tag[tag_len];
    Message m = on_device;
    m.memory = Memory::host;
    m.in = m.out = text.data();
    m.in_len = m.out_len = len;
    if (m.tag_len != 0) m.tag = tag;
    Status status = Status::ok;
    reference_engine().run(make_plan({&m, 1}, reference_engine().tile_units()), {&status, 1}, nullptr);
    if (read(on_device.out, len) != text) return false;
    return m.tag_len == 0 || len < on_device.in_len ||
           std::memcmp(read(on_device.tag, tag_len).data(), tag, tag_len) == 0;
  }

  const bool once_;
  const std::size_t divide_;
  const std::size_t room_;
  std::mt19937 random_{1};
  bench::Buffers buffers_;
  bool wrong_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string& reason = cuda_engine().unavailable_reason();
    if (!reason.empty()) throw std::runtime_error(reason);
    bool once = false;
    bool columns_alone = false;
    bool with_curve = false;
    std::span<const Case> on_device_alone;
    std::size_t divide = 1, length = 0;
    std::string only;
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], "--once") == 0) {
        once = true;
      } else if (std::strcmp(argv[i], "--columns") == 0) {
        columns_alone = true;
      } else if (std::strcmp(argv[i], "--pages") == 0) {
        on_device_alone = pages;
      } else if (std::strcmp(argv[i], "--sectors") == 0) {
        on_device_alone = sectors;
      } else if (std::strcmp(argv[i], "--stream-ciphers") == 0) {
        on_device_alone = stream_ciphers;
      } else if (std::strcmp(argv[i], "--gcm-siv") == 0) {
        on_device_alone = gcm_siv;
      } else if (std::strcmp(argv[i], "--curve") == 0) {
        with_curve = true;
      } else if (std::strcmp(argv[i], "--divide") == 0 && i + 1 < argc) {
        divide = std::max<std::size_t>(1, std::strtoull(argv[++i], nullptr, 10));
      } else if (std::strcmp(argv[i], "--length") == 0 && i + 1 < argc) {
        length = std::strtoull(argv[++i], nullptr, 10);
      } else if (argv[i][0] != '-' && only.empty()) {
        only = find_algorithm(argv[i]).name;
      } else {
        throw std::runtime_error(
            "usage: device_batches [--once] [--columns] [--pages | --sectors | --stream-ciphers | --gcm-siv | "
            "--curve | --length N] [--divide N] [ALGORITHM]");
      }
    }
    for (const std::string& device : cuda_engine().devices()) std::printf("%s\n", device.c_str());
    constexpr std::size_t mebibyte = std::size_t{1} << 20;
    if (length != 0 && only.empty()) only = "chacha20-poly1305";
    const std::size_t count = std::min(mebibyte, 4096 * mebibyte / std::max<std::size_t>(1, length));
    const Case of_length[] = {{only.c_str(), count, length, 0, false}, {only.c_str(), count, length, 0, true}};
    if (length != 0) on_device_alone = of_length;
    Bench bench(once, divide, (with_curve || !on_device_alone.empty() ? 4200 : 1100) * mebibyte);
    if (with_curve) {
      for (const Case& c : curve) {
        if (!only.empty() && only != c.algorithm) continue;
        if (!columns_alone) bench.measure(c);
        for (const bool on_device : {false, true}) bench.measure_columns(c, on_device);
      }
      return bench.wrong() ? 1 : 0;
    }
    if (!on_device_alone.empty()) {
      for (const Case& c : on_device_alone) {
        if (only.empty() || only == c.algorithm) bench.measure_columns(c, true);
      }
      return bench.wrong() ? 1 : 0;
    }
    for (const Case& c : cases) {
      if (columns_alone && c.messages != 1) continue;
      if (only.empty() || only == c.algorithm) bench.measure(c);
    }
    for (const Case& c : cases) {
      if (c.messages == 1 || (!only.empty() && only != c.algorithm)) continue;
      for (const bool on_device : {false, true}) bench.measure_columns(c, on_device);
    }
    return bench.wrong() ? 1 : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device_batches: %s\n", error.what());
    return 1;
  }
}
