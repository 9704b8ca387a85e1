// SPDX-License-Identifier: Apache-2.0
#include "flow/transfer_modes.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "flow/copy.hpp"
#include "flow/slot_memory.hpp"

namespace warpcipher {
namespace {

// Two allocations of the caller's may be adjacent, and the driver refuses a copy across their border. Then each range
// is copied by itself.
template <class Copy>
void copy_merged(CopyLists& lists, Copy&& copy) {
  lists.merged.clear();
  for (const DeviceCopy& range : lists.ranges) append_range(lists.merged, range);
  try {
    copy(lists.merged);
  } catch (const Error&) {
    std::erase_if(lists.ranges, [](const DeviceCopy& range) { return range.len == 0; });
    if (lists.merged.size() == lists.ranges.size()) throw;
    copy(lists.ranges);
  }
}

}  // namespace

void copy_ranges_in(const PieceTransfer& t) {
  copy_merged(t.lists, [&](std::span<const DeviceCopy> copies) { t.engine.copy_all_to_device(copies, t.stream); });
}

void copy_ranges_out(const PieceTransfer& t) {
  copy_merged(t.lists, [&](std::span<const DeviceCopy> copies) { t.engine.copy_all_to_host(copies, t.stream); });
}

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

namespace {

// Shorter results, on average, also go back through the bounce buffer: the link moves requests of 128 bytes.
constexpr std::size_t least_scattered_len = 1024;

}  // namespace

std::unique_ptr<const TransferMode> choose_mode(const DeviceEngine& engine, std::span<const Message> messages,
                                                const Extent& extent, std::size_t range_len) {
  const bool are_long = extent.output_len >= messages.size() * least_scattered_len;
  if (messages.size() < 2 || !are_long) return std::make_unique<BounceMode>();
  PinnedRangeCache written(engine), read(engine);
  bool reads = true, writes_tags = true;
  for (const Message& m : messages) {
    if (!written.holds(m.out, m.output_len())) return std::make_unique<BounceMode>();
    writes_tags = writes_tags && (m.direction == Direction::decrypt || written.holds(m.tag, m.tag_len));
    reads = reads && (m.in == m.out || read.holds(m.in, m.in_len));
  }
  if (!reads) return std::make_unique<ScatterMode>(writes_tags);
  return std::make_unique<GatherScatterMode>(std::move(read), range_len, writes_tags);
}

bool travels_directly(const DeviceEngine& engine, const Message& first, const Message& last, std::size_t direct_len) {
  const auto in_len = static_cast<std::size_t>(last.in - first.in) + last.in_len;
  const auto out_len = static_cast<std::size_t>(last.out - first.out) + last.output_len();
  return in_len != 0 && in_len >= direct_len && engine.is_pinned(first.in, in_len) &&
         engine.is_pinned(first.out, out_len);
}

}  // namespace warpcipher
