// SPDX-License-Identifier: Apache-2.0
// Does the time of the default kernels of AES, ChaCha20, trees and point functions tell anything of keys or data?
// Launches of two classes in random order, a fixed key and a fixed text against fresh random ones, and Welch's t of
// their times (Reparaz, Balasch and Verbauwhede: "dude, is my code constant time?", 2017): below 4.5 nothing shows.
// Classic tables of 4 KiB, which must show their leak, are the control: a test that could not see one would prove
// nothing.
//
//   device_constant_time [--launches N] [--only NAME]   a line for each kernel and choice of the fixed class:
//                                       timing NAME TEXT LAUNCHES T DIFFERENCE% MICROSECONDS VERDICT
//   device_constant_time --count [--only NAME]          each kernel on each kind of data, thrice, for ncu to count:
//                                                       a line "case NAME DATA" for each, in order, and a launch of
//                                                       fill_kernel before it (constant_time.py puts them together)
//
// Exits 1 when a kernel of the library shows what it should not, or the control nothing.
#include <cmath>
#include <functional>
#include <random>

#include "engine/cuda/aes/cipher.cuh"
#include "engine/cuda/aes/source.cuh"
#include "engine/cuda/inputs/keys.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "engine/cuda/runtime/launch.hpp"
#include "engine/device_engine.hpp"
#include "frame.hpp"
#include "message/plan.hpp"
#include "prg/prg.hpp"

namespace {

using namespace warpcipher;
using namespace warpcipher::cuda;

// ---- kernels in addition to the engine's: texts made on the device, lookups without memory traffic, the control -----

// Texts are made by arithmetic that is the same for all: block i is (a hash of seed and i) & mask ^ value.
struct Pattern {
  std::uint32_t seed;
  std::uint32_t mask;  // 0: every word is `value`
  std::uint32_t value;
};

constexpr std::uint32_t fill_threads = 256;
constexpr std::uint32_t lookup_threads = 1024;  // a block a multiprocessor
constexpr std::uint32_t steps = 64;             // of four blocks a lane
constexpr std::uint32_t rounds = 10;

__device__ __forceinline__ Block generate(const Pattern& pattern, std::uint32_t i) {
  Block block;
#pragma unroll
  for (std::uint32_t w = 0; w < 4; ++w) {  // the finaliser of MurmurHash3
    std::uint32_t x = pattern.seed ^ (4 * i + w);
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    block.words[w] = ((x ^ x >> 16) & pattern.mask) ^ pattern.value;
  }
  return block;
}

__global__ void __launch_bounds__(fill_threads) fill_kernel(std::uint8_t* text, std::size_t blocks, Pattern pattern) {
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < blocks;
       i += std::size_t{gridDim.x} * blockDim.x) {
    store_aligned(text + 16 * i, generate(pattern, static_cast<std::uint32_t>(i)));
  }
}

__global__ void spin_kernel(std::uint32_t clocks) {
  const std::int64_t start = clock64();
  while (clock64() - start < clocks) {
  }
}

struct LookupSource {
  Pattern pattern;
  std::uint32_t schedule[lane_table::most_schedule_words];
  std::uint32_t* sink;
};

template <bool Inverse>
struct LaneTables {
  using Key = lane_table::ParameterKey;
  static constexpr std::uint32_t shared_len = lane_table::Tables128::shared_len;

  static __device__ __forceinline__ void fill() { lane_table::fill_tables<lane_table::Tables128, Inverse>(); }
  template <int N>
  static __device__ __forceinline__ void encrypt(const Key& key, Block (&blocks)[N]) {
    lane_table::LaneCipher<lane_table::Tables128, Inverse, rounds, Key>(key, rounds)(blocks);
  }
};

// One copy of T0 to T3 for all lanes, the address a secret byte: lanes that want different words of a bank wait for
// each other.
struct LeakingTables {
  using Key = lane_table::ParameterKey;
  static constexpr std::uint32_t shared_len = 4 * 256 * sizeof(std::uint32_t);

