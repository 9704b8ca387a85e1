// SPDX-License-Identifier: Apache-2.0
// Many threads with messages in host memory through a queue of the C ABI: threads.py has the same with Python's own
// cost of a message. Each thread keeps a window of messages in flight, each with a place of its own. It waits for one
// half of them while the other is in flight, so that it is woken once for many. A latency is the time from before a
// message is submitted until its callback.
//
// Printed are medians over rounds, and of rates the least and the most too. --calls: by turns with as many threads that
// call wc_seal (or wc_encrypt) for each message; the ratio is of neighbours. --batch: no queue; all that the
// threads have in flight is one batch of one caller. --pageable: not page-locked, as memory is without a GPU.
//
// The last result of each place is compared with the result of a call of its own.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <thread>

#include "frame.hpp"
#include "warpcipher.hpp"

#if WARPCIPHER_HAS_CUDA
#include <cuda_runtime_api.h>
#endif

namespace {

using warpcipher::bench::Clock;
using warpcipher::bench::median;

constexpr std::size_t tag_len = 16;

struct Options {
  warpcipher::bench::Arguments words;
  const std::string engine = words.take<std::string>("--engine", "cuda");
  const std::string algorithm = words.take<std::string>("--algorithm", "aes-128-gcm");
  const std::size_t threads = words.take<std::size_t>("--threads", 16);
  const std::size_t size = words.take("--size", std::size_t{16} << 10);
  const std::size_t window = words.take<std::size_t>("--window", 64);
  const std::size_t in_flight = words.take<std::size_t>("--in-flight", 0);  // 0: the queue's own number
  const std::uint64_t delay = words.take<std::uint64_t>("--delay", 200);
  // In 50 ms the one stop that the first page-locked memory costs would be half the figure.
  const double seconds = words.take("--seconds", 0.5);
  const std::size_t rounds = words.take<std::size_t>("--rounds", 5);
  const bool pageable = words.take("--pageable", false);
  const bool calls = words.take("--calls", false);
  const bool batch = words.take("--batch", false);
};

using Bytes = std::unique_ptr<unsigned char, void (*)(void*)>;

Bytes host_memory(std::size_t len, [[maybe_unused]] bool pageable) {
  void* memory = nullptr;
#if WARPCIPHER_HAS_CUDA
  if (!pageable && cudaMallocHost(&memory, len) == cudaSuccess) {
    return {static_cast<unsigned char*>(memory), [](void* bytes) { cudaFreeHost(bytes); }};
  }
#endif
  memory = std::malloc(len);
  if (memory == nullptr) throw std::bad_alloc();
  return {static_cast<unsigned char*>(memory), std::free};
}

// A key, and what its algorithm takes.
struct Algorithm {
  explicit Algorithm(const std::string& name)
      : info(find(name)), key(name, std::vector<unsigned char>(info.key_len, 0x5a)) {}

  static wc_algorithm_info find(const std::string& name) {
    for (const wc_algorithm_info& info : warpcipher::algorithms()) {
      if (name == info.name) return info;
    }
    throw std::runtime_error("no algorithm " + name);
  }

  const wc_algorithm_info info;
  const warpcipher::key key;
  // 12 bytes where any number would do.
  const std::size_t iv_len = info.iv_rule == WC_IV_NONE ? 0 : info.iv_rule == WC_IV_ANY ? 12 : info.block_len;
};

// One thread's messages and where they lie, in two halves.
class Client {
 public:
  Client(const Options& options, const Algorithm& algorithm, std::size_t number)
      : algorithm_(algorithm),
        number_(number),
        size_(options.size),
        stride_((options.size + tag_len + 255) / 256 * 256),
        in_(host_memory(stride_ * options.window, options.pageable)),
        out_(host_memory(stride_ * options.window, options.pageable)),
        places_(options.window) {
    std::memset(in_.get(), static_cast<int>(number), stride_ * options.window);
    for (std::size_t i = 0; i < places_.size(); ++i) {
      places_[i].client = this;
      places_[i].half = &halves_[2 * i / places_.size()];
    }
  }

