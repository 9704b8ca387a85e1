// SPDX-License-Identifier: Apache-2.0
#include "random/fill.hpp"

#include <string>

#include "core/error.hpp"
#include "random/cuda/fill.hpp"
#include "random/host.hpp"
#include "random/permutation.hpp"

namespace warpcipher::random {
namespace {

enum class Place : std::uint8_t { threads, definition, device };

Place find_place(std::string_view engine, Memory memory) {
  if (memory == Memory::device) {
    if (engine == "auto" || engine == "cuda") return Place::device;
  } else {
    if (engine == "auto" || engine == "cpu") return Place::threads;
    if (engine == "reference") return Place::definition;
  }
  refuse("engine is '" + std::string(engine.substr(0, 64)) + "': expected " +
         (memory == Memory::device ? "auto or cuda, for an array in device memory"
                                   : "auto, cpu or reference, for an array in host memory"));
}

// The number of elements.
std::uint64_t check(const Array& array, std::size_t item_len, std::size_t width, std::uint64_t position) {
  if (array.size % item_len != 0) {
    refuse("the array has " + std::to_string(array.size) + " bytes: expected whole elements of " +
           std::to_string(item_len));
  }
  if (position % width != 0) {
    refuse("position is " + std::to_string(position) + ": expected a multiple of " + std::to_string(width) +
           ", the bytes of the stream that an element takes");
  }
  const std::uint64_t count = array.size / item_len;
  if (position > stream_len || count > (stream_len - position) / width) {
    refuse("position is " + std::to_string(position) + " and the array takes " + std::to_string(count) + " times " +
           std::to_string(width) + " bytes: a stream ends at 2^56; take another number of the stream");
  }
  if (array.memory == Memory::device && reinterpret_cast<std::uintptr_t>(array.data) % item_len != 0) {
    refuse("the array does not begin at a multiple of its elements' " + std::to_string(item_len) + " bytes");
  }
  return count;
}

}  // namespace

StreamCipher find_stream_cipher(std::string_view name) {
  if (name == "chacha20") return StreamCipher::chacha20;
  if (name == "aes-256-ctr") return StreamCipher::aes256;
  refuse("algorithm is '" + std::string(name.substr(0, 64)) + "': expected chacha20 or aes-256-ctr");
}

std::uint64_t fill(const StreamKey& key, const Distribution& distribution, std::uint64_t position, const Array& array,
                   std::string_view engine) {
  const Place place = find_place(engine, array.memory);
  const std::size_t width = distribution.width();
  const std::uint64_t count = check(array, distribution.item_len(), width, position);
  if (count == 0) return 0;
  if (place == Place::device) {
    cuda::fill(key, distribution, position, array.data, count, 0, array.stream);
  } else {
    const HostFill host{key, distribution, position, array.data, count};
    place == Place::threads ? fill_by_threads(host) : fill_by_definition(host);
  }
  return count * width;
}

std::uint64_t permute(const StreamKey& key, std::uint64_t position, Type type, const Array& array,
                      std::string_view engine) {
  if (type != Type::int32 && type != Type::int64) {
    refuse("dtype is " + std::string(name_of(type)) + ": a permutation fills int32 and int64");
  }
  const Place place = find_place(engine, array.memory);
  const std::uint64_t count = check(array, item_len(type), sizeof(std::uint64_t), position);
  const std::uint64_t most = std::uint64_t{1} << (type == Type::int32 ? 31 : 32);
  if (count > most) {
    refuse("the array has " + std::to_string(count) + " elements: a permutation of " + std::string(name_of(type)) +
           " has at most " + std::to_string(most));
  }
  if (count == 0) return 0;
  if (place == Place::device) {
    cuda::permute(key, position, item_len(type), array.data, count, array.stream);
  } else {
    permute_host(key, position, item_len(type), array.data, count, place == Place::definition);
  }
  return count * sizeof(std::uint64_t);
}

}  // namespace warpcipher::random
