// SPDX-License-Identifier: Apache-2.0
// Key schedules of DES as kernels read them. The GPU makes them from the bytes of the keys, one lane for each round.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/host_device.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda {

// Keys in device memory, one after another.
struct DesKeys {
  const std::uint8_t* bytes;
  std::uint32_t key_len;
  std::uint32_t count;
  bool inverse;  // for decryption

  WARPCIPHER_HD std::uint32_t rounds() const { return key_len == 8 ? 16 : 48; }
};

// Key schedules in device memory, one for each key or one for each message. They are in groups of 32, as a warp reads
// them that has a message in each lane: round r (in the order of use) of schedule s is subkeys()[32 (rounds (s / 32) +
// r) + s % 32], packed as in cipher/des_sbox_subkey.hpp.
class DesSchedules {
 public:
  // Makes a schedule for each key; or, for views of messages with several keys, a schedule for each message, in the
  // given order (nullptr: in the order of the views).
  DesSchedules(const Device& device, Stream stream, const DesKeys& keys, const MessageView* views = nullptr,
               std::uint32_t messages = 0, const std::uint32_t* order = nullptr);

  const uint2* subkeys() const { return reinterpret_cast<const uint2*>(memory_.data()); }
  std::uint32_t rounds() const { return rounds_; }
  bool of_one_key() const { return of_one_key_; }

 private:
  const std::uint32_t rounds_;
  const bool of_one_key_;
  StreamBuffer memory_;
};

}  // namespace warpcipher::cuda
