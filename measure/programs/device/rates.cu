// SPDX-License-Identifier: Apache-2.0
// Rates of the CUDA engine on large texts, device memory to device memory: the bound of the kernels themselves. Random
// data, CUDA events around Engine::run, median and spread of the repetitions; samples of each output are checked
// against the reference engine. Key stream without text has rows of its own: as random bytes, which are written, and in
// registers only.
//
//   device_rates [--gib N] [--repetitions N] [--kib N] [ALGORITHM]
//
// --gib: of all text, 4; a fraction may do. --kib: of a message, else all (XTS: 16384).
#include "device.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "key_stream.cuh"
#include "random/cuda/fill.hpp"
#include "random/fill.hpp"

namespace {

using namespace warpcipher;
using bench::Case;
using bench::must;

constexpr std::size_t sample_len = 1 << 15;

constexpr std::pair<const char*, Direction> jobs[] = {
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

class Bench {
 public:
  Bench(std::size_t len, int repetitions, std::size_t message_len)
      : len_(len),
        repetitions_(repetitions),
        message_len_(message_len),
        buffers_(len + len / 64 + bench::tag_len),  // a tag for each KiB: no message is shorter
        stopwatch_(buffers_.native()) {
    const bench::Texts random({"aes-128-ctr", 1, len + len / 64}, buffers_.in(), buffers_.in());
    std::deque<Key> keys;
    run(random.messages(keys));
  }

  void measure(const char* name, Direction direction) {
    const bool is_xts = find_algorithm(name).mode.id == Mode::xts;
    std::size_t len = is_xts ? std::min(len_, std::size_t{16} << 20) : len_;
    if (message_len_ != 0) len = std::min(message_len_, len);
    const bench::Texts texts({name, len_ / len, len, 0, false, direction}, buffers_.in(), buffers_.out());
    std::deque<Key> keys;
    const std::vector<Message> messages = texts.messages(keys);
    const Plan plan = make_plan(messages, cuda_engine().tile_units());
    const bool good = sample(messages);
    std::vector<double> times;
    std::vector<Status> statuses(messages.size());
    for (int i = 0; i < repetitions_; ++i) {
      times.push_back(stopwatch_.milliseconds([&] { cuda_engine().run(plan, statuses, buffers_.stream()); }));
    }
    print(name, bench::name_of(direction), len * messages.size(), times, good);
  }

  void measure_registers(const bench::KeyStream& stream) {
    const std::uint32_t multiprocessors = cuda::current_device().multiprocessors;
    auto* const sums = reinterpret_cast<std::uint32_t*>(buffers_.out());
    const std::size_t lanes = std::size_t{multiprocessors} * stream.lanes_of_multiprocessor;
    constexpr std::uint32_t few = 256 * 37;
    stream.run(multiprocessors, few, sums, buffers_.native());
    must(cudaStreamSynchronize(buffers_.native()), "cudaStreamSynchronize");
    const std::vector<std::uint8_t> found = bench::read(buffers_.out(), 4 * lanes);
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < lanes; ++i) sum ^= load_le32(&found[4 * i]);
    const auto units = static_cast<std::uint32_t>(std::min<std::size_t>(len_ / stream.unit_len, std::size_t{1} << 31));
    std::vector<double> times;
    for (int i = 0; i < repetitions_; ++i) {
      times.push_back(stopwatch_.milliseconds([&] { stream.run(multiprocessors, units, sums, buffers_.native()); }));
    }
    print(stream.name, "key stream in registers", std::size_t{units} * stream.unit_len, times,
          sum == stream.right(few));
  }

  void measure_random(const char* name) {
    const random::Distribution bytes = random::Distribution::of_bytes(random::Type::uint8);
    random::StreamKey key{random::find_stream_cipher(name), {1}, 0};
    std::vector<double> times;
    for (int i = 0; i < repetitions_; ++i) {
      times.push_back(stopwatch_.milliseconds(
          [&] { random::cuda::fill(key, bytes, 0, buffers_.out(), len_, 0, buffers_.stream()); }));
    }
    std::vector<std::uint8_t> expected(sample_len);
    random::fill(key, bytes, 0, {expected.data(), expected.size(), Memory::host}, "reference");
    print(name, "key stream, written", len_, times, bench::read(buffers_.out(), sample_len) == expected);
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
  void print(const char* name, const char* what, std::size_t len, std::vector<double>& times, bool good) {
    std::sort(times.begin(), times.end());
    const auto rate = [&](double ms) { return static_cast<double>(len) / 1e6 / ms; };
    std::printf("%-16s %s %9.1f GB/s  (%.1f to %.1f)  %s\n", name, what, rate(bench::median(times)), rate(times.back()),
                rate(times.front()), good ? "checked" : "WRONG OUTPUT");
    std::fflush(stdout);
    wrong_ = wrong_ || !good;
  }

  void run(const std::vector<Message>& messages) {
    std::vector<Status> statuses(messages.size());
    cuda_engine().run(make_plan(messages, cuda_engine().tile_units()), statuses, buffers_.stream());
    must(cudaStreamSynchronize(buffers_.native()), "cudaStreamSynchronize");
  }

  // Whether the first and the last message are right, and the end of a long one where the mode lets a text start there.
  bool sample(const std::vector<Message>& messages) {
    must(cudaMemset(buffers_.out(), 0, len_), "cudaMemset");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    run(messages);
    if (!matches(messages.front()) || !matches(messages.back())) return false;
    Message m = messages.front();
    const std::size_t end = m.in_len > sample_len ? m.in_len - sample_len : 0;
    std::vector<std::uint8_t> iv(m.iv, m.iv + m.iv_len);
    if (m.algorithm().mode.id == Mode::ctr) {
      add_be128(iv.data(), end / 16);
    } else if (m.algorithm().mode.id == Mode::stream) {
      store_le32(iv.data(), load_le32(iv.data()) + static_cast<std::uint32_t>(end / 64));
    } else if (m.algorithm().mode.id != Mode::ecb) {
      return true;
    }
    m.in += end;
    m.out += end;
    m.in_len -= end;
    m.iv = iv.data();
    return matches(m);
  }

  bool matches(const Message& message) const {
    if (message.algorithm().mode.id != Mode::gcm_siv) return bench::is_right(message, sample_len);
    // The tag of the whole text says what becomes of each part.
    Message m = message;
    std::vector<std::uint8_t> nonce_and_tag(m.iv, m.iv + m.iv_len);
    const std::vector<std::uint8_t> tag = bench::read(m.tag, bench::tag_len);
    nonce_and_tag.insert(nonce_and_tag.end(), tag.begin(), tag.end());
    m.in = message.out;
    m.iv = nonce_and_tag.data();
    m.iv_len = nonce_and_tag.size();
    m.direction = Direction::decrypt;
    m.compute_tag = true;
    const std::size_t len = std::min(sample_len, m.in_len);
    std::vector<std::uint8_t> text = bench::by_reference(m, len);
    text.resize(len);  // the tag was computed from the part
    return text == bench::read(message.in, len);
  }

  const std::size_t len_;
  const int repetitions_;
  const std::size_t message_len_;  // 0: as long as may be
  bench::Buffers buffers_;
  bench::Stopwatch stopwatch_;
  bool wrong_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program("device_rates", [&] {
    double gib = 4;
    int repetitions = 20;
    std::size_t kib = 0;
    std::vector<std::string> only;
    bench::Options("device_rates", &only)
        .add("--gib", gib)
        .add("--repetitions", repetitions)
        .add("--kib", kib)
        .parse(argc, argv);
    bench::print_devices();
    Bench bench(static_cast<std::size_t>(1024 * gib) << 20, repetitions, kib << 10);
    const auto wanted = [&](const char* name) {
      return only.empty() || std::find(only.begin(), only.end(), name) != only.end();
    };
    bench.measure_copy();
    for (const auto& [name, direction] : jobs) {
      if (wanted(name)) bench.measure(name, direction);
    }
    for (const bench::KeyStream& stream : bench::key_streams) {
      if (wanted(stream.name)) bench.measure_registers(stream);
    }
    for (const char* const name : {"chacha20", "aes-256-ctr"}) {
      if (wanted(name)) bench.measure_random(name);
    }
    return !bench.wrong();
  });
}