  static __device__ __forceinline__ std::uint32_t* tables() {
    return reinterpret_cast<std::uint32_t*>(lane_table::shared_tables);
  }
  static __device__ __forceinline__ void fill() {
    for (std::uint32_t i = threadIdx.x; i < 1024; i += blockDim.x) {
      tables()[i] = rotate_left(lane_table::encryption_table.words[i % 256], 8 * (i / 256));
    }
  }
  static __device__ __forceinline__ std::uint32_t look_up(std::uint32_t table, std::uint32_t word) {
    return tables()[256 * table + (word >> 8 * table & 0xff)];
  }
  template <int N>
  static __device__ __forceinline__ void encrypt(const Key& key, Block (&blocks)[N]) {
#pragma unroll
    for (Block& block : blocks) block = block ^ key.round(0);
#pragma unroll
    for (std::uint32_t r = 1; r <= rounds; ++r) {  // the last with MixColumns: all the same for what is shown
      for (Block& block : blocks) {
        const Block s = block;
#pragma unroll
        for (std::uint32_t c = 0; c < 4; ++c) {
          block.words[c] = look_up(0, s.words[c]) ^ look_up(1, s.words[(c + 1) % 4]) ^
                           look_up(2, s.words[(c + 2) % 4]) ^ look_up(3, s.words[(c + 3) % 4]);
        }
        block = block ^ key.round(r);
      }
    }
  }
};

// A block of threads a multiprocessor encrypts blocks of the pattern in registers and keeps one word of what they are
// XORed together; the global memory that it touches is `sink`, a word for each of its threads.
template <class Tables>
__global__ void __launch_bounds__(lookup_threads, 1) lookup_kernel(const __grid_constant__ LookupSource source) {
  Tables::fill();
  __syncthreads();
  const typename Tables::Key key{source.schedule};
  const std::uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  Block sum{};
#pragma unroll 1
  for (std::uint32_t step = 0; step < steps; ++step) {
    Block blocks[4];
#pragma unroll
    for (std::uint32_t n = 0; n < 4; ++n) blocks[n] = generate(source.pattern, (thread * steps + step) * 4 + n);
    Tables::encrypt(key, blocks);
#pragma unroll
    for (const Block& block : blocks) sum = sum ^ block;
  }
  source.sink[thread] = sum.words[0] ^ sum.words[1] ^ sum.words[2] ^ sum.words[3];
}

template <class Tables>
void launch_lookups(const LookupSource& source, std::uint32_t multiprocessors, cudaStream_t stream) {
  launch(&lookup_kernel<Tables>, LaunchConfiguration{multiprocessors, lookup_threads, Tables::shared_len}, stream,
         source);
}

using Launch = void (*)(const LookupSource& source, std::uint32_t multiprocessors, cudaStream_t stream);

// ---- launches -------------------------------------------------------------------------------------------------------

constexpr std::size_t text_len = std::size_t{32} << 20;
constexpr std::uint32_t spin_clocks = 300'000;  // 0.15 ms: longer than the host takes to enqueue a launch
constexpr double threshold = 4.5;               // the usual one: one test in 150,000 passes it by chance
// Lanes that read one row leave a little more room for what goes to and comes from global memory.
constexpr double most_of_equal_blocks = 0.01;
constexpr double least_leak = 0.2;   // of the control
constexpr int counted_launches = 3;  // with the same data: the work of two kinds of warps depends on who is faster
constexpr double kept = 0.95;        // of the launches, the fastest: other work of the machine has no class

std::mt19937_64 generator(std::random_device{}());

std::uint32_t random_word() { return static_cast<std::uint32_t>(generator()); }

Pattern random_text() { return {random_word(), 0xffffffffu, 0}; }

// ---- memory and time ------------------------------------------------------------------------------------------------

constexpr std::size_t tag_len = 16;

// A text of `len` bytes on the current device, as much room for results, and a stream.
class Buffers {
 public:
  explicit Buffers(std::size_t len) {
    for (std::uint8_t** bytes : {&in_, &out_}) {
      check(cudaMalloc(reinterpret_cast<void**>(bytes), len), "get memory");
      check(cudaMemset(*bytes, 0x5a, len), "fill memory");
    }
    check(cudaDeviceSynchronize(), "wait for the device");  // other streams do not wait for it
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() {
    cuda_engine().destroy_stream(stream_);
    cudaFree(in_);
    cudaFree(out_);
  }

  std::uint8_t* in() const { return in_; }
  std::uint8_t* out() const { return out_; }
  Stream stream() const { return stream_; }

 private:
  std::uint8_t *in_ = nullptr, *out_ = nullptr;
  const Stream stream_ = cuda_engine().create_stream();
};

// Time on a device between two points of a stream.
class Stopwatch {
 public:
  explicit Stopwatch(Stream stream) : stream_(native(stream)) {
    check(cudaEventCreate(&start_), "make an event");
    check(cudaEventCreate(&stop_), "make an event");
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }

