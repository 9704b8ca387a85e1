// SPDX-License-Identifier: Apache-2.0
// Whether the queue of the C ABI pays: threads that hand messages to a wc_queue, against threads that call wc_seal (or
// wc_encrypt) for each. Through warpcipher.h only, messages in ordinary memory, one key.
//
//   queue_seal [--engine NAME] [--algorithm NAME] [--threads N] [--size BYTES] [--window N] [--seconds S] [--rounds N]
//
// Each thread keeps up to `window` messages in flight, each with a place of its own, and callbacks tell it: it waits
// for one half of them while the other is in flight, so that it is woken once for many. Both ways run by turns,
// `rounds` times; printed are medians of the rates, and of the ratio of neighbours with the least and the most. The
// last result of each place is compared with the other way's before the program ends.
#include <warpcipher.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "frame.hpp"

namespace {

namespace bench = warpcipher::bench;
using bench::median;

struct Options {
  std::string engine = "cpu";
  std::string algorithm = "aes-128-gcm";
  std::size_t threads = 8;
  std::size_t size = 1024;
  std::size_t window = 64;
  double seconds = 0.5;
  std::size_t rounds = 7;
};

void check(wc_status status) {
  if (status != WC_OK) throw std::runtime_error(wc_last_error());
}

struct Algorithm {
  explicit Algorithm(const std::string& name) {
    for (std::size_t i = 0; i < wc_algorithm_count(); ++i) {
      check(wc_algorithm_at(&info, i));
      if (name == info.name) return;
    }
    throw std::runtime_error("no algorithm " + name);
  }
  // 12 bytes where any number would do.
  std::size_t iv_len() const {
    if (info.iv_rule == WC_IV_NONE) return 0;
    return info.iv_rule == WC_IV_ANY ? 12 : info.block_len;
  }
  wc_algorithm_info info = {};
};

// One client's messages and where they lie, in two halves.
class Client {
 public:
  Client(const Options& options, const Algorithm& algorithm, const wc_key* key, std::size_t number)
      : algorithm_(algorithm.info),
        iv_len_(algorithm.iv_len()),
        key_(key),
        number_(number),
        size_(options.size),
        places_(options.window) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      Place& place = places_[i];
      place.client = this;
      place.half = &halves_[2 * i / places_.size()];
      place.in.assign(size_, static_cast<unsigned char>(number));
      place.out.assign(size_ + tag_len, 0);
    }
  }

  std::uint64_t seal_until(const std::atomic<bool>& stop) {
    std::uint64_t count = 0;
    for (; !stop; ++count) seal(places_[count % places_.size()], ++nonces_);
    return count;
  }

  std::uint64_t submit_until(const std::atomic<bool>& stop, wc_queue* queue) {
    std::uint64_t count = 0;
    Half* half = nullptr;
    for (; !stop; ++count) {
      Place& place = places_[count % places_.size()];
      if (place.half != half) (half = place.half)->wait();
      message(place, ++nonces_);
      ++half->pending;
      check(wc_queue_submit(queue, nullptr, &place.message, number_, -1, told, &place));
    }
    for (Half& other : halves_) other.wait();
    if (failed_) throw std::runtime_error("a message failed");
    return count;
  }

  // Seals again what the queue did last, and compares.
  void compare() {
    for (Place& place : places_) {
      if (place.nonce == 0) continue;
      const std::vector<unsigned char> made = place.out;
      seal(place, place.nonce);
      if (made != place.out) throw std::runtime_error("WRONG OUTPUT");
    }
  }

 private:
  static constexpr std::size_t tag_len = 16;

  struct Half {
    std::atomic<std::uint32_t> pending{0};
    void wait() const {
      for (std::uint32_t now = pending; now != 0; now = pending) pending.wait(now);
    }
  };

  struct Place {
    Client* client = nullptr;
    Half* half = nullptr;
    std::vector<unsigned char> in, out;
    unsigned char iv[16] = {};
    std::uint64_t nonce = 0;
    wc_message message = {};
  };

  void set_iv(Place& place, std::uint64_t nonce) const {
    place.nonce = nonce;
    std::memcpy(place.iv, &nonce, std::min(iv_len_, sizeof nonce));
    if (iv_len_ > sizeof nonce) place.iv[8] = static_cast<unsigned char>(number_);
  }

  void seal(Place& place, std::uint64_t nonce) const {
    set_iv(place, nonce);
    if (algorithm_.is_aead) {
      check(wc_seal(key_, place.out.data(), place.out.size(), place.in.data(), size_, place.iv, iv_len_, nullptr, 0));
    } else {
      check(wc_encrypt(key_, place.out.data(), size_, nullptr, place.in.data(), size_, place.iv, iv_len_,
                       WC_PADDING_NONE));
    }
  }

  void message(Place& place, std::uint64_t nonce) const {
    set_iv(place, nonce);
    wc_message& m = place.message;
    m = {};
    m.key = key_;
    m.direction = WC_ENCRYPT;
    m.in = place.in.data();
    m.out = place.out.data();
    m.in_len = m.out_len = size_;
    m.iv = place.iv;
    m.iv_len = iv_len_;
    if (algorithm_.is_aead) {
      m.tag = place.out.data() + size_;
      m.tag_len = tag_len;
    }
  }

  static void told(void* context, const wc_result* result, const char*) {
    auto* place = static_cast<Place*>(context);
    if (result->status != WC_OK) place->client->failed_ = true;
    if (--place->half->pending == 0) place->half->pending.notify_one();
  }

  const wc_algorithm_info algorithm_;
  const std::size_t iv_len_;
  const wc_key* const key_;
  const std::size_t number_;
  const std::size_t size_;
  std::uint64_t nonces_ = 0;
  std::atomic<bool> failed_{false};
  Half halves_[2];
  std::vector<Place> places_;
};

