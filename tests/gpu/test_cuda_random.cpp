// SPDX-License-Identifier: Apache-2.0
// Random arrays on a GPU against the definition: the same bytes for every algorithm, distribution and type, for any
// part of an array, wherever it begins in the stream and in memory, and across the carry of a counter. A plain program,
// because the machines with GPUs have nothing but the toolkit. Exits 1 when anything differs.
//
//   test_cuda_random            the tests
//   test_cuda_random --large 1  also arrays of more than 2^32 words, which need 20 GiB of the GPU's memory
#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../unit/random_support.hpp"
#include "core/error.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"
#include "engine/cuda/runtime/stream_pool.hpp"
#include "random/cuda/fill.hpp"
#include "random/fill.hpp"
#include "random/host.hpp"

namespace {

using namespace warpcipher;
using namespace warpcipher::random;
using warpcipher::cuda::check, warpcipher::cuda::native;
using Bytes = std::vector<std::uint8_t>;

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

StreamKey make_key(StreamCipher cipher) {
  StreamKey key{cipher, {}, 0x8899aabbccddeeff};
  for (std::size_t i = 0; i < sizeof key.key; ++i) key.key[i] = static_cast<std::uint8_t>(3 * i + 1);
  return key;
}

// Device memory, painted first.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t size) : buffer_(size, stream_) {
    check(cudaMemsetAsync(data(), 0xa5, size, native(stream_)), "paint memory");
  }

  std::uint8_t* data() const { return buffer_.data(); }
  warpcipher::Stream stream() const { return stream_; }

  Bytes content(std::size_t begin, std::size_t len) const {
    Bytes bytes(len);
    check(cudaMemcpyAsync(bytes.data(), data() + begin, len, cudaMemcpyDeviceToHost, native(stream_)), "copy memory");
    check(cudaStreamSynchronize(native(stream_)), "wait");
    return bytes;
  }
  Bytes content() const { return content(0, buffer_.size()); }

 private:
  warpcipher::Stream stream_ = warpcipher::cuda::take_stream();
  warpcipher::cuda::StreamBuffer buffer_;
};

// Elements of stream position `first` on, at `offset` elements of an allocation.
void compare(const StreamKey& key, const Distribution& d, std::uint64_t first, std::uint64_t count, std::size_t offset,
             std::uint32_t attempt = 0, std::uint64_t least_of_hybrid = random::cuda::least_of_hybrid,
             std::uint64_t most_of_piece = random::cuda::most_of_piece) {
  const std::size_t len = d.item_len(), begin = offset * len, end = begin + count * len;
  const DeviceBytes memory(end + 64);
  random::cuda::fill(key, d, first * d.width(), memory.data() + begin, count, attempt, memory.stream(), least_of_hybrid,
                     most_of_piece);
  Bytes expected(end + 64, 0xa5);
  fill_by_definition({key, d, first * d.width(), expected.data() + begin, count, attempt});
  require(memory.content() == expected, "kind " + std::to_string(static_cast<int>(d.kind)) + " of " +
                                            std::string(name_of(d.type)) + ", first " + std::to_string(first) +
                                            ", count " + std::to_string(count) + ", offset " + std::to_string(offset));
}

void test_distributions(StreamCipher cipher) {
  const StreamKey key = make_key(cipher);
  for (const Distribution& d : test::distributions()) {
    const std::uint64_t line = line_len / d.width();
    compare(key, d, 0, 1, 0);
    compare(key, d, 0, 5 * line, 0);         // whole lines, aligned
    compare(key, d, 3, 5 * line + 1, 0);     // partial lines, no line aligned
    compare(key, d, line + 1, line - 2, 1);  // within a line
    compare(key, d, line - 1, 2, 7);
    compare(key, d, 2 * line, 3 * line, 4);
  }
}

// The counter of ChaCha20 carries into its nonce at 2^32 blocks.
void test_carry(StreamCipher cipher) {
  const StreamKey key = make_key(cipher);
  const std::uint64_t carry = std::uint64_t{1} << 38;
  compare(key, Distribution::of_bytes(Type::uint8), carry - 200, 500, 0);
  compare(key, Distribution::of_integers(Type::int64, 0, (Wide{3} << 61) - 1), carry / 8 - 17, 40, 1);
  compare(key, Distribution::of_normal(Type::float32, 0, 1), stream_len / 4 - 33, 33, 0);
  compare(key, Distribution::of_integers(Type::uint64, 0, UINT64_MAX), 5, 100, 0, 1);
  compare(key, Distribution::of_integers(Type::uint64, 0, UINT64_MAX), 5, 100, 0, domain::attempts - 1);
}

