// SPDX-License-Identifier: Apache-2.0
// The inputs of a batch of DES or triple DES messages as kernels read them. The host sends descriptors, IVs and the
// bytes of each key once; the GPU makes the key schedules, a lane a round.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/cuda/launch.hpp"
#include "engine/cuda/memory.hpp"
#include "engine/cuda/message_view.cuh"

namespace warpcipher::cuda {

// Keys one behind the other, in device memory.
struct DesKeys {
  const std::uint8_t* bytes;
  std::uint32_t key_len;
  std::uint32_t count;
  bool inverse;  // for decryption

  WARPCIPHER_HD std::uint32_t rounds() const { return key_len == 8 ? 16 : 48; }
};

// Key schedules in device memory, of a key each or of a message each, in groups of 32 as a warp with a message a lane
// reads them: round r (in the order of use) of schedule s is subkeys()[32 (rounds (s / 32) + r) + s % 32], packed as in
// cipher/des_packed.hpp.
class DesSchedules {
 public:
  // A schedule a key; or, for views of messages that have more keys than one, a schedule a message, in that order
  // (nullptr: as they are).
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

class DesBatch {
 public:
  // Sends and launches; everything here may be used by later work on the run's stream.
  explicit DesBatch(const GroupRun& run);

  const MessageView* views() const { return upload_.device(views_); }              // `start`: the IV
  const std::uint64_t* first_tile() const { return upload_.device(first_tile_); }  // parallel groups
  const DesSchedules& schedules() const { return *schedules_; }                    // of messages in a serial group

 private:
  Upload upload_;
  Upload::Array<MessageView> views_{};
  Upload::Array<std::uint64_t> first_tile_{};
  std::optional<DesSchedules> schedules_;
};

}  // namespace warpcipher::cuda
