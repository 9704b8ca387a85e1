// SPDX-License-Identifier: Apache-2.0
// Many threads with AES-128-GCM messages in host memory through a Queue on the `cuda` engine, in C++: threads.py with
// it measures the same with Python's own cost of a message. Each thread keeps a window of messages in flight, each with
// a place of its own in memory; a latency is the time from before submit() until the queue's listener hears of it.
//
//   queue_threads [--threads N] [--size BYTES] [--messages N] [--window N] [--in-flight N] [--delay US] [--pageable]
//                 [--no-engine] [--batch]
//
// --delay: one age limit rather than 0, 200 and 1000 us. --no-engine: payloads are checked and then left as they are,
// which shows the cost of the queue and its clients. --batch: no queue; all that the threads have in flight is one
// batch of one caller.
//
// Without --batch each repetition has a queue, and so workers, of its own, and moves 17 GB, half a second's worth: in
// 50 ms the one stop that the library's first page-locked memory costs would be half the figure. None is left out.
// Printed are medians, and of rates the least and the most too.
//
// Also, in the same run, the rate of the link from and to page-locked memory, both ways at once. The first and the
// last message of each thread are checked against the reference engine.
#include <atomic>
#include <thread>

#include "device.hpp"
#include "dispatch/run.hpp"
#include "queue/queue.hpp"

namespace {

using namespace warpcipher;
using bench::Clock;
using bench::median;
using bench::seconds;
using bench::tag_len;

constexpr std::size_t iv_len = 12;
constexpr int repetitions = 5;

struct Options {
  std::size_t threads = 16;
  std::size_t size = std::size_t{16} << 10;
  std::size_t messages = 65536;  // of each thread
  std::size_t window = 64;
  std::size_t in_flight = default_in_flight("cuda");
  std::vector<int> delays = {0, 200, 1000};
  bool pageable = false;
  bool no_engine = false;
  bool batch = false;

  bench::Bytes::Where where() const { return pageable ? bench::Bytes::Where::pageable : bench::Bytes::Where::pinned; }
};

Runner runner_for(const Options& options) {
  return [&options](std::span<const Message> messages, std::span<Result> results) {
    if (options.no_engine) return check_messages(messages);
    run("cuda", messages, results);
  };
}

// A client waits at this. It is rung once a payload, however many of its messages are in there.
struct Bell {
  std::atomic<std::uint32_t> rung{0};
  std::atomic<bool> awaited{false};

  void ring() {
    rung.fetch_add(1);
    if (awaited) rung.notify_one();
  }
};

struct TimedJob final : Job {
  TimedJob(const Message& message, Bell& at) : Job(message), bell(at), begin(std::chrono::steady_clock::now()) {}

  Bell& bell;
  const std::chrono::steady_clock::time_point begin;
  double latency = 0;  // seconds; of meaning once `told`
  std::atomic<bool> told{false};

  void wait() {
    while (!told) {
      const std::uint32_t rung = bell.rung;
      bell.awaited = true;
      if (!told) bell.rung.wait(rung);
      bell.awaited = false;
    }
  }
};

void tell(std::span<const std::shared_ptr<Job>> jobs) {
  const auto now = Clock::now();
  std::vector<Bell*> bells;
  for (const auto& job : jobs) {
    auto& timed = static_cast<TimedJob&>(*job);
    // A payload takes each client's messages in turn: neighbours are mostly of one.
    if (bells.empty() || bells.back() != &timed.bell) {
      if (std::find(bells.begin(), bells.end(), &timed.bell) == bells.end()) bells.push_back(&timed.bell);
    }
    timed.latency = seconds(timed.begin, now);
    timed.told = true;
  }
  for (Bell* const bell : bells) bell->ring();
}

// One client: its messages lie in `window` places, used in turn.
class Client {
 public:
  Client(const Options& options, const Key& key, std::size_t number)
      : options_(options),
        key_(key),
        number_(number),
        place_((options.size + tag_len + 255) / 256 * 256),
        in_(place_ * options.window, options.where()),
        out_(place_ * options.window, options.where()),
        ivs_(options.window * iv_len) {}

  void run(Queue& queue) {
    std::vector<std::shared_ptr<TimedJob>> jobs(options_.window);
    latencies_.clear();
    latencies_.reserve(options_.messages);
    checked_.clear();
    for (std::size_t i = 0; i < options_.messages + options_.window; ++i) {
      std::shared_ptr<TimedJob>& job = jobs[i % options_.window];
      if (job != nullptr) settle(*job, i - options_.window);
      job.reset();
      if (i >= options_.messages) continue;
      job = std::make_shared<TimedJob>(message(i), bell_);
      if (queue.submit(job, number_) != Queue::Admission::accepted) throw std::runtime_error("not admitted");
    }
  }

  // One message in each place.
  void append_all(std::vector<Message>& messages) {
    for (std::size_t i = 0; i < options_.window; ++i) messages.push_back(message(i));
  }

  const std::vector<double>& latencies() const { return latencies_; }

  // For check(), before the message's place is used again.
  void keep(const Message& m) { checked_.push_back({m, {m.iv, m.iv + iv_len}, {m.out, m.tag + tag_len}}); }

  // Compares what was kept with the reference engine. Not while others are timed: it takes milliseconds a message.
  void check() const {
    for (const Checked& checked : checked_) {
      Message m = checked.message;
      m.iv = checked.iv.data();
      if (bench::by_reference(m, m.in_len) != checked.sealed) throw std::runtime_error("WRONG OUTPUT");
    }
  }

