// SPDX-License-Identifier: Apache-2.0
// Keys a second of the CUDA searcher (test_cuda_search --rate).
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <numeric>
#include <thread>

#include "search_cases.hpp"

namespace warpcipher::search::test {

namespace {

const std::atomic<bool> go_on{false};

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Rate {
  double keys_per_second;  // of only the search, without its preparation
  double seconds, to_prepare;
};

// Searches on that number of devices for that time. The last key is the right one; after it the search begins again at
// the first. Ranges are dealt out as a session does.
Rate rate_of(const KeyTemplate& key_template, double seconds, std::size_t devices) {
  const auto space = std::make_shared<const KeySpace>(key_template);
  const auto test =
      make_test(*space, space->size() - 1, false, 8 * static_cast<int>(cipher_info(space->cipher()).block_len));
  const auto begin = Clock::now();
  std::vector<std::unique_ptr<SearchTask>> tasks;
  for (std::size_t i = 0; i < devices; ++i) tasks.push_back(find_searcher("cuda").prepare(space, test, i));
  const auto start = Clock::now();
  std::atomic<std::uint64_t> next{0};
  std::vector<double> rates(devices), passed(devices);
  const auto search = [&](std::size_t device) {
    SearchTask& task = *tasks[device];
    const std::uint64_t share = task.preferred_count();
    std::uint64_t tested = 0;
    std::vector<KeyNumber> hits;
    do {
      KeyNumber first(next.fetch_add(share));
      if (space->size() <= KeyNumber(std::uint64_t{1} << 63)) first = first.low64() % space->size().low64();
      const KeyNumber left = space->size() - first;
      tested += task.run(first, left < KeyNumber(share) ? left.low64() : share, hits, go_on);
    } while (seconds_since(start) < seconds);
    passed[device] = seconds_since(start);
    rates[device] = static_cast<double>(tested) / passed[device];
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < devices; ++i) threads.emplace_back(search, i);
  for (std::thread& thread : threads) thread.join();
  return {std::accumulate(rates.begin(), rates.end(), 0.0), *std::max_element(passed.begin(), passed.end()),
          std::chrono::duration<double>(start - begin).count()};
}

void measure_cipher(const CipherInfo& cipher, double seconds, std::size_t templates) {
  // Of triple DES the middle key is unknown.
  const std::size_t first_byte = cipher.id == CipherId::des_ede3 ? 8 : 0;
  const std::size_t bytes = is_aes(cipher.id) ? cipher.key_len : 8;
  const std::size_t unknown = is_aes(cipher.id) ? 60 : 56;
  const std::string name(cipher.name);
  const auto make = [&](std::size_t bits) { return random_template(cipher.id, bits, first_byte, bytes); };

  const Rate few = rate_of(make(24), 0, 1);
  std::printf("%s, 2^24 keys: %.0f ms\n", name.c_str(), (few.seconds + few.to_prepare) * 1e3);
  const KeyTemplate one = make(unknown);
  const Rate rate = rate_of(one, seconds, 1);
  std::printf("%s, %zu unknown bits: %.1f G keys/s over %.2f s, %.0f ms to prepare\n", name.c_str(), unknown,
              rate.keys_per_second / 1e9, rate.seconds, rate.to_prepare * 1e3);
  std::fflush(stdout);
  std::vector<double> rates;
  for (std::size_t i = 0; i < templates; ++i) {
    rates.push_back(rate_of(make(36 + i), seconds / 20, 1).keys_per_second / 1e9);
  }
  if (!rates.empty()) {
    std::sort(rates.begin(), rates.end());
    std::printf("%s, %zu random templates of 36 unknown bits and more: worst %.1f, median %.1f, best %.1f G keys/s\n",
                name.c_str(), templates, rates.front(), rates[rates.size() / 2], rates.back());
    std::fflush(stdout);
  }
  const std::size_t devices = find_searcher("cuda").devices().size();
  if (devices == 1) return;
  const Rate all = rate_of(one, seconds / 2, devices);
  std::printf("%s, %zu GPUs: %.1f G keys/s, %.1f%% of %zu times one\n", name.c_str(), devices,
              all.keys_per_second / 1e9,
              100 * all.keys_per_second / (static_cast<double>(devices) * rate.keys_per_second), devices);
  std::fflush(stdout);
}

// Triple DES with unknown bits of some keys: templates of `fewest` bits and more, on one GPU.
void measure_keys(CipherId cipher, unsigned keys, std::size_t fewest, std::size_t spread, double seconds,
                  std::size_t templates) {
  std::vector<double> rates;
  double to_prepare = 0;
  for (std::size_t i = 0; i < templates; ++i) {
    const Rate rate = rate_of(random_keys(cipher, keys, fewest + i % spread), seconds, 1);
    rates.push_back(rate.keys_per_second / 1e9);
    to_prepare = std::max(to_prepare, rate.to_prepare);
  }
  if (rates.empty()) return;
  std::sort(rates.begin(), rates.end());
  std::printf("%s, %zu random templates of %zu to %zu unknown bits of", std::string(cipher_info(cipher).name).c_str(),
              templates, fewest, fewest + spread - 1);
  for (unsigned key = 0; key < 3; ++key) {
    if ((keys >> key & 1u) != 0) std::printf(" key %u,", key + 1);
  }
  std::printf(" worst %.1f, median %.1f, best %.1f G keys/s, at most %.0f ms to prepare\n", rates.front(),
              rates[rates.size() / 2], rates.back(), to_prepare * 1e3);
  std::fflush(stdout);
}

void measure_several_keys(CipherId cipher, double seconds, std::size_t templates) {
  if (cipher == CipherId::des_ede2) {
    measure_keys(cipher, 1, 33, 3, seconds, templates);
    measure_keys(cipher, 1, 36, 8, seconds, templates);
    measure_keys(cipher, 3, 36, 40, seconds, templates);
  } else if (cipher == CipherId::des_ede3) {
    for (const unsigned keys : {3u, 5u, 6u, 7u}) measure_keys(cipher, keys, 36, 40, seconds, templates);
  }
}

}  // namespace

void print_rates(double seconds, const std::string& only, std::size_t templates,
                 std::chrono::steady_clock::time_point begin) {
  const auto space = std::make_shared<const KeySpace>(random_template(CipherId::aes_128, 0, 0, 16));
  find_searcher("cuda").prepare(space, make_test(*space, 0, false, 128), 0);
  std::printf("CUDA has started after %.0f ms\n", seconds_since(begin) * 1e3);
  for (const CipherInfo& cipher : cipher_list) {
    if (!only.empty() && cipher.name != only) continue;
    if (cipher.id != CipherId::des_ede2) measure_cipher(cipher, seconds, templates);
    measure_several_keys(cipher.id, seconds / 20, templates);
  }
}

}  // namespace warpcipher::search::test