  // Milliseconds that the work which `enqueue` puts on the stream takes. Waits for it.
  template <class Enqueue>
  double milliseconds(Enqueue&& enqueue) {
    check(cudaEventRecord(start_, stream_), "record an event");
    enqueue();
    check(cudaEventRecord(stop_, stream_), "record an event");
    check(cudaEventSynchronize(stop_), "wait for an event");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, start_, stop_), "read the time between events");
    return static_cast<double>(ms);
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

// ---- launches -------------------------------------------------------------------------------------------------------

// The input of one launch. A key is an object of its own in every launch, so that what the host derives is too.
struct Input {
  std::vector<std::uint8_t> key;
  Pattern text;
};

// The launch of a kernel of warpcipher.prg, where the input is prepared. Texts are seeds. Of a key, point functions are
// made, whose points are all the same if the blocks of the text are. A table is public: it is the same for all.
using Prepare = std::function<void()> (*)(const Input& input, const Buffers& buffers);

constexpr std::size_t record_len = 256, records = text_len / record_len;

template <prg::Generator G>
std::function<void()> prepare_children(const Input&, const Buffers& buffers) {
  return [&buffers] {
    prg::expand(G, {buffers.in(), text_len / 2}, 2, {buffers.out(), text_len},
                {Memory::device, buffers.stream(), "cuda"});
  };
}

template <prg::Generator G, bool Answers>
std::function<void()> prepare_points(const Input& input, const Buffers& buffers) {
  constexpr std::size_t count = 64;
  const prg::Domain domain{G, Answers ? prg::Group::gf2 : prg::Group::u32, 17};
  std::seed_seq seeds(input.key.begin(), input.key.end());
  std::mt19937 random(seeds);
  std::vector<std::uint64_t> points(count);
  for (std::uint64_t& point : points) point = (input.text.mask == 0 ? input.text.value : random()) % records;
  if (Answers) {
    cuda::launch(&fill_kernel, {1024, fill_threads}, buffers.stream(), buffers.in(), text_len / 16,
                 Pattern{1, 0xffffffffu, 0});
  }
  std::vector<std::uint8_t> roots(32 * count), first(domain.record_len() * count), second(first.size());
  for (std::uint8_t& byte : roots) byte = static_cast<std::uint8_t>(random());
  prg::generate(domain, points, std::vector<std::uint64_t>(count, 1), roots, first, second);
  return [&buffers, domain, first] {
    const prg::PointKeys keys{domain, 0, first};
    const prg::Place place{Memory::device, buffers.stream(), "cuda"};
    if constexpr (Answers) {
      prg::answer(keys, {buffers.in(), text_len}, record_len, {buffers.out(), count * record_len}, place);
    } else {
      prg::evaluate_all(keys, {buffers.out(), text_len}, place);
    }
  };
}

struct Kernel {
  const char* name;
  const char* algorithm;  // of the engine, or
  Launch lookups;         // kernels of this benchmark
  Direction direction;
  // It should show: nothing; nothing but that all blocks of a text are equal, which its ciphertext shows as well;
  // or its data.
  enum Shows { nothing, equal_blocks, data } shows;
  Prepare prg = nullptr;
};

using enum prg::Generator;

constexpr Kernel kernels[] = {
    {"lookups-alone", nullptr, launch_lookups<LaneTables<false>>, Direction::encrypt, Kernel::equal_blocks},
    {"lookups-alone-inverse", nullptr, launch_lookups<LaneTables<true>>, Direction::encrypt, Kernel::equal_blocks},
    {"aes-128-ctr", "aes-128-ctr", nullptr, Direction::encrypt, Kernel::nothing},
    {"aes-256-ctr", "aes-256-ctr", nullptr, Direction::encrypt, Kernel::nothing},
    {"aes-128-ecb", "aes-128-ecb", nullptr, Direction::encrypt, Kernel::equal_blocks},
    {"aes-128-ecb-decrypt", "aes-128-ecb", nullptr, Direction::decrypt, Kernel::equal_blocks},
    {"aes-128-cbc-decrypt", "aes-128-cbc", nullptr, Direction::decrypt, Kernel::equal_blocks},
    {"aes-128-xts", "aes-128-xts", nullptr, Direction::encrypt, Kernel::nothing},
    {"aes-128-xts-decrypt", "aes-128-xts", nullptr, Direction::decrypt, Kernel::nothing},
    {"aes-128-gcm", "aes-128-gcm", nullptr, Direction::encrypt, Kernel::nothing},
    {"aes-128-gcm-decrypt", "aes-128-gcm", nullptr, Direction::decrypt, Kernel::equal_blocks},
    {"aes-256-gcm", "aes-256-gcm", nullptr, Direction::encrypt, Kernel::nothing},
    {"chacha20", "chacha20", nullptr, Direction::encrypt, Kernel::nothing},
    {"chacha20-poly1305", "chacha20-poly1305", nullptr, Direction::encrypt, Kernel::nothing},
    {"chacha20-poly1305-decrypt", "chacha20-poly1305", nullptr, Direction::decrypt, Kernel::nothing},
    {"xchacha20-poly1305", "xchacha20-poly1305", nullptr, Direction::encrypt, Kernel::nothing},
    {"expand-aes-128-mmo", nullptr, nullptr, Direction::encrypt, Kernel::equal_blocks, prepare_children<aes128_mmo>},
    {"expand-aes-128-keyed", nullptr, nullptr, Direction::encrypt, Kernel::equal_blocks,
     prepare_children<aes128_keyed>},
    {"expand-chacha20", nullptr, nullptr, Direction::encrypt, Kernel::nothing, prepare_children<chacha20>},
    {"points-aes-128-mmo", nullptr, nullptr, Direction::encrypt, Kernel::nothing, prepare_points<aes128_mmo, false>},
    {"points-aes-128-half", nullptr, nullptr, Direction::encrypt, Kernel::nothing, prepare_points<aes128_half, false>},
    {"answer-aes-128-half", nullptr, nullptr, Direction::encrypt, Kernel::nothing, prepare_points<aes128_half, true>},
    {"control-4-KiB-tables", nullptr, launch_lookups<LeakingTables>, Direction::encrypt, Kernel::data},
};

class Bench {
 public:
  Bench() : device_(cuda::current_device()), buffers_(text_len + tag_len), stopwatch_(buffers_.stream()) {}