  std::uint64_t call_until(const std::atomic<bool>& stop) {
    std::uint64_t count = 0;
    for (; !stop; ++count) call(message(count % places_.size()));
    return count;
  }

  std::uint64_t submit_until(const std::atomic<bool>& stop, warpcipher::queue& queue) {
    latencies.clear();
    std::uint64_t count = 0;
    Half* half = nullptr;
    for (; !stop; ++count) {
      const std::size_t i = count % places_.size();
      Place& place = places_[i];
      if (i == 0 || place.half != half) (half = place.half)->wait();
      if (count >= places_.size()) latencies.push_back(place.latency);
      const wc_message& its_message = message(i);
      ++half->pending;
      place.begin = Clock::now();
      queue.submit(its_message, report, &place, number_);
    }
    for (Half& other : halves_) other.wait();
    if (failed_) throw std::runtime_error("a message failed");
    return count;
  }

  // One message in each place.
  void append_all(std::vector<wc_message>& messages) {
    for (std::size_t i = 0; i < places_.size(); ++i) messages.push_back(message(i));
  }

  // Makes again what each place has, by a call of its own, and compares.
  void compare() const {
    for (const Place& place : places_) {
      if (place.message.key == nullptr) continue;
      const auto* const out = static_cast<const unsigned char*>(place.message.out);
      const std::vector<unsigned char> made(out, out + size_ + place.message.tag_len);
      call(place.message);
      if (!std::equal(made.begin(), made.end(), out)) throw std::runtime_error("WRONG OUTPUT");
    }
  }

  std::vector<double> latencies;  // seconds, of the last submit_until()

 private:
  struct Half {
    std::atomic<std::uint32_t> pending{0};
    void wait() const {
      for (std::uint32_t now = pending; now != 0; now = pending) pending.wait(now);
    }
  };

  struct Place {
    Client* client = nullptr;
    Half* half = nullptr;
    unsigned char iv[16] = {};
    wc_message message = {};
    Clock::time_point begin;
    double latency = 0;
  };

  // The message of a place, with an IV that was not used before.
  const wc_message& message(std::size_t i) {
    Place& place = places_[i];
    ++nonces_;
    std::memcpy(place.iv, &nonces_, std::min(algorithm_.iv_len, sizeof nonces_));
    if (algorithm_.iv_len > sizeof nonces_) place.iv[8] = static_cast<unsigned char>(number_);
    wc_message& m = place.message;
    unsigned char* const out = out_.get() + stride_ * i;
    m = warpcipher::message(algorithm_.key, WC_ENCRYPT, {out, size_}, {in_.get() + stride_ * i, size_},
                            {place.iv, algorithm_.iv_len});
    if (algorithm_.info.is_aead) {
      m.tag = out + size_;
      m.tag_len = tag_len;
    }
    return m;
  }

  void call(const wc_message& m) const {
    const warpcipher::view in{m.in, m.in_len}, iv{m.iv, m.iv_len};
    if (m.tag_len != 0) {
      warpcipher::seal(algorithm_.key, {m.out, m.in_len + tag_len}, in, iv);
    } else {
      warpcipher::encrypt(algorithm_.key, {m.out, m.in_len}, in, iv);
    }
  }

  static void report(void* context, const wc_result* result, const char*) {
    auto* const place = static_cast<Place*>(context);
    place->latency = warpcipher::bench::seconds(place->begin, Clock::now());
    if (result->status != WC_OK) place->client->failed_ = true;
    if (--place->half->pending == 0) place->half->pending.notify_one();
  }

