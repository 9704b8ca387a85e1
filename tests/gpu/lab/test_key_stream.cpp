// SPDX-License-Identifier: Apache-2.0
// Key stream in registers: the XOR of all words that the lanes made is that of the plain cipher's.
#include <cuda_runtime_api.h>

#include <cstring>

#include "cipher/aes.hpp"
#include "cipher/chacha.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "gpu.cuh"
#include "lab_test.hpp"

namespace warpcipher::lab::test {
namespace {

Bytes of(const char* name, std::uint32_t units) {
  constexpr std::size_t room = 1 << 20;  // lanes, of any GPU
  const DeviceMemory sums(0, Bytes(4 * room).data(), 4 * room);
  const std::uint32_t lanes = start_key_stream(name, units, sums.as<std::uint32_t>(), nullptr);
  std::vector<std::uint32_t> found(lanes);
  cuda::check(cudaDeviceSynchronize(), "wait for the device");
  cuda::check(cudaMemcpy(found.data(), sums.data(), 4 * lanes, cudaMemcpyDeviceToHost), "copy to the host");
  std::uint32_t all = 0;
  for (const std::uint32_t sum : found) all ^= sum;
  Bytes bytes(4);
  std::memcpy(bytes.data(), &all, 4);
  return bytes;
}

Bytes folded(const Bytes& stream) {
  Bytes sum(4);
  for (std::size_t i = 0; i < stream.size(); ++i) sum[i % 4] = static_cast<std::uint8_t>(sum[i % 4] ^ stream[i]);
  return sum;
}

}  // namespace

void test_key_stream() {
  constexpr std::uint32_t units = 256 * 7;
  const Bytes key(32, 7), zeros(12);
  Bytes chacha20, aes(16 * units);
  for (std::uint32_t unit = 0; unit < units; ++unit) {
    for (const std::uint32_t word : chacha::key_stream(chacha::make_state(key.data(), unit, zeros.data())).words) {
      for (int i = 0; i < 4; ++i) chacha20.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
    }
    std::uint8_t counter[16] = {};
    store_be32(counter + 12, unit);
    aes::encrypt_block(aes::expand_key(key.data(), 16), counter, aes.data() + std::size_t{16} * unit);
  }
  expect_equal(folded(chacha20), of("chacha20", units), "chacha20 in registers");
  expect_equal(folded(aes), of("aes-128-ctr", units), "aes-128-ctr in registers");
}

}  // namespace warpcipher::lab::test