  // Microseconds of one launch.
  double launch(const Kernel& kernel, const Input& input) {
    const Key key(algorithm_of(kernel), input.key);
    const std::vector<std::uint8_t> iv(key.algorithm().iv_len, 5);
    cuda::launch(&fill_kernel, {1024, fill_threads}, buffers_.stream(), buffers_.in(), text_len / 16, input.text);
    Message m;
    m.key = &key;
    m.direction = kernel.direction;
    m.memory = Memory::device;
    m.in = buffers_.in();
    m.out = buffers_.out();
    m.in_len = m.out_len = text_len / (key.algorithm().mode.id == Mode::xts ? 2 : 1);  // a data unit's most
    m.iv = iv.data();
    m.iv_len = iv.size();
    if (key.algorithm().is_aead()) {
      m.tag = buffers_.out() + text_len;
      m.tag_len = tag_len;
      m.compute_tag = kernel.direction == Direction::decrypt;
    }
    if (kernel.prg != nullptr) {
      const std::function<void()> run = kernel.prg(input, buffers_);
      spin();
      return 1e3 * stopwatch_.milliseconds(run);
    }
    if (kernel.algorithm == nullptr) return launch_own(kernel, input, key);
    const Plan plan = make_plan({&m, 1}, cuda_engine().tile_units());
    Status status = Status::ok;
    spin();
    return 1e3 * stopwatch_.milliseconds([&] { cuda_engine().run(plan, {&status, 1}, buffers_.stream()); });
  }

  static const Algorithm& algorithm_of(const Kernel& kernel) {
    return find_algorithm(kernel.algorithm == nullptr ? "aes-128-ecb" : kernel.algorithm);
  }

  static std::vector<std::uint8_t> random_key(const Kernel& kernel) {
    std::vector<std::uint8_t> key(algorithm_of(kernel).key_len());
    for (std::uint8_t& byte : key) byte = static_cast<std::uint8_t>(generator());
    return key;
  }

 private:
  double launch_own(const Kernel& kernel, const Input& input, const Key& key) {
    const cuda::AesKeyState state(key);
    LookupSource source{input.text, {}, reinterpret_cast<std::uint32_t*>(buffers_.out())};
    const std::uint32_t* const words = state.words(kernel.lookups == launch_lookups<LaneTables<true>>);
    std::copy(words, words + lane_table::most_schedule_words, source.schedule);
    spin();
    return 1e3 *
           stopwatch_.milliseconds([&] { kernel.lookups(source, device_.multiprocessors, native(buffers_.stream())); });
  }