// Bytes by the hybrid kernel, but for the first and the last line; not from a place that is not a multiple of 16.
void test_hybrid() {
  const StreamKey key = make_key(StreamCipher::aes256);
  const Distribution bytes = Distribution::of_bytes(Type::uint8);
  const Distribution words = Distribution::of_integers(Type::uint32, 0, UINT32_MAX);
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{64 * 63 + 16}, (std::uint64_t{1} << 36) - 4096}) {
    compare(key, bytes, first, 64 * 194, 0, 0, 0);
    compare(key, bytes, first, 40000, 16, 0, 0);
    compare(key, words, first / 4, 10001, 0, 0, 0);
    compare(key, bytes, first, 40001, 5, 0, 0);
  }
  compare(key, Distribution::of_integers(Type::uint64, 0, UINT64_MAX), 24, 5000, 1, 3, 0);
}

// Key stream of AES in pieces, each by tables or by the hybrid kernel.
void test_pieces() {
  const StreamKey key = make_key(StreamCipher::aes256);
  for (const std::uint64_t most : {1, 3, 200}) {
    compare(key, Distribution::of_normal(Type::float32, 1, 2), 5, 64 * 205, 1, 0, 0, most);
    compare(key, Distribution::of_uniform(Type::float16, 0, 1), 31, 1000, 0, 0, 0, most);
    compare(key, Distribution::of_integers(Type::int64, 0, (Wide{3} << 61) - 1), 7, 777, 1, 0, 0, most);
    compare(key, Distribution::of_integers(Type::int8, -128, 127), 3, 777, 1, 2, 0, most);
  }
}

void test_permutations(StreamCipher cipher) {
  const StreamKey key = make_key(cipher);
  for (const Type type : {Type::int32, Type::int64}) {
    for (const std::uint64_t count : {1, 2, 3, 1000, 5000}) {
      const std::size_t size = count * item_len(type);
      const DeviceBytes memory(size);
      permute(key, 24, type, {memory.data(), size, Memory::device, memory.stream()}, "auto");
      Bytes expected(size);
      permute(key, 24, type, {expected.data(), size, Memory::host}, "reference");
      require(memory.content() == expected, "a permutation of " + std::to_string(count));
    }
  }
}

void expect_refusal(const std::function<void()>& call, const char* text) {
  try {
    call();
  } catch (const Error& error) {
    require(error.status() == Status::invalid_argument, "the status of a refusal");
    require(std::strstr(error.what(), text) != nullptr, std::string("a refusal says: ") + error.what());
    return;
  }
  throw std::runtime_error(std::string("not refused: ") + text);
}

void test_refusals() {
  const StreamKey key = make_key(StreamCipher::chacha20);
  const DeviceBytes memory(64);
  const Distribution uniform = Distribution::of_uniform(Type::float32, 0, 1);
  expect_refusal([&] { fill(key, uniform, 0, {memory.data() + 1, 8, Memory::device, memory.stream()}, "auto"); },
                 "does not begin at a multiple");
  expect_refusal([&] { fill(key, uniform, 0, {memory.data(), 8, Memory::device, memory.stream()}, "cpu"); },
                 "expected auto or cuda");
  require(memory.content() == Bytes(64, 0xa5), "a refused call writes nothing");
}

// More than 2^32 words: the end of one large array is the same as of a small one.
void test_large() {
  const StreamKey key = make_key(StreamCipher::chacha20);
  const Distribution normal = Distribution::of_normal(Type::float32, 0, 1);
  const std::uint64_t count = (std::uint64_t{1} << 32) + 1000, first = count - 4096;
  const DeviceBytes memory(4 * count);
  random::cuda::fill(key, normal, 0, memory.data(), count, 0, memory.stream());
  Bytes expected(std::size_t{4} * 4096);
  fill_by_definition({key, normal, 4 * first, expected.data(), 4096});
  require(memory.content(4 * first, expected.size()) == expected, "more than 2^32 words");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    for (const StreamCipher cipher : {StreamCipher::chacha20, StreamCipher::aes256}) {
      test_distributions(cipher);
      test_carry(cipher);
      test_permutations(cipher);
    }
    test_hybrid();
    test_pieces();
    test_refusals();
    if (argc > 1 && std::strcmp(argv[1], "--large") == 0) test_large();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "FAILED: %s\n", error.what());
    return 1;
  }
  std::puts("test_cuda_random: all equal");
  return 0;
}
