// SPDX-License-Identifier: Apache-2.0
// Rates of the CUDA engine on large texts, device memory to device memory: the bound of the kernels themselves. Random
// data, CUDA events around Engine::run, median and spread of the repetitions; the first bytes that each makes are
// checked against the reference engine. Key stream without text has rows of its own: as random bytes, which are
// written, and in registers only. `warpcipher bench --residence device` measures through the package's calls.
//
//   device_rates [--gib N] [--repetitions N] [--kib N] [ALGORITHM]...
//
// --gib: of all text, 4; a fraction may do. --kib: of a message, else all (XTS: 16384).
#include <deque>

#include "device.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "key_stream.cuh"
#include "random/cuda/fill.hpp"
#include "random/fill.hpp"

namespace {

using namespace warpcipher;
using bench::must;
using bench::tag_len;

constexpr std::size_t sample_len = 1 << 15;
const random::Distribution random_bytes = random::Distribution::of_bytes(random::Type::uint8);

class Bench {
 public:
  Bench(std::size_t len, int repetitions, std::size_t message_len)
      : len_(len),
        repetitions_(repetitions),
        message_len_(message_len),
        buffers_(len + len / 64 + tag_len),  // a tag for each KiB: no message is shorter
        stopwatch_(buffers_.native()) {
    fill("chacha20", buffers_.in(), len + len / 64);
  }

  void measure(const Algorithm& algorithm, Direction direction) {
    const bool is_xts = algorithm.mode.id == Mode::xts;
    std::size_t len = is_xts ? std::min(len_, std::size_t{16} << 20) : len_;
    if (message_len_ != 0) len = std::min(message_len_, len);
    sample(algorithm, direction, std::min(len, sample_len));
    const std::vector<double> times = times_of(messages(algorithm, direction, len, len_ / len));
    print(algorithm.name.data(), direction == Direction::encrypt ? "encrypt" : "decrypt", len_ / len * len, times);
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
    check(sum == stream.right(few), stream.name);
    const auto units = static_cast<std::uint32_t>(std::min<std::size_t>(len_ / stream.unit_len, std::size_t{1} << 31));
    print(stream.name, "key stream in registers", std::size_t{units} * stream.unit_len,
          repeated([&] { stream.run(multiprocessors, units, sums, buffers_.native()); }));
  }

  void measure_random(const char* name) {
    const std::vector<double> times = repeated([&] { fill(name, buffers_.out(), len_); });
    std::vector<std::uint8_t> expected(sample_len);
    const random::StreamKey key{random::find_stream_cipher(name), {1}, 0};
    random::fill(key, random_bytes, 0, {expected.data(), expected.size(), Memory::host}, "reference");
    check(bench::read(buffers_.out(), sample_len) == expected, name);
    print(name, "key stream, written", len_, times);
  }

  void measure_copy() {
    print("copy", "", len_, repeated([&] {
            must(cudaMemcpyAsync(buffers_.out(), buffers_.in(), len_, cudaMemcpyDeviceToDevice, buffers_.native()),
                 "cudaMemcpyAsync");
          }));
  }

 private:
  void fill(const char* name, std::uint8_t* bytes, std::size_t len) {
    const random::StreamKey key{random::find_stream_cipher(name), {1}, 0};
    random::cuda::fill(key, random_bytes, 0, bytes, len, 0, buffers_.stream());
  }

  template <class Enqueue>
  std::vector<double> repeated(const Enqueue& enqueue) {
    std::vector<double> times;
    for (int i = 0; i < repetitions_; ++i) times.push_back(stopwatch_.milliseconds(enqueue));
    return times;
  }

  std::vector<double> times_of(const std::vector<Message>& messages) {
    const Plan plan = make_plan(messages, cuda_engine().tile_units());
    std::vector<Status> statuses(messages.size());
    return repeated([&] { cuda_engine().run(plan, statuses, buffers_.stream()); });
  }

