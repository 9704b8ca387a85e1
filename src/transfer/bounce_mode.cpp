// SPDX-License-Identifier: Apache-2.0
#include "transfer/transfer_modes.hpp"

namespace warpcipher {

std::size_t BounceMode::bounce_len(const TransferPiece& piece) const { return piece.texts_len(); }

TagPlaces BounceMode::tag_places(const TransferPiece&) const { return {0, true}; }

void BounceMode::copy_in(const PieceTransfer& t) const {
  t.lists.ranges.assign(1, {t.device, t.bounce, t.piece.texts_len()});
  copy_ranges_in(t);
}

void BounceMode::copy_out(const PieceTransfer& t) const {
  t.lists.ranges.assign(1, {t.bounce, t.device, t.piece.texts_len()});
  copy_ranges_out(t);
}

}  // namespace warpcipher
