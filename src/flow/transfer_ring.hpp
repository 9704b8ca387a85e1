// SPDX-License-Identifier: Apache-2.0
// One piece of host data in progress, in a slot (slot_memory.hpp). No function but wait() blocks: the owner calls
// advance() until the piece is back.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "engine/device_engine.hpp"
#include "flow/copy.hpp"
#include "flow/piece.hpp"
#include "flow/slot_memory.hpp"
#include "flow/transfer_modes.hpp"
#include "mode/mode.hpp"

namespace warpcipher {

// State that the slots of a run share: the batch, its statuses, and lists whose memory is used again for each piece.
struct TransferBatch {
  std::span<const Message> messages;
  std::span<Status> statuses;
  std::vector<Message> on_device{};
  std::vector<std::size_t> indices{};  // of those
  std::vector<Status> part_statuses{};
  // Of GCM-SIV messages to decrypt: nonce || tag (Message::compute_tag).
  std::deque<std::array<std::uint8_t, gcm_siv_nonce_len + full_tag_len>> given_tags{};
  std::vector<DeviceCopy> ranges{};  // copies by DMA
  std::vector<DeviceCopy> merged{};  // adjacent ranges as one; or copies by the cores
  std::vector<DeviceCopy> listed{};  // copies by a kernel
};

class TransferSlot {
 public:
  // `size` bytes of device memory. job: the copies by the cores; helpers may look at it after the slot is gone.
  TransferSlot(DeviceEngine& engine, int device, std::size_t size, TransferBatch& batch, CopyJob& job);
  TransferSlot(const TransferSlot&) = delete;
  TransferSlot& operator=(const TransferSlot&) = delete;
  ~TransferSlot();

  bool empty() const { return piece_.empty(); }

  // Adds to the piece, as TransferPiece::add(). False also when the piece has another mode. The mode must live until
  // the piece is back.
  bool add(std::size_t index, std::size_t count, const TransferMode& mode);
  void add(Part part, const TransferMode& mode);

  // Sends the piece. is_last: no other piece of the run comes after it.
  void send(bool is_last);

  enum class State : std::uint8_t { filling, copying_in, on_device, copying_out };

  State state() const { return state_; }

  // Goes to the next state if what the piece waits for has happened; else returns false. `first`: all pieces that were
  // sent before have left the device. Only then may this one leave it, because the tags of a message's parts add up in
  // order. A piece that is back has handed over texts, tags and verdicts, and leaves the slot empty.
  bool advance(bool first);

  // Waits for the device.
  void wait() { slot_.wait(); }

 private:
  void list_copies();
  std::size_t write_list(DeviceCopy* to);
  void list_texts();
  void list_results();
  void launch();
  void copy_in();
  void copy_out();
  void copy_ranges(void (DeviceEngine::*copy)(std::span<const DeviceCopy>, Stream));
  Pace pace_of_results() const;
  void run_on_device();
  void collect();
  // The message as the engine takes it; its tag goes to `tag`.
  Message on_device(const TransferPiece::Item& item, std::uint8_t* tag);
  bool is_authentic(const TransferPiece::Item& item, const std::uint8_t* computed_tag);

  DeviceEngine& engine_;
  const int device_;
  const std::size_t size_;
  TransferBatch& batch_;
  CopyJob& job_;
  SlotMemory slot_;
  std::uint8_t* const memory_;      // on the device
  std::uint8_t* bounce_ = nullptr;  // page-locked
  std::size_t memory_used_ = 0;     // the most bytes of the former that a piece used: to be wiped
  TransferPiece piece_;
  const TransferMode* mode_ = nullptr;  // of the piece
  // The list of a kernel's copies in device memory: first those that bring texts in, then those that bring results
  // back.
  std::size_t listed_in_ = 0, listed_out_ = 0;
  std::size_t lone_texts_ = 0;  // that the former bring in
  bool is_last_ = false;
  State state_ = State::filling;
};

// The slots of a run, in the order in which their pieces were sent. One thread drives the ring; others may help with
// copies by the cores.

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
  TransferSlot& by_age(std::size_t i) { return *slots_[(current_ + i) % slots_.size()]; }  // 0: the oldest
  bool advance();
  void step();
  template <class IsBusy>
  void step_while(IsBusy&& is_busy);

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
