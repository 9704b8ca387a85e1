// SPDX-License-Identifier: Apache-2.0
// The AES keys of a batch in device memory. For few keys the host has derived all that kernels need (keys.hpp), and
// sends it. For many keys it sends only their bytes; the GPU derives the rest on request.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <span>

#include "cipher/gf128.hpp"
#include "engine/cuda/inputs/key_expansion.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "engine/stream.hpp"
#include "mode/algorithm.hpp"

namespace warpcipher {
class Key;
}

namespace warpcipher::cuda {

// A lane of the GPU takes longer for a key schedule than the host took in the key's first call, and a launch takes
// longer still.
inline constexpr std::size_t most_keys_of_host = 4;

class AesKeys {
 public:
  AesKeys(const Device& device, Stream stream, const Algorithm& algorithm, Direction direction);

  // Few keys of the host: call reserve() before `upload` is allocated, fill() after that. The caller keeps the keys
  // alive.
  void reserve(Upload& upload, std::span<const Key* const> keys);
  void fill(Upload& upload);

  // Keys whose bytes lie in device memory, one after another.
  void take_bytes(const std::uint8_t* bytes, std::uint32_t count);

  // Enqueues the derivation, unless it is done.
  void derive();

  std::uint32_t rounds() const { return static_cast<std::uint32_t>(algorithm_.cipher.key_len / 4 + 6); }
  std::uint32_t count() const { return count_; }
  std::span<const Key* const> of_host() const { return of_host_; }  // empty: the GPU derives
  const std::uint8_t* bytes() const { return bytes_; }              // nullptr: the host has derived

  // Device memory; nullptr before derive().
  const uint4* round_keys() const { return round_keys_; }         // most_round_keys for each key
  const uint4* tweak_keys() const { return tweak_keys_; }         // XTS: likewise
  const gf128::Element* hash_keys() const { return hash_keys_; }  // GCM

 private:
  bool is_gcm() const { return algorithm_.mode.id == Mode::gcm; }
  bool is_xts() const { return algorithm_.mode.id == Mode::xts; }

  const Device& device_;
  const Stream stream_;
  const Algorithm& algorithm_;
  const bool inverse_;
  std::uint32_t count_ = 0;
  std::span<const Key* const> of_host_;
  Upload::Array<uint4> host_round_keys_{}, host_tweak_round_keys_{};
  Upload::Array<gf128::Element> host_hash_keys_{};
  const std::uint8_t* bytes_ = nullptr;
  std::unique_ptr<StreamBuffer> derived_;
  const uint4* round_keys_ = nullptr;
  const uint4* tweak_keys_ = nullptr;
  const gf128::Element* hash_keys_ = nullptr;
};

}  // namespace warpcipher::cuda
