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
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/device_engine.hpp"
#include "flow/piece.hpp"

namespace warpcipher {

struct TransferMode {
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
  std::size_t range_len = 0;  // bytes of coalesced texts that are copied by DMA
  // Work to wait for besides the device's: the cores copy texts into the bounce buffer, at the same offsets as in
  // device memory, before DMA brings them in; and results out of it at the end.
  bool cores_copy_in = false;
  bool cores_copy_out = false;
  // Tags of whole messages that are encrypted go straight to their places; others to the bounce buffer, for the host.
  bool device_writes_tags = false;
  // Kernels write tags straight to the bounce buffer: copies of 16 bytes took 5% of the link's rate from AES-GCM
  // (H200).
  bool kernels_write_to_bounce = false;

  // Bytes of bounce buffer that a piece needs. With texts it is as the device's memory; else it has the list, then the
  // tags.
  std::size_t bounce_len(const TransferPiece& piece) const {
    if (cores_copy_in) return piece.device_len();
    return piece.list_len() + (piece.has_tags() ? piece.tags_room() : 0);
  }
  // Where in it the tag of item `number` goes.
  std::size_t tag_at(const TransferPiece& piece, std::size_t number) const {
    const TransferPiece::Item& item = piece.items()[number];
    return cores_copy_in ? item.tag_at : piece.list_len() + TransferPiece::tag_room(item) * number;
  }
  bool writes_tag(const TransferPiece::Item& item, const Message& message) const {
    return device_writes_tags && item.part == nullptr && message.direction == Direction::encrypt;
  }
};

// The mode of all messages that do not travel directly. read: of the engine, empty; it must live as long as the mode.
TransferMode choose_mode(const DeviceEngine& engine, PinnedRangeCache& read, std::span<const Message> messages,
                         const Extent& extent, std::size_t range_len);

// Whether messages from `first` to `last`, a contiguous run, travel directly: pinned runs of `direct_len` bytes do.
bool travels_directly(const DeviceEngine& engine, const Message& first, const Message& last, std::size_t direct_len);

}  // namespace warpcipher
