// SPDX-License-Identifier: Apache-2.0
// The C ABI: random arrays.
#include <cstring>
#include <string>

#include "capi/boundary.hpp"
#include "random/fill.hpp"

using warpcipher::capi::bytes;
using warpcipher::capi::engine_name;
using warpcipher::capi::guarded;
using warpcipher::capi::require;

namespace random_arrays = warpcipher::random;

namespace {

using random_arrays::Distribution;
using random_arrays::StreamKey;
using random_arrays::Type;

wc_status fill(const char* engine, void* out, std::size_t out_len, wc_memory memory, const wc_random_stream* from,
               std::uint64_t position, void* stream, const Distribution& distribution) {
  require(from != nullptr, "from is a null pointer");
  require(from->algorithm != nullptr, "the stream's algorithm is a null pointer");
  require(from->key != nullptr, "the stream's key is a null pointer");
  require(out != nullptr || out_len == 0, "out is a null pointer");
  warpcipher::Secret<StreamKey> key;
  key->cipher = random_arrays::find_stream_cipher(from->algorithm);
  std::memcpy(key->key, from->key, random_arrays::key_len);
  key->number = from->number;
  random_arrays::fill(*key, distribution, position, {bytes(out), out_len, warpcipher::capi::to_memory(memory), stream},
                      engine_name(engine));
  return WC_OK;
}

Type type_of(std::size_t word_len) {
  switch (word_len) {
    case 1: return Type::uint8;
    case 2: return Type::uint16;
    case 4: return Type::uint32;
    case 8: return Type::uint64;
    default:
      throw warpcipher::Error(warpcipher::Status::invalid_argument,
                              "word_len is " + std::to_string(word_len) + ": expected 1, 2, 4 or 8");
  }
}

}  // namespace

wc_status wc_random_bytes(const char* engine, void* out, size_t out_len, wc_memory memory, const wc_random_stream* from,
                          uint64_t position, void* stream) {
  return guarded(
      [&] { return fill(engine, out, out_len, memory, from, position, stream, Distribution::of_bytes(Type::uint8)); });
}

wc_status wc_random_words(const char* engine, void* out, size_t count, size_t word_len, uint64_t below,
                          wc_memory memory, const wc_random_stream* from, uint64_t position, void* stream) {
  return guarded([&] {
    const Type type = type_of(word_len);
    require(count <= random_arrays::stream_len / word_len, "count is of no array: a stream has 2^56 bytes");
    const auto all = word_len == 8 ? UINT64_MAX : (std::uint64_t{1} << 8 * word_len) - 1;
    const Distribution words = Distribution::of_integers(type, 0, below == 0 ? all : below - 1);
    return fill(engine, out, count * word_len, memory, from, position, stream, words);
  });
}
