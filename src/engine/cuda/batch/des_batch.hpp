// SPDX-License-Identifier: Apache-2.0
// The inputs of a batch of DES or triple DES messages as kernels read them. The host sends descriptors, IVs and the
// bytes of each key once; the GPU makes the key schedules (des_schedules.hpp).
#pragma once

#include <cstdint>
#include <optional>

#include "engine/cuda/batch/des_schedules.hpp"
#include "engine/cuda/memory.hpp"
#include "engine/cuda/message_view.hpp"

namespace warpcipher::cuda {

struct GroupRun;

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
