// SPDX-License-Identifier: Apache-2.0
#include "transfer/transfer_modes.hpp"

namespace warpcipher {

// The bounce buffer has the list, then the tags.
std::size_t GatherScatterMode::bounce_len(const TransferPiece& piece) const {
  return piece.list_len() + piece.tags_room();
}

TagPlaces GatherScatterMode::tag_places(const TransferPiece& piece) const { return {piece.list_len(), false}; }

// What brings texts in: long ranges by DMA (lists.ranges), others by a kernel (lists.listed).
void GatherScatterMode::find_texts(const PieceTransfer& t) const {
  const std::span<const TransferPiece::Item> items = t.piece.items();
  for (std::size_t begin = 0, end; begin < items.size(); begin = end) {
    end = begin + 1;
    while (end < items.size() && items[end].coalesced) ++end;
    const TransferPiece::Item& last = items[end - 1];
    const std::size_t len = last.at + t.piece.message(last).in_len - items[begin].at;
    if (len >= range_len_) {
      t.lists.ranges.push_back({t.device + items[begin].at, t.piece.message(items[begin]).in, len});
      continue;
    }
    t.listed.lone_texts += end - begin;
    for (std::size_t i = begin; i < end; ++i) {
      const Message& m = t.piece.message(items[i]);
      t.lists.listed.push_back({t.device + items[i].at, m.in, m.in_len});
    }
  }
}

void GatherScatterMode::prepare(const PieceTransfer& t) const {
  auto* const list = reinterpret_cast<DeviceCopy*>(t.bounce);
  t.lists.ranges.clear();
  t.lists.listed.clear();
  t.listed = {};
  find_texts(t);
  t.listed.in = write_list(list, t.lists.listed);
  list_results(t);
  t.listed.out = write_list(list + t.listed.in, t.lists.listed);
}

void GatherScatterMode::copy_in(const PieceTransfer& t) const {
  const std::size_t list_len = (t.listed.in + t.listed.out) * sizeof(DeviceCopy);
  t.lists.ranges.push_back({t.device + t.piece.list_at(), t.bounce, list_len});
  copy_ranges_in(t);
  t.engine.copy_many(list_on_device(t), t.listed.in, Pace::full, t.stream);
}

}  // namespace warpcipher
