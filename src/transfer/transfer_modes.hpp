// SPDX-License-Identifier: Apache-2.0
// The transfer modes (transfer_mode.hpp compares them), each with a source file of its own, and the choice of one.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "transfer/contiguous_runs.hpp"
#include "transfer/transfer_mode.hpp"

namespace warpcipher {

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
  explicit ListedMode(const Traits& traits) : TransferMode(traits) {}

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