  // Keeps the device busy while the host enqueues what is to be measured.
  void spin() { cuda::launch(&spin_kernel, {1, 1}, buffers_.stream(), spin_clocks); }

  const cuda::Device& device_;
  Buffers buffers_;
  Stopwatch stopwatch_;
};

struct Mean {
  double mean = 0;
  double of_mean = 0;  // its variance
};

Mean mean_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Mean result;
  for (const double value : values) result.mean += value / n;
  for (const double value : values) result.of_mean += std::pow(value - result.mean, 2) / (n - 1) / n;
  return result;
}

// Returns whether what it shows is what it should show. one_block: the fixed text has one block, again and again, so
// that where states are not counters all lanes look up the same.
bool time_kernel(Bench& bench, const Kernel& kernel, bool one_block, const Input& fixed, int launches) {
  for (int i = 0; i < 20; ++i) bench.launch(kernel, fixed);
  std::vector<double> times;
  std::vector<bool> is_fixed;
  for (int i = 0; i < launches; ++i) {
    is_fixed.push_back(generator() % 2 == 0);
    const Input fresh{Bench::random_key(kernel), random_text()};
    times.push_back(bench.launch(kernel, is_fixed.back() ? fixed : fresh));
  }
  std::vector<double> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  const double slowest = sorted[static_cast<std::size_t>(kept * static_cast<double>(launches - 1))];
  std::vector<double> classes[2];
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i] <= slowest) classes[is_fixed[i] ? 0 : 1].push_back(times[i]);
  }
  const Mean a = mean_of(classes[0]);
  const Mean b = mean_of(classes[1]);
  const double spread = std::sqrt(a.of_mean + b.of_mean);
  const double t = spread > 0 ? (a.mean - b.mean) / spread : 0;
  const double difference = (a.mean - b.mean) / b.mean;
  bool good = std::abs(t) < threshold;
  if (kernel.shows == Kernel::data) good = std::abs(difference) > least_leak;
  if (kernel.shows == Kernel::equal_blocks && one_block) good = std::abs(difference) < most_of_equal_blocks;
  std::printf("timing %-25s %-12s %6d %9.2f %8.3f%% %9.2f %s\n", kernel.name, one_block ? "one-block" : "random",
              launches, t, 100 * difference, b.mean, good ? "ok" : "FAILED");
  std::fflush(stdout);
  return good;
}

void count(Bench& bench, const Kernel& kernel) {
  const std::vector<std::uint8_t> key = Bench::random_key(kernel);
  const Pattern random = random_text();
  const struct {
    const char* name;
    Input input;
  } cases[] = {
      {"zeros", {key, {0, 0, 0}}},
      {"equal-bytes", {key, {0, 0, 0xa7a7a7a7u}}},
      {"random", {key, random}},
      {"random-key", {Bench::random_key(kernel), random}},
  };
  for (int launch = 0; launch < counted_launches; ++launch) {
    for (const auto& each : cases) {
      std::printf("case %s %s\n", kernel.name, each.name);
      std::fflush(stdout);
      bench.launch(kernel, each.input);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program("device_constant_time", [&] {
    bench::Arguments words("device_constant_time", argc, argv);
    const bool counts = words.take("--count", false);
    const auto only = words.take<std::string>("--only", "");
    const int launches = words.take("--launches", 2000);
    words.rest();
    const std::string& reason = cuda_engine().unavailable_reason();
    if (!reason.empty()) throw std::runtime_error(reason);
    for (const std::string& device : cuda_engine().devices()) std::printf("%s\n", device.c_str());
    Bench bench;
    bool good = true;
    for (const Kernel& kernel : kernels) {
      if (!only.empty() && only != kernel.name) continue;
      if (counts) {
        count(bench, kernel);
        continue;
      }
      const std::vector<std::uint8_t> key = Bench::random_key(kernel);
      good &= time_kernel(bench, kernel, true, {key, {0, 0, 0}}, std::max(100, launches));
      // In a random text the control has as many conflicts as in any other: it says nothing there.
      if (kernel.shows != Kernel::data) {
        good &= time_kernel(bench, kernel, false, {key, random_text()}, std::max(100, launches));
      }
    }
    return good;
  });
}
