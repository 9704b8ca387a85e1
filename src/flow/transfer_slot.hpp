// SPDX-License-Identifier: Apache-2.0
// One piece in progress: its memory on a device, its bounce buffer, and the stream that orders its work. No function
// but wait() blocks: the owner calls advance() until the piece is back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "engine/device_engine.hpp"
#include "flow/bounce_buffer.hpp"
#include "flow/copy.hpp"
#include "flow/piece.hpp"
#include "flow/transfer_modes.hpp"
#include "mode/limits.hpp"

namespace warpcipher {

// What the slots of a run share: the batch, its statuses, and lists whose memory is used again for each piece.
struct TransferBatch {
  std::span<const Message> messages;
  std::span<Status> statuses;
  std::vector<Message> on_device{};
  std::vector<std::size_t> indices{};  // of those
  std::vector<Status> part_statuses{};
  // Of GCM-SIV messages to decrypt: nonce || tag (Message::compute_tag).
  std::deque<std::array<std::uint8_t, gcm_siv_nonce_len + full_tag_len>> given_tags{};
  CopyLists lists{};
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
  void wait();

 private:
  PieceTransfer transfer();
  void launch();
  void run_on_device();
  void collect();
  // The message as the engine takes it; its tag goes to `tag`.
  Message on_device(const TransferPiece::Item& item, std::uint8_t* tag);
  bool is_authentic(const TransferPiece::Item& item, const std::uint8_t* computed_tag);
  void release() noexcept;

  DeviceEngine& engine_;
  const int device_;
  const std::size_t size_;
  TransferBatch& batch_;
  CopyJob& job_;
  Stream stream_ = nullptr;
  std::uint8_t* memory_ = nullptr;  // on the device
  std::size_t memory_used_ = 0;     // the most bytes of it that a piece used: to be wiped
  BounceBuffer bounce_;
  TransferPiece piece_;
  const TransferMode* mode_ = nullptr;  // of the piece
  ListedCopies listed_;
  bool is_last_ = false;
  State state_ = State::filling;
};

}  // namespace warpcipher
