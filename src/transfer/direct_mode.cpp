// SPDX-License-Identifier: Apache-2.0
#include "transfer/transfer_modes.hpp"

namespace warpcipher {

// The bounce buffer has the tags alone.
std::size_t DirectMode::bounce_len(const TransferPiece& piece) const {
  return piece.has_tags() ? piece.tags_room() : 0;
}

TagPlaces DirectMode::tag_places(const TransferPiece&) const { return {0, false}; }

void DirectMode::copy_in(const PieceTransfer& t) const {
  t.lists.ranges.clear();
  for (const TransferPiece::Item& item : t.piece.items()) {
    t.lists.ranges.push_back({t.device + item.at, t.piece.message(item).in, t.piece.in_len(item)});
  }
  copy_ranges_in(t);
}

void DirectMode::copy_out(const PieceTransfer& t) const {
  t.lists.ranges.clear();
  for (const TransferPiece::Item& item : t.piece.items()) {
    t.lists.ranges.push_back({t.piece.message(item).out, t.device + item.at, t.piece.output_len(item)});
  }
  copy_ranges_out(t);
}

}  // namespace warpcipher