  const Algorithm& algorithm_;
  const std::size_t number_, size_, stride_;
  const Bytes in_, out_;
  std::uint64_t nonces_ = 0;
  std::atomic<bool> failed_{false};
  Half halves_[2];
  std::vector<Place> places_;
};

using Clients = std::vector<std::unique_ptr<Client>>;

// GB/s of text while all clients go their way for a while.
template <class Way>
double rate(const Options& options, Clients& clients, const Way& way) {
  std::atomic<bool> stop{false};
  std::vector<std::future<std::uint64_t>> counts;
  const auto begin = Clock::now();
  for (auto& client : clients) {
    counts.push_back(std::async(std::launch::async, [&] { return way(*client, stop); }));
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  stop = true;
  std::uint64_t messages = 0;
  for (auto& count : counts) messages += count.get();
  const double seconds = warpcipher::bench::seconds(begin, Clock::now());
  return static_cast<double>(messages) * static_cast<double>(options.size) / 1e9 / seconds;
}

void print(const char* what, const std::vector<double>& values, const char* unit) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  std::printf("%s %.4g%s (%.4g to %.4g)", what, median(values), unit, *least, *most);
}

void measure_queue(const Options& options, Clients& clients) {
  wc_queue_limits limits = {};
  limits.max_delay_us = options.delay;
  limits.max_in_flight = options.in_flight;
  warpcipher::queue queue(options.engine.c_str(), limits);
  std::vector<double> called, queued, ratios, latencies[2];
  for (std::size_t round = 0; round <= options.rounds; ++round) {
    double one = 0;
    if (options.calls) {
      one = rate(options, clients, [](Client& client, const auto& stop) { return client.call_until(stop); });
    }
    const double other =
        rate(options, clients, [&](Client& client, const auto& stop) { return client.submit_until(stop, queue); });
    if (round == 0) continue;  // it finds no memory kept
    called.push_back(one);
    queued.push_back(other);
    ratios.push_back(other / one);
    std::vector<double> all;
    for (auto& client : clients) all.insert(all.end(), client->latencies.begin(), client->latencies.end());
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i < 2 && !all.empty(); ++i) {
      latencies[i].push_back(1e6 * all[(all.size() - 1) * (i == 0 ? 50 : 99) / 100]);
    }
  }
  const wc_queue_statistics counts = queue.statistics();
  print("queue", queued, " GB/s");
  for (std::size_t i = 0; i < 2 && !latencies[i].empty(); ++i) {
    std::printf(", %s %.0f us", i == 0 ? "p50" : "p99", median(latencies[i]));
  }
  const double batches = static_cast<double>(std::max<std::uint64_t>(counts.batches, 1));
  std::printf(", %.0f messages a batch\n", static_cast<double>(counts.messages) / batches);
  if (!options.calls) return;
  print("a call each", called, " GB/s");
  print("; the queue makes", ratios, " times that");
  std::puts("");
}

void measure_batch(const Options& options, Clients& clients) {
  std::vector<double> rates;
  for (std::size_t round = 0; round <= options.rounds; ++round) {
    std::vector<wc_message> messages;
    for (auto& client : clients) client->append_all(messages);
    const auto begin = Clock::now();
    warpcipher::run(messages, options.engine.c_str());
    const double taken = warpcipher::bench::seconds(begin, Clock::now());
    if (round != 0) rates.push_back(static_cast<double>(messages.size() * options.size) / 1e9 / taken);
  }
  print("one batch", rates, " GB/s");
  std::puts("");
}

}  // namespace

int main(int argc, char** argv) {
  return warpcipher::bench::run_program("queue_threads", [&] {
    const Options options{{"queue_threads", argc, argv}};
    options.words.rest();
    const Algorithm algorithm(options.algorithm);
    Clients clients;
    for (std::size_t i = 0; i < options.threads; ++i) {
      clients.push_back(std::make_unique<Client>(options, algorithm, i));
    }
    std::printf("%s, engine %s, %zu threads, messages of %zu bytes, %zu in flight each\n", options.algorithm.c_str(),
                options.engine.c_str(), options.threads, options.size, options.window);
    (options.batch ? measure_batch : measure_queue)(options, clients);
    for (auto& client : clients) client->compare();
    return true;
  });
}
