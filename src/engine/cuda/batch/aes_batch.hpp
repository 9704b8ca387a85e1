// SPDX-License-Identifier: Apache-2.0
// The inputs of a batch of AES messages as kernels read them. The host sends descriptors, IVs and the bytes of each key
// once; the GPU makes the rest of them, so that a batch with a key for every message costs the host no more than a
// copy:
//
//   a lane a key       round keys; GCM: H = E(0). Of few keys the host has them already (keys.hpp)
//   a lane a message   XTS: the first tweak; GCM: J0 of a long IV, E(J0) and the first counter
//
// in constant time (cipher/aes.hpp: the S-box as logic). One message alone is prepared on the host (keys.hpp): its
// round keys are kernel parameters, and a launch more would take longer than its key schedule.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <span>
#include <vector>

#include "cipher/gf128.hpp"
#include "engine/cuda/gpu.hpp"
#include "engine/cuda/memory.hpp"
#include "engine/cuda/message_view.hpp"
#include "engine/stream.hpp"

namespace warpcipher {
class Key;
}

namespace warpcipher::cuda {

struct GroupRun;

class AesBatch {
 public:
  // Sends and launches; everything here may be used by later work on the run's stream.
  explicit AesBatch(const GroupRun& run);

  // `start` of a view is the IV, the first counter or the first tweak.
  const MessageView* views() const { return upload_.device(views_); }
  const std::uint64_t* first_tile() const { return upload_.device(first_tile_); }  // parallel groups
  const uint4* round_keys() const { return round_keys_; }
  std::uint32_t rounds() const { return rounds_; }

  // The number of a message's key, and of keys.
  std::uint32_t key_of(std::size_t message) const { return key_of_[message]; }
  std::uint32_t keys() const { return keys_; }

  // Of all messages, and of the longest.
  std::uint64_t units() const { return units_; }
  std::uint64_t most_units() const { return most_units_; }

  // GCM: H of each key, E(J0) of each message.
  const gf128::Element* hash_keys() const { return hash_keys_; }
  const Block* masks() const { return masks_; }

  // The keys by their numbers, where there are so few that the host has derived what it needs of them already.
  std::span<const Key* const> keys_of_host() const { return keys_of_host_; }

 private:
  Upload upload_;
  Upload::Array<MessageView> views_{};
  Upload::Array<std::uint64_t> first_tile_{};
  const uint4* round_keys_ = nullptr;
  const gf128::Element* hash_keys_ = nullptr;
  const Block* masks_ = nullptr;
  std::vector<std::uint32_t> key_of_;
  std::vector<const Key*> keys_of_host_;
  std::uint32_t keys_ = 0;
  std::uint32_t rounds_ = 0;
  std::uint64_t units_ = 0;
  std::uint64_t most_units_ = 0;
};

}  // namespace warpcipher::cuda
