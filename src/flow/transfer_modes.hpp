// SPDX-License-Identifier: Apache-2.0
// A transfer mode: how the texts of a piece get from the caller's memory to a device, and the results back. Modes
// differ in who copies: the cores, a copy engine of the device (DMA), or a kernel that accesses the caller's pinned
// memory.
//
//   mode             texts in                                   results out
//   bounce           cores to the bounce buffer, then DMA       DMA to the bounce buffer, then cores
//   scatter          cores to the bounce buffer, then DMA       kernel
//   gather-scatter   DMA where coalesced, else kernel           kernel
//   direct           DMA                                        DMA
//
// Its functions are called once a piece, never once a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/device_engine.hpp"
#include "flow/piece.hpp"

namespace warpcipher {

// Lists whose memory is used again for each piece: fresh memory costs a batch of short messages more than all else.
struct CopyLists {
  std::vector<DeviceCopy> ranges;  // copies by DMA
  std::vector<DeviceCopy> merged;  // adjacent ranges as one; or copies by the cores
  std::vector<DeviceCopy> listed;  // copies by a kernel
};

// The copies in the list of a piece: first those that bring texts in, then those that bring results back.
struct ListedCopies {
  std::size_t in = 0;
  std::size_t out = 0;
  std::size_t lone_texts = 0;  // texts that the former bring in
};

// What a mode works with.
struct PieceTransfer {
  DeviceEngine& engine;  // in copy_in() and copy_out() the device of the piece is current
  Stream stream;
  std::uint8_t* device;  // memory for the piece on the device
  std::uint8_t* bounce;  // bounce_len() bytes
  const TransferPiece& piece;
  ListedCopies& listed;
  CopyLists& lists;
  bool is_last;  // no piece of this run comes after it
};

// Where the tags of a piece come back to in the bounce buffer.
struct TagPlaces {
  std::size_t begin;
  bool as_on_device;  // at the same offsets as in device memory; else one after another, one for each item

  std::size_t offset(const TransferPiece::Item& item, std::size_t number) const {
    return begin + (as_on_device ? item.tag_at : TransferPiece::tag_room(item) * number);
  }
};

class TransferMode {
 public:
  // Both ways through the bounce buffer: for pageable memory, and for texts that are too short for the other modes.
  static TransferMode bounce();
  // Both ways straight between the device and the caller's pinned memory: for long contiguous runs.
  static TransferMode direct();
  // In through the bounce buffer, out by a kernel: for many texts in pageable memory whose results go to pinned memory.
  static TransferMode scatter(bool writes_tags);
  // In by DMA where texts are coalesced into ranges of at least `range_len` bytes, else by a kernel; out by a kernel:
  // for many texts in pinned memory. `pinned` must live as long as the mode.
  static TransferMode gather_scatter(PinnedRangeCache& pinned, std::size_t range_len, bool writes_tags);

  PieceLayout layout{};
  // What must be waited for besides the device: the cores copy texts into the bounce buffer, at the same offsets as in
  // device memory, before copy_in(); and results out of it after copy_out().
  bool cores_copy_in = false;
  bool cores_copy_out = false;
  // Tags of whole messages that are encrypted go straight to their places; others to the bounce buffer, for the host.
  bool device_writes_tags = false;
  // Kernels write tags straight to the bounce buffer: copies of 16 bytes took 5% of the link's rate from AES-GCM
  // (H200).
  bool kernels_write_to_bounce = false;

  // Bytes of bounce buffer that a piece needs, and where its tags go.
  std::size_t bounce_len(const TransferPiece& piece) const;
  TagPlaces tag_places(const TransferPiece& piece) const;

  // Writes the list of the copies of a kernel, if there is one. Without cores_copy_in, copy_in() follows at once.
  void prepare(const PieceTransfer& transfer) const;

  // Enqueue the copies that bring texts in, and those that bring results and tags back.
  void copy_in(const PieceTransfer& transfer) const;
  void copy_out(const PieceTransfer& transfer) const;

  bool writes_tag(const TransferPiece::Item& item, const Message& message) const {
    return device_writes_tags && item.part == nullptr && message.direction == Direction::encrypt;
  }

 private:
  void find_texts(const PieceTransfer& transfer) const;
  void list_results(const PieceTransfer& transfer) const;

  std::size_t range_len_ = 0;
};

// The mode of all messages that do not travel directly. read: of the engine, empty; it must live as long as the mode.
TransferMode choose_mode(const DeviceEngine& engine, PinnedRangeCache& read, std::span<const Message> messages,
                         const Extent& extent, std::size_t range_len);

// Whether messages from `first` to `last`, a contiguous run, travel directly: pinned runs of `direct_len` bytes do.
bool travels_directly(const DeviceEngine& engine, const Message& first, const Message& last, std::size_t direct_len);

// Writes copies as entries of a list at `to`, none longer than TransferPiece::most_listed_len, and clears them. Returns
// the number of entries.
std::size_t write_list(DeviceCopy* to, std::vector<DeviceCopy>& copies);

}  // namespace warpcipher
