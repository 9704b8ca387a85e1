// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "transfer/active_transfers.hpp"
#include "transfer/copy.hpp"
#include "transfer/transfer_modes.hpp"

namespace warpcipher {
namespace {

// Many blocks that store crowd out incoming copies. That does not matter after the last piece of a transfer that runs
// alone, and where a kernel read most texts, so that no DMA copies come in. Copies of other than whole words need many
// lanes.
Pace pace_of_results(const PieceTransfer& t) {
  const std::span<const TransferPiece::Item> items = t.piece.items();
  if ((t.is_last && ActiveTransfer::count() < 2) || 2 * t.listed.lone_texts >= items.size()) return Pace::full;
  const bool are_words = std::all_of(items.begin(), items.end(), [&](const TransferPiece::Item& item) {
    const auto places = reinterpret_cast<std::uintptr_t>(t.device + item.at) |
                        reinterpret_cast<std::uintptr_t>(t.piece.message(item).out);
    return places % 16 == 0;
  });
  return are_words ? Pace::gentle : Pace::full;
}

}  // namespace

std::size_t write_list(DeviceCopy* to, std::vector<DeviceCopy>& copies) {
  DeviceCopy* next = to;
  for (const DeviceCopy& copy : copies) {
    for (std::size_t offset = 0; offset < copy.len; offset += TransferPiece::most_listed_len) {
      *next++ = {static_cast<std::uint8_t*>(copy.to) + offset, static_cast<const std::uint8_t*>(copy.from) + offset,
                 std::min(TransferPiece::most_listed_len, copy.len - offset)};
    }
  }
  copies.clear();
  return static_cast<std::size_t>(next - to);
}

const DeviceCopy* ListedMode::list_on_device(const PieceTransfer& t) {
  return reinterpret_cast<const DeviceCopy*>(t.device + t.piece.list_at());
}

// The tags last, so that the kernel's warps share the texts evenly.
void ListedMode::list_results(const PieceTransfer& t) const {
  const std::span<const TransferPiece::Item> items = t.piece.items();
  for (const TransferPiece::Item& item : items) {
    const Message& m = t.piece.message(item);
    append_range(t.lists.listed, {m.out, t.device + item.at, m.output_len()});
  }
  const TagPlaces tags = tag_places(t.piece);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Message& m = t.piece.message(items[i]);
    if (m.tag_len == 0) continue;
    const std::uint8_t* const from = t.device + items[i].tag_at;
    if (writes_tag(items[i], m)) {
      append_range(t.lists.listed, {m.tag, from, m.tag_len});
    } else {
      append_range(t.lists.listed, {t.bounce + tags.offset(items[i], i), from, TransferPiece::tag_room(items[i])});
    }
  }
}

void ListedMode::copy_out(const PieceTransfer& t) const {
  t.engine.copy_many(list_on_device(t) + t.listed.in, t.listed.out, pace_of_results(t), t.stream);
}

}  // namespace warpcipher
