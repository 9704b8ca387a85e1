// SPDX-License-Identifier: Apache-2.0
// The slots of a run, in the order in which their pieces were sent. One thread drives the ring; others may help with
// the copies.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "transfer/slot.hpp"

namespace warpcipher {

class Ring {
 public:
  // `slots` of `size` bytes, dealt to the devices in turn; each is made when it is needed first.
  Ring(DeviceEngine& engine, RingBatch& batch, std::vector<int> devices, std::size_t slots, std::size_t size);

  // Packs a whole message into the slot that is being filled, or into the next one if it does not fit in; or `count`
  // sectors of one row, no more than fit into an empty slot.
  void add(std::size_t index, std::size_t count, Way way);

  // Sends a part of a message, by itself.
  void send(Part part, Way way);

  // Sends what has been added, and returns when no piece waits for the cores to copy it in.
  void finish_copies_in();

  // Returns when all pieces are back.
  void finish();

  // Copies a share for a slot, if one wants it. From any thread.
  bool help();

 private:
  Slot& filling();
  bool has_filled() const;
  void send_filled(bool is_last = false);
  bool advance();
  void step();

  DeviceEngine& engine_;
  RingBatch& batch_;
  const std::vector<int> devices_;
  const std::size_t size_;
  const std::size_t count_;
  const std::unique_ptr<CopyJob[]> jobs_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::atomic<std::size_t> current_{0};  // the slot to be filled: if it is not empty, the oldest
};

}  // namespace warpcipher
