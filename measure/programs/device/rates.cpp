// SPDX-License-Identifier: Apache-2.0
// Rates of the CUDA engine on large texts, device memory to device memory: what bounds the kernels themselves. Random
// data, CUDA events around Engine::run, median and spread of the repetitions; samples of each output are checked
// against the reference engine.
//
//   device_rates [GiB (4)] [repetitions (20)] [ALGORITHM] [KiB of a message (all; XTS: 16384)]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

#include "buffers.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "engine/cuda/engine.hpp"
#include "engine/reference/engine.hpp"
#include "message/plan.hpp"

namespace {

using namespace warpcipher;
using bench::must;
using bench::read;

constexpr std::size_t sample_len = 1 << 15;

std::vector<std::uint8_t> make_key(std::size_t len) {
  std::vector<std::uint8_t> bytes(len);
  for (std::size_t i = 0; i < len; ++i) bytes[i] = static_cast<std::uint8_t>(3 + 7 * i);
  return bytes;
}

struct Job {
  const char* algorithm;
  Direction direction;
};

class Bench {
 public:
  Bench(std::size_t len, int repetitions, std::size_t message_len)
      : len_(len), repetitions_(repetitions), message_len_(message_len), buffers_(len), stopwatch_(buffers_.native()) {
    const std::vector<std::uint8_t> iv(16, 9);
    const Key key(find_algorithm("aes-128-ctr"), make_key(16));
    run({message(key, Direction::encrypt, buffers_.in(), buffers_.in(), len, iv)});  // random data
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  void measure(const Job& job) {
    const Algorithm& algorithm = find_algorithm(job.algorithm);
    const Key key(algorithm, make_key(algorithm.key_len()));
    const std::vector<std::uint8_t> iv = make_iv(algorithm);
    const std::vector<Message> messages = cut(key, job.direction, iv);
    const Plan plan = make_plan(messages, cuda_engine().tile_units());
    const bool good = sample(messages, algorithm, iv);
    std::vector<double> times;
    std::vector<Status> statuses(messages.size());
    for (int i = 0; i < repetitions_; ++i) {
      times.push_back(stopwatch_.milliseconds([&] { cuda_engine().run(plan, statuses, buffers_.stream()); }));
    }
    std::sort(times.begin(), times.end());
    const auto rate = [&](double ms) { return static_cast<double>(len_) / 1e6 / ms; };
    std::printf("%-16s %s %9.1f GB/s  (%.1f to %.1f)  %s\n", job.algorithm,
                job.direction == Direction::encrypt ? "encrypt" : "decrypt", rate(times[times.size() / 2]),
                rate(times.back()), rate(times.front()), good ? "checked" : "WRONG OUTPUT");
    std::fflush(stdout);
    wrong_ = wrong_ || !good;
  }

  void measure_copy() {
    double best = 1e9;
    for (int i = 0; i < repetitions_; ++i) {
      best = std::min(best, stopwatch_.milliseconds([&] {
        must(cudaMemcpyAsync(buffers_.out(), buffers_.in(), len_, cudaMemcpyDeviceToDevice, buffers_.native()),
             "cudaMemcpyAsync");
      }));
    }
    std::printf("%-16s         %9.1f GB/s\n", "copy", static_cast<double>(len_) / 1e6 / best);
  }

  bool wrong() const { return wrong_; }

 private:
  static std::vector<std::uint8_t> make_iv(const Algorithm& algorithm) {
    return std::vector<std::uint8_t>(algorithm.iv_len, 5);
  }

  Message message(const Key& key, Direction direction, const std::uint8_t* in, std::uint8_t* out, std::size_t len,
                  const std::vector<std::uint8_t>& iv) const {
    Message m;
    m.key = &key;
    m.direction = direction;
    m.memory = Memory::device;
    m.in = in;
    m.out = out;
    m.in_len = m.out_len = len;
    m.iv = iv.data();
    m.iv_len = iv.size();
    if (key.algorithm().is_aead()) {
      m.tag = buffers_.tag();
      m.tag_len = 16;
    }
    return m;
  }

  std::vector<Message> cut(const Key& key, Direction direction, const std::vector<std::uint8_t>& iv) const {
    const std::size_t longest = key.algorithm().mode.id == Mode::xts ? std::size_t{16} << 20 : len_;
    const std::size_t each = message_len_ == 0 ? longest : std::min(message_len_, longest);
    std::vector<Message> messages;
    for (std::size_t offset = 0; offset < len_; offset += each) {
      messages.push_back(
          message(key, direction, buffers_.in() + offset, buffers_.out() + offset, std::min(each, len_ - offset), iv));
    }
    return messages;
  }

  void run(const std::vector<Message>& messages) {
    std::vector<Status> statuses(messages.size());
    cuda_engine().run(make_plan(messages, cuda_engine().tile_units()), statuses, buffers_.stream());
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  // The first bytes of the first and the last message, and the middle of a long one where the mode lets a text start
  // there.
  bool sample(const std::vector<Message>& messages, const Algorithm& algorithm, const std::vector<std::uint8_t>& iv) {
    must(cudaMemset(buffers_.out(), 0, len_), "cudaMemset");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    run(messages);
    bool good = matches(messages.front(), 0, iv) && matches(messages.back(), 0, iv);
    const std::size_t middle = messages.front().in_len / 2 / 4096 * 4096;
    std::vector<std::uint8_t> middle_iv = iv;
    switch (algorithm.mode.id) {
      case Mode::ecb:
        break;
      case Mode::ctr:
        add_be128(middle_iv.data(), middle / 16);
        break;
      case Mode::stream:
        store_le32(middle_iv.data(), load_le32(middle_iv.data()) + static_cast<std::uint32_t>(middle / 64));
        break;
      case Mode::cbc:
      case Mode::cfb:
        middle_iv = read(buffers_.in() + middle - algorithm.block_len(), algorithm.block_len());
        break;
      default:
        return good;
    }
    return good && matches(messages.front(), middle, middle_iv);
  }

  bool matches(const Message& on_device, std::size_t offset, const std::vector<std::uint8_t>& iv) const {
    const std::size_t len = std::min(sample_len, on_device.in_len - offset);
    std::vector<std::uint8_t> text = read(on_device.in + offset, len);
    std::uint8_t tag[16];
    Message m = on_device;
    m.memory = Memory::host;
    m.in = m.out = text.data();
    m.in_len = m.out_len = len;
    m.iv = iv.data();
    m.tag = tag;
    Status status = Status::ok;
    std::vector<std::uint8_t> nonce_and_tag = iv;
    if (on_device.algorithm().mode.id == Mode::gcm_siv) {  // the tag of the whole text says what becomes of each part
      const std::vector<std::uint8_t> whole = read(on_device.tag, sizeof tag);
      nonce_and_tag.insert(nonce_and_tag.end(), whole.begin(), whole.end());
      text = read(on_device.out + offset, len);
      m.in = m.out = text.data();
      m.iv = nonce_and_tag.data();
      m.iv_len = nonce_and_tag.size();
      m.direction = Direction::decrypt;
      m.compute_tag = true;
    }
    reference_engine().run(make_plan({&m, 1}, reference_engine().tile_units()), {&status, 1}, nullptr);
    return read((m.direction == on_device.direction ? on_device.out : on_device.in) + offset, len) == text;
  }

  std::size_t len_;
  int repetitions_;
  std::size_t message_len_;  // 0: as long as may be
  bench::Buffers buffers_;
  bench::Stopwatch stopwatch_;
  bool wrong_ = false;
};

constexpr Job jobs[] = {
    {"aes-128-ctr", Direction::encrypt},
    {"aes-192-ctr", Direction::encrypt},
    {"aes-256-ctr", Direction::encrypt},
    {"aes-128-ecb", Direction::encrypt},
    {"aes-128-ecb", Direction::decrypt},
    {"aes-256-ecb", Direction::encrypt},
    {"aes-256-ecb", Direction::decrypt},
    {"aes-256-cfb", Direction::decrypt},
    {"aes-256-xts", Direction::decrypt},
    {"aes-128-cbc", Direction::decrypt},
    {"aes-256-cbc", Direction::decrypt},
    {"aes-128-cfb", Direction::decrypt},
    {"aes-128-cfb8", Direction::decrypt},
    {"aes-128-gcm", Direction::encrypt},
    {"aes-256-gcm", Direction::encrypt},
    {"aes-128-gcm-siv", Direction::encrypt},
    {"aes-256-gcm-siv", Direction::encrypt},
    {"aes-128-xts", Direction::encrypt},
    {"aes-128-xts", Direction::decrypt},
    {"aes-256-xts", Direction::encrypt},
    {"des-ecb", Direction::encrypt},
    {"des-ede3-ecb", Direction::encrypt},
    {"des-ede3-cbc", Direction::decrypt},
    {"des-ede3-cfb", Direction::decrypt},
    {"chacha20", Direction::encrypt},
    {"chacha20-poly1305", Direction::encrypt},
    {"xchacha20-poly1305", Direction::encrypt},
};

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string& reason = cuda_engine().unavailable_reason();
    if (!reason.empty()) throw std::runtime_error(reason);
    for (const std::string& device : cuda_engine().devices()) std::printf("%s\n", device.c_str());
    const double gib = argc > 1 ? std::strtod(argv[1], nullptr) : 4;
    const auto mib = static_cast<std::size_t>(1024 * gib);  // a fraction: 0.25
    const int repetitions = argc > 2 ? std::atoi(argv[2]) : 20;
    const std::size_t message_kib = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 0;
    Bench bench(mib << 20, repetitions, message_kib << 10);
    bench.measure_copy();
    for (const Job& job : jobs) {
      if (argc > 3 && std::strcmp(argv[3], job.algorithm) != 0) continue;
      bench.measure(job);
    }
    return bench.wrong() ? 1 : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device_rates: %s\n", error.what());
    return 1;
  }
}