  // One after the other, with a tag behind each of an AEAD, under one key.
  std::vector<Message> messages(const Algorithm& algorithm, Direction direction, std::size_t len, std::size_t count) {
    static const std::vector<std::uint8_t> zeros(64);
    static std::vector<std::uint8_t> key_bytes(64);
    for (std::size_t i = 0; i < key_bytes.size(); ++i) key_bytes[i] = static_cast<std::uint8_t>(7 * i + 1);
    Message m;
    m.key = &keys_.emplace_back(algorithm, std::span(key_bytes).first(algorithm.key_len()));
    m.direction = direction;
    m.memory = Memory::device;
    m.in_len = m.out_len = len;
    m.iv = zeros.data();
    m.iv_len = algorithm.iv_len;
    m.tag_len = algorithm.is_aead() ? tag_len : 0;
    std::vector<Message> all(count, m);
    for (std::size_t i = 0; i < count; ++i) {
      all[i].in = buffers_.in() + (len + m.tag_len) * i;
      all[i].out = buffers_.out() + (len + m.tag_len) * i;
      if (m.tag_len != 0) all[i].tag = all[i].out + len;
    }
    return all;
  }

  // A short text by the kernels and by the reference engine.
  void sample(const Algorithm& algorithm, Direction direction, std::size_t len) {
    std::vector<Message> one = messages(algorithm, direction, len, 1);
    Status status = Status::ok;
    cuda_engine().run(make_plan(one, cuda_engine().tile_units()), {&status, 1}, buffers_.stream());
    must(cudaStreamSynchronize(buffers_.native()), "cudaStreamSynchronize");
    std::vector<std::uint8_t> text = bench::read(one[0].in, len);
    text.resize(len + one[0].tag_len);
    one[0].memory = Memory::host;
    one[0].in = one[0].out = text.data();
    if (one[0].tag_len != 0) one[0].tag = text.data() + len;
    reference_engine().run(make_plan(one, reference_engine().tile_units()), {&status, 1}, nullptr);
    check(text == bench::read(buffers_.out(), text.size()), algorithm.name.data());
  }

  static void check(bool good, const char* name) {
    if (!good) throw std::runtime_error(std::string(name) + ": WRONG OUTPUT");
  }

  static void print(const char* name, const char* what, std::size_t len, std::vector<double> times) {
    std::sort(times.begin(), times.end());
    const auto rate = [&](double ms) { return static_cast<double>(len) / 1e6 / ms; };
    std::printf("%-16s %s %9.1f GB/s  (%.1f to %.1f)\n", name, what, rate(bench::median(times)), rate(times.back()),
                rate(times.front()));
    std::fflush(stdout);
  }

  const std::size_t len_;
  const int repetitions_;
  const std::size_t message_len_;  // 0: as long as may be
  bench::Buffers buffers_;
  bench::Stopwatch stopwatch_;
  std::deque<Key> keys_;
};

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program("device_rates", [&] {
    bench::Arguments words("device_rates", argc, argv);
    const double gib = words.take("--gib", 4.0);
    const int repetitions = words.take("--repetitions", 20);
    const std::size_t kib = words.take<std::size_t>("--kib", 0);
    const std::vector<std::string>& only = words.rest(true);
    bench::print_devices();
    Bench bench(static_cast<std::size_t>(1024 * gib) << 20, repetitions, kib << 10);
    const auto wanted = [&](std::string_view name) {
      return only.empty() || std::find(only.begin(), only.end(), name) != only.end();
    };
    bench.measure_copy();
    for (const Algorithm& algorithm : algorithms()) {
      for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
        // The others decrypt by the same kernels.
        const bool ways = direction == Direction::encrypt || !algorithm.parallel(Direction::encrypt) ||
                          algorithm.mode.id == Mode::ecb || algorithm.mode.id == Mode::xts;
        if (wanted(algorithm.name) && cuda_engine().offers(algorithm) && algorithm.parallel(direction) && ways) {
          bench.measure(algorithm, direction);
        }
      }
    }
    for (const bench::KeyStream& stream : bench::key_streams) {
      if (wanted(stream.name)) bench.measure_registers(stream);
    }
    for (const char* const name : {"chacha20", "aes-256-ctr"}) {
      if (wanted(name)) bench.measure_random(name);
    }
    return true;
  });
}
