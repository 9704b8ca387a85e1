// SPDX-License-Identifier: Apache-2.0
// Batches of short messages in device memory through the CUDA engine, with one key and with a key for each message,
// beside one message as long as all of them (Harrison 2008, section 7: the overhead of a payload). For each batch:
//
//   check, plan, run   what the host does: check_messages(), make_plan(), Engine::run() until it returns
//   all                from the call of run() until the device is done, and the rate that follows from it
//
// The first message, one in the middle and the last are checked against the reference engine. What the kernels alone
// take: run with --once under a profiler (ncu --metrics gpu__time_duration.sum).
//
//   device_batches [--once] [--divide N] [ALGORITHM]       N: fewer messages, to try the program
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "batch/plan.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "engine/cuda/engine.hpp"
#include "engine/reference/engine.hpp"

namespace {

using namespace warpcipher;
using Clock = std::chrono::steady_clock;

constexpr std::size_t tag_len = 16;

void must(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

struct Case {
  const char* algorithm;
  std::size_t messages;
  std::size_t len;
  std::size_t aad_len;
  bool own_keys;
};

// About 1 GiB each; of 16 blocks a quarter: more messages would only take the host longer.
constexpr Case cases[] = {
    {"aes-128-ctr", 1, std::size_t{1} << 30, 0, false}, {"aes-128-ctr", 4096, 16384 * 16, 0, false},
    {"aes-128-ctr", 4096, 16384 * 16, 0, true},         {"aes-128-ctr", 131072, 512 * 16, 0, false},
    {"aes-128-ctr", 131072, 512 * 16, 0, true},         {"aes-128-ctr", 1 << 20, 16 * 16, 0, false},
    {"aes-128-ctr", 1 << 20, 16 * 16, 0, true},         {"aes-256-gcm", 1, 1024'000'000, 13, false},
    {"aes-256-gcm", 1'000'000, 1024, 13, false},        {"aes-256-gcm", 1'000'000, 1024, 13, true},
};

class Bench {
 public:
  Bench(bool once, std::size_t divide) : once_(once), divide_(divide) {
    must(cudaMalloc(reinterpret_cast<void**>(&in_), room), "cudaMalloc");
    must(cudaMalloc(reinterpret_cast<void**>(&out_), room), "cudaMalloc");
    must(cudaMemset(in_, 0x5a, room), "cudaMemset");
    stream_ = cuda_engine().create_stream();
  }
  ~Bench() {
    cuda_engine().destroy_stream(stream_);
    cudaFree(in_);
    cudaFree(out_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  void measure(const Case& c) {
    const Algorithm& algorithm = find_algorithm(c.algorithm);
    const std::size_t count = std::max<std::size_t>(1, c.messages / divide_);
    const std::size_t step = (c.len + (algorithm.is_aead() ? tag_len : 0) + 15) / 16 * 16;
    if (step > room / count) throw std::runtime_error("the buffers are too small");
    std::deque<Key> keys;
    std::vector<std::uint8_t> bytes(algorithm.key_len());
    std::vector<std::uint8_t> ivs(16 * count), aad(c.aad_len, 7);
    std::vector<Message> messages(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (i == 0 || c.own_keys) {
        for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random_());
        keys.emplace_back(algorithm, bytes);
      }
      Message& m = messages[i];
      m.key = &keys.back();
      m.memory = Memory::device;
      m.in = in_ + step * i;
      m.out = out_ + step * i;
      m.in_len = m.out_len = c.len;
      m.iv = ivs.data() + 16 * i;
      m.iv_len = algorithm.is_aead() ? 12 : 16;
      store_be64(ivs.data() + 16 * i, i);
      if (algorithm.is_aead()) {
        m.aad = aad.data();
        m.aad_len = aad.size();
        m.tag = m.out + c.len;
        m.tag_len = tag_len;
      }
    }
    std::vector<double> check, plan_time, run, all;
    for (int i = 0; i < (once_ ? 1 : 7); ++i) {
      std::vector<Status> statuses(count);
      const auto start = Clock::now();
      check_messages(messages);
      const auto checked = Clock::now();
      const Plan plan = make_plan(messages, cuda_engine().tile_units());
      const auto planned = Clock::now();
      cuda_engine().run(plan, statuses, stream_);
      const auto returned = Clock::now();
      must(cudaStreamSynchronize(static_cast<cudaStream_t>(stream_)), "cudaStreamSynchronize");
      const auto done = Clock::now();
      const auto ms = [](auto from, auto to) { return std::chrono::duration<double, std::milli>(to - from).count(); };
      check.push_back(ms(start, checked));
      plan_time.push_back(ms(checked, planned));
      run.push_back(ms(planned, returned));
      all.push_back(ms(planned, done));
    }
    bool good = true;
    for (const std::size_t i : {std::size_t{0}, count / 2, count - 1}) good = good && is_right(messages[i]);
    wrong_ = wrong_ || !good;
    const double rate = static_cast<double>(c.len) * static_cast<double>(count) / 1e6 / median(all);
    std::printf("%-12s %8zu of %10zu B, %-9s check %8.2f  plan %7.2f  run %8.2f  all %8.2f ms  %7.1f GB/s  %s\n",
                c.algorithm, count, c.len, c.own_keys ? "own keys," : "one key,", median(check), median(plan_time),
                median(run), median(all), rate, good ? "checked" : "WRONG OUTPUT");
    std::fflush(stdout);
  }

  bool wrong() const { return wrong_; }

 private:
  static constexpr std::size_t room = std::size_t{1100} << 20;

  static double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }

  static std::vector<std::uint8_t> read(const std::uint8_t* device, std::size_t len) {
    std::vector<std::uint8_t> bytes(len);
    must(cudaMemcpy(bytes.data(), device, len, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return bytes;
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
  std::mt19937 random_{1};
  std::uint8_t* in_ = nullptr;
  std::uint8_t* out_ = nullptr;
  Stream stream_ = nullptr;
  bool wrong_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string& reason = cuda_engine().unavailable_reason();
    if (!reason.empty()) throw std::runtime_error(reason);
    bool once = false;
    std::size_t divide = 1;
    std::string only;
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], "--once") == 0) {
        once = true;
      } else if (std::strcmp(argv[i], "--divide") == 0 && i + 1 < argc) {
        divide = std::max<std::size_t>(1, std::strtoull(argv[++i], nullptr, 10));
      } else if (argv[i][0] != '-' && only.empty()) {
        only = find_algorithm(argv[i]).name;
      } else {
        throw std::runtime_error("usage: device_batches [--once] [--divide N] [ALGORITHM]");
      }
    }
    for (const std::string& device : cuda_engine().devices()) std::printf("%s\n", device.c_str());
    Bench bench(once, divide);
    for (const Case& c : cases) {
      if (only.empty() || only == c.algorithm) bench.measure(c);
    }
    return bench.wrong() ? 1 : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device_batches: %s\n", error.what());
    return 1;
  }
}
