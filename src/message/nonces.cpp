// SPDX-License-Identifier: Apache-2.0
#include "message/nonces.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/bytes.hpp"
#include "core/fork.hpp"
#include "core/thread_pool.hpp"

namespace warpcipher {
namespace {

// A hash: a product of 128 bits, folded, with factors that are random in each process. So nobody can choose nonces that
// collide in the table.
class NonceHash {
 public:
  NonceHash() {
    std::random_device random;
    for (std::uint64_t& seed : seeds_) seed = std::uint64_t{random()} << 32 | random();
  }

  std::uint64_t operator()(const std::uint8_t* nonce, std::size_t len) const {
    std::uint64_t hash = seeds_[0] ^ len;
    for (; len > 12; nonce += 8, len -= 8) hash = fold(hash ^ load_be64(nonce), seeds_[1]);
    std::uint8_t last[12] = {};
    std::memcpy(last, nonce, len);
    return fold(hash ^ load_be64(last), seeds_[2] ^ load_be32(last + 8));
  }

 private:
  static std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide{a} * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }

  std::uint64_t seeds_[3];
};

int compare_nonces(const Message& x, const Message& y) {
  if (x.iv_len != y.iv_len) return x.iv_len < y.iv_len ? -1 : 1;
  return std::memcmp(x.iv, y.iv, x.iv_len);
}

// Lists messages whose nonce another message also has; a message may be listed more than once. The table holds first
// occurrences, with open addressing. Each entry has half of the hash and the number of the message, so the nonces of
// other messages are hardly ever read.
std::vector<std::uint32_t> find_repeated(std::span<const Message> messages, std::size_t sealing) {
  static constinit FirstUse<NonceHash> instance;
  const NonceHash& hash_of = instance.get();
  struct Entry {
    std::uint32_t hash;
    std::uint32_t message_plus_1;  // 0: empty
  };
  std::vector<Entry> table(std::bit_ceil(2 * sealing));
  const std::size_t mask = table.size() - 1;
  std::vector<std::uint32_t> repeated;
  const auto enter = [&](std::uint32_t i, std::uint64_t hash) {
    const Message& m = messages[i];
    const auto upper = static_cast<std::uint32_t>(hash >> 32);
    std::size_t place = hash & mask;
    for (; table[place].message_plus_1 != 0; place = (place + 1) & mask) {
      const std::uint32_t other = table[place].message_plus_1 - 1;
      if (table[place].hash == upper && compare_nonces(messages[other], m) == 0) {
        repeated.insert(repeated.end(), {other, i});
        return;
      }
    }
    table[place] = {upper, i + 1};
  };
  // Entries of a large table are in different cache lines: those of a few messages are fetched at the same time.
  constexpr std::size_t at_once = 32;
  std::uint32_t numbers[at_once];
  std::uint64_t hashes[at_once];
  std::size_t gathered = 0;
  for (std::uint32_t i = 0; i < messages.size(); ++i) {
    const Message& m = messages[i];
    if (needs_own_nonce(m)) {
      numbers[gathered] = i;
      hashes[gathered] = hash_of(m.iv, m.iv_len);
      __builtin_prefetch(&table[hashes[gathered] & mask], 1);
      ++gathered;
    }
    if (gathered == at_once || i + 1 == messages.size()) {
      for (std::size_t k = 0; k < gathered; ++k) enter(numbers[k], hashes[k]);
      gathered = 0;
    }
  }
  return repeated;
}

std::size_t count_sealing(std::span<const Message> messages) {
  constexpr std::size_t at_once = 8192;
  std::atomic<std::size_t> sealing{0};
  ThreadPool::instance().parallel_for(messages.size(), at_once, [&](std::size_t begin, std::size_t end) {
    const auto some = messages.subspan(begin, end - begin);
    sealing += static_cast<std::size_t>(std::count_if(some.begin(), some.end(), needs_own_nonce));
  });
  return sealing;
}

// Different key objects may have the same bytes: compare fingerprints. Keys of different algorithms differ.
int compare_keys(const Key& x, const Key& y) {
  if (&x == &y) return 0;
  if (&x.algorithm() != &y.algorithm()) return std::less<>()(&x.algorithm(), &y.algorithm()) ? -1 : 1;
  return std::memcmp(x.fingerprint().data(), y.fingerprint().data(), x.fingerprint().size());
}

}  // namespace

bool needs_own_nonce(const Message& m) {
  return m.direction == Direction::encrypt && m.algorithm().is_aead() && !m.algorithm().mode.nonces_may_repeat;
}

std::string repeated_nonce_rule(const Algorithm& algorithm) {
  const bool is_gcm = algorithm.mode.id == Mode::gcm;
  return (is_gcm ? "a GCM nonce" : "a nonce of " + std::string(algorithm.name)) +
         " must never be used twice with one key";
}

// In most batches there is one key, or all nonces differ. So keys are compared only where nonces are equal.
void check_nonces(std::span<const Message> messages) {
  if (messages.size() < 2) return;
  const std::size_t sealing = count_sealing(messages);
  if (sealing < 2) return;
  std::vector<std::uint32_t> repeated = find_repeated(messages, sealing);
  const auto compare = [&](std::uint32_t a, std::uint32_t b) {
    const int nonces = compare_nonces(messages[a], messages[b]);
    return nonces != 0 ? nonces : compare_keys(*messages[a].key, *messages[b].key);
  };
  std::sort(repeated.begin(), repeated.end(), [&](std::uint32_t a, std::uint32_t b) {
    const int order = compare(a, b);
    return order != 0 ? order < 0 : a < b;
  });
  repeated.erase(std::unique(repeated.begin(), repeated.end()), repeated.end());
  const auto twice = std::adjacent_find(repeated.begin(), repeated.end(),
                                        [&](std::uint32_t a, std::uint32_t b) { return compare(a, b) == 0; });
  if (twice == repeated.end()) return;
  throw Error(Status::invalid_argument, "messages " + std::to_string(twice[0]) + " and " + std::to_string(twice[1]) +
                                            " encrypt with the same key and the same nonce: " +
                                            repeated_nonce_rule(messages[twice[0]].algorithm()));
}

}  // namespace warpcipher
