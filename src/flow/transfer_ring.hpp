// SPDX-License-Identifier: Apache-2.0
// The slots of a run, in the order in which their pieces were sent. One thread drives the ring; others may help with
// copies by the cores.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "flow/transfer_slot.hpp"

namespace warpcipher {

class TransferRing {
 public:
  // `slots` slots of `size` bytes, on the devices in turn. Each is made when it is first needed.
  TransferRing(DeviceEngine& engine, TransferBatch& batch, std::vector<int> devices, std::size_t slots,
               std::size_t size);

  // Adds a whole message, or `count` sectors, to the piece that is being filled, or to the next one when it does not
  // fit. An empty slot must have room for it.
  void add(std::size_t index, std::size_t count, const TransferMode& mode);

  // Sends a part of a message as a piece of its own.
  void send(Part part, const TransferMode& mode);

  // Sends what has been added, and returns when the cores have copied all texts in.
  void finish_copies_in();

  // Returns when all pieces are back.
  void finish();

  // Copies a share for a slot; false when there is none. From any thread.
  bool help();

 private:
  TransferSlot& filling();
  bool has_filled() const;
  void send_filled(bool is_last = false);
  bool advance();
  void step();

  DeviceEngine& engine_;
  TransferBatch& batch_;
  const std::vector<int> devices_;
  const std::size_t size_;
  const std::size_t count_;
  const std::unique_ptr<CopyJob[]> jobs_;
  std::vector<std::unique_ptr<TransferSlot>> slots_;
  std::atomic<std::size_t> current_{0};  // the slot being filled; when it is in progress, the oldest
};

}  // namespace warpcipher
