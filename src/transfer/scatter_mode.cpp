// SPDX-License-Identifier: Apache-2.0
#include "transfer/transfer_modes.hpp"

namespace warpcipher {

// The list follows the texts in the bounce buffer as on the device: one copy brings both in.
std::size_t ScatterMode::bounce_len(const TransferPiece& piece) const { return piece.list_at() + piece.list_len(); }

TagPlaces ScatterMode::tag_places(const TransferPiece&) const { return {0, true}; }

void ScatterMode::prepare(const PieceTransfer& t) const {
  t.lists.listed.clear();
  list_results(t);
  t.listed = {};
  t.listed.out = write_list(reinterpret_cast<DeviceCopy*>(t.bounce + t.piece.list_at()), t.lists.listed);
}

void ScatterMode::copy_in(const PieceTransfer& t) const {
  t.lists.ranges.assign(1, {t.device, t.bounce, t.piece.list_at() + t.listed.out * sizeof(DeviceCopy)});
  copy_ranges_in(t);
}

}  // namespace warpcipher