 private:
  Message message(std::size_t i) {
    const std::size_t at = i % options_.window;
    store_be64(ivs_.data() + iv_len * at, ++nonces_);
    ivs_[iv_len * at + iv_len - 1] = static_cast<std::uint8_t>(number_);
    Message m;
    m.key = &key_;
    m.in = in_.data() + place_ * at;
    m.out = out_.data() + place_ * at;
    m.in_len = m.out_len = options_.size;
    m.iv = ivs_.data() + iv_len * at;
    m.iv_len = iv_len;
    m.tag = m.out + options_.size;
    m.tag_len = tag_len;
    return m;
  }

  void settle(TimedJob& job, std::size_t i) {
    job.wait();
    if (!job.failure().empty()) throw std::runtime_error(job.failure());
    latencies_.push_back(job.latency);
    if (options_.no_engine || (i != 0 && i + 1 != options_.messages)) return;
    keep(job.message());
  }

  // A message whose places are used again before it is checked; the text stays.
  struct Checked {
    Message message;
    std::vector<std::uint8_t> iv;
    std::vector<std::uint8_t> sealed;  // text and tag
  };

  const Options& options_;
  const Key& key_;
  const std::size_t number_;
  const std::size_t place_;
  const bench::Bytes in_, out_;
  std::vector<std::uint8_t> ivs_;
  std::uint64_t nonces_ = 0;
  Bell bell_;
  std::vector<double> latencies_;
  std::vector<Checked> checked_;
};

double percentile(std::vector<double>& sorted, double part) {
  return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(static_cast<double>(sorted.size()) * part))];
}

void measure(const Options& options, std::vector<std::unique_ptr<Client>>& clients, int delay, double link) {
  std::vector<double> rates, p50, p99;
  std::string payloads;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    QueueLimits limits;
    limits.max_delay = std::chrono::microseconds(delay);
    limits.max_in_flight = options.in_flight;
    Queue queue(runner_for(options), limits, tell);
    const auto start = Clock::now();
    std::vector<std::thread> threads;
    for (auto& client : clients) threads.emplace_back([&queue, &client] { client->run(queue); });
    for (std::thread& thread : threads) thread.join();
    const double total = static_cast<double>(options.threads * options.messages * options.size);
    rates.push_back(total / 1e9 / seconds(start, Clock::now()));
    std::vector<double> latencies;
    for (auto& client : clients) {
      client->check();
      latencies.insert(latencies.end(), client->latencies().begin(), client->latencies().end());
    }
    std::sort(latencies.begin(), latencies.end());
    p50.push_back(percentile(latencies, 0.5) * 1e6);
    p99.push_back(percentile(latencies, 0.99) * 1e6);
    const QueueStatistics counts = queue.statistics();
    payloads = std::to_string(counts.messages / counts.payloads) + " messages a payload";
  }
  std::printf(
      "window %3zu, age limit %4d us, %zu in flight: %6.2f GB/s (%.2f to %.2f), %5.1f%% of the link; p50 %7.0f us, "
      "p99 %7.0f us; %s\n",
      options.window, delay, options.in_flight, median(rates), *std::min_element(rates.begin(), rates.end()),
      *std::max_element(rates.begin(), rates.end()), 100 * median(rates) / link, median(p50), median(p99),
      payloads.c_str());
  std::fflush(stdout);
}

void measure_batch(const Options& options, std::vector<std::unique_ptr<Client>>& clients, double link) {
  std::vector<double> rates;
  for (int repetition = 0; repetition <= repetitions; ++repetition) {
    std::vector<Message> messages;
    for (auto& client : clients) client->append_all(messages);
    std::vector<Result> results(messages.size());
    const auto start = Clock::now();
    runner_for(options)(messages, results);
    const double total = static_cast<double>(messages.size() * options.size);
    const double rate = total / 1e9 / seconds(start, Clock::now());
    if (repetition == 0) continue;  // it finds no memory kept
    rates.push_back(rate);
    if (repetition != repetitions) continue;
    for (std::size_t i = 0; i < clients.size(); ++i) {
      clients[i]->keep(messages[i * options.window]);
      clients[i]->keep(messages[(i + 1) * options.window - 1]);
      clients[i]->check();
    }
  }
  std::printf("one batch of %zu messages: %6.2f GB/s, %5.1f%% of the link\n", options.threads * options.window,
              median(rates), 100 * median(rates) / link);
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program("queue_threads", [&] {
    Options options;
    int delay = 0;
    bench::Options("queue_threads")
        .add("--threads", options.threads)
        .add("--size", options.size)
        .add("--messages", options.messages)
        .add("--window", options.window)
        .add("--in-flight", options.in_flight)
        .add("--delay", delay)
        .add("--pageable", options.pageable)
        .add("--no-engine", options.no_engine)
        .add("--batch", options.batch)
        .parse(argc, argv);
    if (delay != 0) options.delays = {delay};
    bench::print_devices();
    const Key key(find_algorithm("aes-128-gcm"), std::vector<std::uint8_t>(16, 0x42));
    std::vector<std::unique_ptr<Client>> clients;
    for (std::size_t i = 0; i < options.threads; ++i) clients.push_back(std::make_unique<Client>(options, key, i));
    const double link = bench::copy_rate(repetitions);
    std::printf("%zu threads, messages of %zu bytes in %s memory, aes-128-gcm; the link: %.1f GB/s each way at once\n",
                options.threads, options.size, options.pageable ? "pageable" : "page-locked", link);
    if (options.batch) {
      measure_batch(options, clients, link);
      return true;
    }
    for (const int one : options.delays) measure(options, clients, one, link);
    return true;
  });
}
