// SPDX-License-Identifier: Apache-2.0
#include "transfer/transfer_modes.hpp"

namespace warpcipher {

// The bounce buffer has the tags alone.
std::size_t DirectMode::bounce_len(const TransferPiece& piece) const {
  return piece.has_tags() ? TransferPiece::tag_room * piece.items().size() : 0;
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
  const std::span<const TransferPiece::Item> items = t.piece.items();
  const TagPlaces tags = tag_places(t.piece);
  t.lists.ranges.clear();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Message& m = t.piece.message(items[i]);
    t.lists.ranges.push_back({m.out, t.device + items[i].at, t.piece.output_len(items[i])});
    if (m.tag_len == 0) continue;
    t.lists.ranges.push_back(
        {t.bounce + tags.offset(items[i], i), t.device + items[i].tag_at, TransferPiece::tag_room});
  }
  copy_ranges_out(t);
}

}  // namespace warpcipher
