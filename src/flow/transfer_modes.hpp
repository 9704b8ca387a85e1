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
// The functions of a mode are called once a piece, never once a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
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

struct TransferTraits {
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
};

class TransferMode : public TransferTraits {
 public:
  virtual ~TransferMode() = default;

  // Bytes of bounce buffer that a piece needs, and where its tags go.
  virtual std::size_t bounce_len(const TransferPiece& piece) const = 0;
  virtual TagPlaces tag_places(const TransferPiece& piece) const = 0;

  // Writes the list of the copies of a kernel, if there is one. Without cores_copy_in, copy_in() follows at once.
  virtual void prepare(const PieceTransfer&) const {}

  // Enqueue the copies that bring texts in, and those that bring results and tags back.
  virtual void copy_in(const PieceTransfer& transfer) const = 0;
  virtual void copy_out(const PieceTransfer& transfer) const = 0;

  bool writes_tag(const TransferPiece::Item& item, const Message& message) const {
    return device_writes_tags && item.part == nullptr && message.direction == Direction::encrypt;
  }

 protected:
  explicit TransferMode(const TransferTraits& traits) : TransferTraits(traits) {}
  TransferMode(const TransferMode&) = delete;
  TransferMode& operator=(const TransferMode&) = delete;
};

// Enqueue the DMA copies of lists.ranges. Adjacent ones are merged.
void copy_ranges_in(const PieceTransfer& transfer);
void copy_ranges_out(const PieceTransfer& transfer);

// --- each of them, and the choice of one ---

// Both ways through the bounce buffer: for pageable memory, and for texts that are too short for the other modes.
class BounceMode final : public TransferMode {
 public:
  BounceMode() : TransferMode({.cores_copy_in = true, .cores_copy_out = true}) {}

  std::size_t bounce_len(const TransferPiece& piece) const override;
  TagPlaces tag_places(const TransferPiece& piece) const override;
  void copy_in(const PieceTransfer& transfer) const override;
  void copy_out(const PieceTransfer& transfer) const override;
};

// Both ways straight between the device and the caller's pinned memory: for long contiguous runs.
class DirectMode final : public TransferMode {
 public:
  DirectMode() : TransferMode({.layout = {.tight = true}, .kernels_write_to_bounce = true}) {}

  std::size_t bounce_len(const TransferPiece& piece) const override;
  TagPlaces tag_places(const TransferPiece& piece) const override;
  void copy_in(const PieceTransfer& transfer) const override;
  void copy_out(const PieceTransfer& transfer) const override;
};

// What the modes share in which a kernel writes results straight to the caller's pinned memory.
class ListedMode : public TransferMode {
 public:
  void copy_out(const PieceTransfer& transfer) const final;

 protected:
  explicit ListedMode(const TransferTraits& traits) : TransferMode(traits) {}

  // Fills in lists.listed: what brings results and tags back.
  void list_results(const PieceTransfer& transfer) const;

  // The list in device memory, which the kernel reads.
  static const DeviceCopy* list_on_device(const PieceTransfer& transfer);
};

// In through the bounce buffer, out by a kernel: for many texts in pageable memory whose results go to pinned memory.
class ScatterMode final : public ListedMode {
 public:
  explicit ScatterMode(bool writes_tags)
      : ListedMode({.layout = {.lists_out = true}, .cores_copy_in = true, .device_writes_tags = writes_tags}) {}

  std::size_t bounce_len(const TransferPiece& piece) const override;
  TagPlaces tag_places(const TransferPiece& piece) const override;
  void prepare(const PieceTransfer& transfer) const override;
  void copy_in(const PieceTransfer& transfer) const override;
};

// In by DMA where texts are coalesced into ranges of at least `range_len` bytes, else by a kernel; out by a kernel: for
// many texts in pinned memory.
class GatherScatterMode final : public ListedMode {
 public:
  GatherScatterMode(PinnedRangeCache pinned, std::size_t range_len, bool writes_tags)
      : ListedMode({.layout = {.coalescing = &pinned_, .lists_in = true, .lists_out = true},
                    .device_writes_tags = writes_tags}),
        pinned_(std::move(pinned)),
        range_len_(range_len) {}

  std::size_t bounce_len(const TransferPiece& piece) const override;
  TagPlaces tag_places(const TransferPiece& piece) const override;
  void prepare(const PieceTransfer& transfer) const override;
  void copy_in(const PieceTransfer& transfer) const override;

 private:
  void find_texts(const PieceTransfer& transfer) const;

  PinnedRangeCache pinned_;
  const std::size_t range_len_;
};

// The mode of all messages that do not travel directly.
std::unique_ptr<const TransferMode> choose_mode(const DeviceEngine& engine, std::span<const Message> messages,
                                                const Extent& extent, std::size_t range_len);

// Whether messages from `first` to `last`, a contiguous run, travel directly: pinned runs of `direct_len` bytes do.
bool travels_directly(const DeviceEngine& engine, const Message& first, const Message& last, std::size_t direct_len);

// Writes copies as entries of a list at `to`, none longer than TransferPiece::most_listed_len, and clears them. Returns
// the number of entries.
std::size_t write_list(DeviceCopy* to, std::vector<DeviceCopy>& copies);

}  // namespace warpcipher
