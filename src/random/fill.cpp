// SPDX-License-Identifier: Apache-2.0
#include "random/fill.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "core/thread_pool.hpp"
#include "core/wipe.hpp"
#include "engine/engine.hpp"
#include "random/cuda/fill.hpp"
#include "random/host.hpp"

namespace warpcipher::random {
namespace {

// The number of elements.
std::uint64_t check(const Array& array, std::size_t item_len, std::size_t width, std::uint64_t position) {
  if (array.size % item_len != 0) {
    refuse("the array has ", array.size, " bytes: expected whole elements of ", item_len);
  }
  if (position % width != 0) {
    refuse("position is ", position, ": expected a multiple of ", width,
           ", the bytes of the stream that an element takes");
  }
  const std::uint64_t count = array.size / item_len;
  if (position > stream_len || count > (stream_len - position) / width) {
    refuse("position is ", position, " and the array takes ", count, " times ", width,
           " bytes: a stream ends at 2^56; take another number of the stream");
  }
  if (array.memory == Memory::device && reinterpret_cast<std::uintptr_t>(array.data) % item_len != 0) {
    refuse("the array does not begin at a multiple of its elements' ", item_len, " bytes");
  }
  return count;
}

}  // namespace

StreamCipher find_stream_cipher(std::string_view name) {
  if (name == "chacha20") return StreamCipher::chacha20;
  if (name == "aes-256-ctr") return StreamCipher::aes256;
  refuse("algorithm is '", name.substr(0, 64), "': expected chacha20 or aes-256-ctr");
}

std::uint64_t fill(const StreamKey& key, const Distribution& distribution, std::uint64_t position, const Array& array,
                   std::string_view engine) {
  const Way way = find_way(engine, array.memory);
  const std::size_t width = distribution.width();
  const std::uint64_t count = check(array, distribution.item_len(), width, position);
  if (count == 0) return 0;
  if (way == Way::device) {
    cuda::fill(key, distribution, position, array.data, count, 0, array.stream);
  } else {
    const HostFill host{key, distribution, position, array.data, count};
    way == Way::threads ? fill_by_threads(host) : fill_by_definition(host);
  }
  return count * width;
}

std::uint64_t permute(const StreamKey& key, std::uint64_t position, Type type, const Array& array,
                      std::string_view engine) {
  if (type != Type::int32 && type != Type::int64) {
    refuse("dtype is ", name_of(type), ": a permutation fills int32 and int64");
  }
  const Way way = find_way(engine, array.memory);
  const std::uint64_t count = check(array, item_len(type), sizeof(std::uint64_t), position);
  const std::uint64_t most = std::uint64_t{1} << (type == Type::int32 ? 31 : 32);
  if (count > most) {
    refuse("the array has ", count, " elements: a permutation of ", name_of(type), " has at most ", most);
  }
  if (count == 0) return 0;
  if (way == Way::device) {
    cuda::permute(key, position, item_len(type), array.data, count, array.stream);
  } else {
    permute_host(key, position, item_len(type), array.data, count, way == Way::definition);
  }
  return count * sizeof(std::uint64_t);
}

namespace {

struct Draw {
  std::uint64_t word;
  std::uint64_t index;
};

// Wiped at the end: the words are of the stream, and reveal the order.
class Draws {
 public:
  explicit Draws(std::size_t count) : list_(count) {}
  Draws(const Draws&) = delete;
  Draws& operator=(const Draws&) = delete;
  ~Draws() { secure_wipe(list_.data(), list_.size() * sizeof(Draw)); }

  std::vector<Draw>& list() { return list_; }

 private:
  std::vector<Draw> list_;
};

bool is_before(const Draw& a, const Draw& b) { return a.word < b.word; }

// Buckets by the first byte of the words, which are sorted side by side.
constexpr std::size_t buckets = 256;
constexpr std::uint64_t few = 4096;

std::size_t bucket_of(std::uint64_t word) { return static_cast<std::size_t>(word >> 56); }

void sort_by_threads(const std::uint64_t* words, std::vector<Draw>& draws) {
  std::size_t ends[buckets + 1] = {};
  for (std::size_t i = 0; i < draws.size(); ++i) ++ends[bucket_of(words[i]) + 1];
  for (std::size_t b = 0; b < buckets; ++b) ends[b + 1] += ends[b];
  std::size_t next[buckets];
  std::copy_n(ends, buckets, next);
  for (std::size_t i = 0; i < draws.size(); ++i) draws[next[bucket_of(words[i])]++] = {words[i], i};
  ThreadPool::instance().parallel_for(buckets, 1, [&](std::size_t begin, std::size_t end) {
    std::sort(draws.data() + ends[begin], draws.data() + ends[end], is_before);
  });
}

}  // namespace

void permute_host(const StreamKey& key, std::uint64_t position, std::size_t item_len, std::uint8_t* data,
                  std::uint64_t count, bool by_definition) {
  const Distribution words = Distribution::of_integers(Type::uint64, 0, UINT64_MAX);
  SecretBytes drawn(count * sizeof(std::uint64_t));
  const auto* const values = reinterpret_cast<const std::uint64_t*>(drawn.data());
  Draws draws(count);
  std::vector<Draw>& list = draws.list();
  for (std::uint32_t attempt = 0; attempt < domain::attempts; ++attempt) {
    const HostFill fill{key, words, position, drawn.data(), count, attempt};
    by_definition ? fill_by_definition(fill) : fill_by_threads(fill);
    if (by_definition || count < few) {
      for (std::uint64_t i = 0; i < count; ++i) list[i] = {values[i], i};
      std::sort(list.begin(), list.end(), is_before);
    } else {
      sort_by_threads(values, list);
    }
    const auto is_tie = [](const Draw& a, const Draw& b) { return a.word == b.word; };
    if (std::adjacent_find(list.begin(), list.end(), is_tie) != list.end()) continue;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (item_len == 4) {
        const auto index = static_cast<std::uint32_t>(list[i].index);
        std::memcpy(data + 4 * i, &index, 4);
      } else {
        std::memcpy(data + 8 * i, &list[i].index, 8);
      }
    }
    return;
  }
  throw Error(Status::engine_failure, "every draw of words for a permutation had two that are equal");
}

}  // namespace warpcipher::random
