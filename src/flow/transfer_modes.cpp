// SPDX-License-Identifier: Apache-2.0
#include "flow/transfer_modes.hpp"

#include <algorithm>
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

// Enqueue the DMA copies of lists.ranges.
void copy_ranges_in(const PieceTransfer& t) {
  copy_merged(t.lists, [&](std::span<const DeviceCopy> copies) { t.engine.copy_all_to_device(copies, t.stream); });
}

void copy_ranges_out(const PieceTransfer& t) {
  copy_merged(t.lists, [&](std::span<const DeviceCopy> copies) { t.engine.copy_all_to_host(copies, t.stream); });
}

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

TransferMode TransferMode::bounce() {
  TransferMode mode;
  mode.cores_copy_in = mode.cores_copy_out = true;
  return mode;
}

TransferMode TransferMode::direct() {
  TransferMode mode;
  mode.layout.tight = mode.kernels_write_to_bounce = true;
  return mode;
}

TransferMode TransferMode::scatter(bool writes_tags) {
  TransferMode mode;
  mode.layout.lists_out = mode.cores_copy_in = true;
  mode.device_writes_tags = writes_tags;
  return mode;
}

TransferMode TransferMode::gather_scatter(PinnedRangeCache& pinned, std::size_t range_len, bool writes_tags) {
  TransferMode mode;
  mode.layout = {.coalescing = &pinned, .lists_in = true, .lists_out = true};
  mode.device_writes_tags = writes_tags;
  mode.range_len_ = range_len;
  return mode;
}

// With texts the bounce buffer is as the device's memory; else it has the list, then the tags.
std::size_t TransferMode::bounce_len(const TransferPiece& piece) const {
  if (cores_copy_in) return piece.device_len();
  return piece.list_len() + (piece.has_tags() ? piece.tags_room() : 0);
}

TagPlaces TransferMode::tag_places(const TransferPiece& piece) const {
  return {cores_copy_in ? 0 : piece.list_len(), cores_copy_in};
}

// What brings texts in: long ranges by DMA (lists.ranges), others by a kernel (lists.listed).
void TransferMode::find_texts(const PieceTransfer& t) const {
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

// Fills in lists.listed: what brings results and tags back. The tags last, so that the kernel's warps share the texts
// evenly.
void TransferMode::list_results(const PieceTransfer& t) const {
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

void TransferMode::prepare(const PieceTransfer& t) const {
  if (!layout.lists_out) return;
  auto* const list = reinterpret_cast<DeviceCopy*>(t.bounce + (cores_copy_in ? t.piece.list_at() : 0));
  t.lists.ranges.clear();
  t.lists.listed.clear();
  t.listed = {};
  if (layout.lists_in) find_texts(t);
  t.listed.in = write_list(list, t.lists.listed);
  list_results(t);
  t.listed.out = write_list(list + t.listed.in, t.lists.listed);
}

namespace {

// The list in device memory, which the kernel reads.
const DeviceCopy* list_on_device(const PieceTransfer& t) {
  return reinterpret_cast<const DeviceCopy*>(t.device + t.piece.list_at());
}

}  // namespace

void TransferMode::copy_in(const PieceTransfer& t) const {
  const std::size_t list_len = (t.listed.in + t.listed.out) * sizeof(DeviceCopy);
  if (cores_copy_in) {  // the list follows the texts in the bounce buffer as on the device: one copy brings both in
    const std::size_t len = layout.lists_out ? t.piece.list_at() + list_len : t.piece.texts_len();
    t.lists.ranges.assign(1, {t.device, t.bounce, len});
  } else if (layout.lists_in) {
    t.lists.ranges.push_back({t.device + t.piece.list_at(), t.bounce, list_len});
  } else {
    t.lists.ranges.clear();
    for (const TransferPiece::Item& item : t.piece.items()) {
      t.lists.ranges.push_back({t.device + item.at, t.piece.message(item).in, t.piece.in_len(item)});
    }
  }
  copy_ranges_in(t);
  if (layout.lists_in) t.engine.copy_many(list_on_device(t), t.listed.in, Pace::full, t.stream);
}

void TransferMode::copy_out(const PieceTransfer& t) const {
  if (layout.lists_out) {
    return t.engine.copy_many(list_on_device(t) + t.listed.in, t.listed.out, pace_of_results(t), t.stream);
  }
  t.lists.ranges.clear();
  if (cores_copy_out) {
    t.lists.ranges.push_back({t.bounce, t.device, t.piece.texts_len()});
  } else {
    for (const TransferPiece::Item& item : t.piece.items()) {
      t.lists.ranges.push_back({t.piece.message(item).out, t.device + item.at, t.piece.output_len(item)});
    }
  }
  copy_ranges_out(t);
}

namespace {

// Shorter results, on average, also go back through the bounce buffer: the link moves requests of 128 bytes.
constexpr std::size_t least_scattered_len = 1024;

}  // namespace

TransferMode choose_mode(const DeviceEngine& engine, PinnedRangeCache& read, std::span<const Message> messages,
                         const Extent& extent, std::size_t range_len) {
  const bool are_long = extent.output_len >= messages.size() * least_scattered_len;
  if (messages.size() < 2 || !are_long) return TransferMode::bounce();
  PinnedRangeCache written(engine);
  bool reads = true, writes_tags = true;
  for (const Message& m : messages) {
    if (!written.holds(m.out, m.output_len())) return TransferMode::bounce();
    writes_tags = writes_tags && (m.direction == Direction::decrypt || written.holds(m.tag, m.tag_len));
    reads = reads && (m.in == m.out || read.holds(m.in, m.in_len));
  }
  return reads ? TransferMode::gather_scatter(read, range_len, writes_tags) : TransferMode::scatter(writes_tags);
}

bool travels_directly(const DeviceEngine& engine, const Message& first, const Message& last, std::size_t direct_len) {
  const auto in_len = static_cast<std::size_t>(last.in - first.in) + last.in_len;
  const auto out_len = static_cast<std::size_t>(last.out - first.out) + last.output_len();
  return in_len != 0 && in_len >= direct_len && engine.is_pinned(first.in, in_len) &&
         engine.is_pinned(first.out, out_len);
}

}  // namespace warpcipher