// GB/s of text while all clients go their way for a while.
template <typename Way>
double rate(const Options& options, std::vector<std::unique_ptr<Client>>& clients, const Way& way) {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> messages{0};
  std::atomic<bool> failed{false};
  std::vector<std::thread> threads;
  const auto begin = bench::Clock::now();
  for (auto& client : clients) {
    threads.emplace_back([&] {
      try {
        messages += way(*client, stop);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "queue_seal: %s\n", error.what());
        failed = true;
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  if (failed) std::exit(1);
  const double taken = bench::seconds(begin, bench::Clock::now());
  return static_cast<double>(messages) * static_cast<double>(options.size) / 1e9 / taken;
}

void measure(const Options& options) {
  const Algorithm algorithm(options.algorithm);
  const std::vector<unsigned char> bytes = [&] {
    std::vector<unsigned char> made(algorithm.info.key_len);
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<unsigned char>(2 * i + 1);
    return made;
  }();
  wc_key* key = nullptr;
  check(wc_key_new(&key, options.algorithm.c_str(), bytes.data(), bytes.size()));
  const std::unique_ptr<wc_key, decltype(&wc_key_free)> owned_key(key, wc_key_free);
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < options.threads; ++i) {
    clients.push_back(std::make_unique<Client>(options, algorithm, key, i));
  }
  wc_queue* queue = nullptr;
  check(wc_queue_new(&queue, options.engine.c_str(), nullptr));
  const std::unique_ptr<wc_queue, decltype(&wc_queue_free)> owned_queue(queue, wc_queue_free);
  std::vector<double> single, queued, ratios;
  for (std::size_t round = 0; round <= options.rounds; ++round) {
    const double one = rate(options, clients, [](Client& client, const auto& stop) { return client.seal_until(stop); });
    const double other =
        rate(options, clients, [&](Client& client, const auto& stop) { return client.submit_until(stop, queue); });
    if (round == 0) continue;  // the first warms up
    single.push_back(one);
    queued.push_back(other);
    ratios.push_back(other / one);
  }
  for (auto& client : clients) client->compare();
  wc_queue_statistics counts = {};
  check(wc_queue_stats(&counts, queue));
  std::printf(
      "%s, %zu threads, %zu bytes, window %zu: one by one %.3f GB/s, queue (%s) %.3f GB/s; "
      "%.2f times (%.2f to %.2f); %.0f messages a batch\n",
      options.algorithm.c_str(), options.threads, options.size, options.window, median(single), options.engine.c_str(),
      median(queued), median(ratios), *std::min_element(ratios.begin(), ratios.end()),
      *std::max_element(ratios.begin(), ratios.end()),
      static_cast<double>(counts.messages) / static_cast<double>(std::max<std::uint64_t>(counts.batches, 1)));
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program("queue_seal", [&] {
    Options options;
    bench::Options("queue_seal")
        .add("--engine", options.engine)
        .add("--algorithm", options.algorithm)
        .add("--threads", options.threads)
        .add("--size", options.size)
        .add("--window", options.window)
        .add("--seconds", options.seconds)
        .add("--rounds", options.rounds)
        .parse(argc, argv);
    measure(options);
    return true;
  });
}
