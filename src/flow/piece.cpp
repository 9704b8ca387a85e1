// SPDX-License-Identifier: Apache-2.0
#include "flow/piece.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/thread_pool.hpp"

namespace warpcipher {
namespace {

// Offset of a tag after a text that ends at `text_end`: aligned.
std::size_t tag_offset(std::size_t text_end) { return (text_end + full_tag_len - 1) / full_tag_len * full_tag_len; }

std::size_t entries_for(std::size_t len) {
  return (len + TransferPiece::most_listed_len - 1) / TransferPiece::most_listed_len;
}

}  // namespace

std::size_t TransferPiece::room_for(const Message& message) {
  const std::size_t text_len = std::max(message.in_len, message.output_len());
  return align_up(message.tag_len != 0 ? tag_offset(text_len) + full_tag_len : text_len);
}

std::size_t TransferPiece::list_room_for(const Message& message, const PieceLayout& layout) {
  if (!layout.lists_out) return 0;
  const std::size_t in = layout.lists_in ? entries_for(message.in_len) : 0;
  return (in + entries_for(message.output_len()) + (message.tag_len != 0 ? 1 : 0)) * sizeof(DeviceCopy);
}

std::size_t TransferPiece::with_list(std::size_t size) {
  return size + align_up((2 * entries_for(size) + 1) * sizeof(DeviceCopy));
}

bool TransferPiece::add(std::size_t index, std::size_t count, const PieceLayout& layout) {
  const Message& m = messages_[index];
  const Position position = find_position(m, layout);
  if (!fits(m, count, position, layout)) return false;
  append({index, count, position.at, position.coalesced, nullptr}, layout);
  return true;
}

void TransferPiece::add(Part part, const PieceLayout& layout) {
  const Position position = find_position(part.message, layout);
  const std::size_t index = part.index;
  append({index, 1, position.at, position.coalesced, std::make_unique<Part>(std::move(part))}, layout);
}

TransferPiece::Position TransferPiece::find_position(const Message& m, const PieceLayout& layout) const {
  if (layout.tight) return {used_, false};
  if (layout.coalescing != nullptr && !items_.empty()) {
    const Item& last = items_.back();
    const Message& before = message(last);
    if (can_coalesce(before, m, layout.coalescing->range_of(before.in))) {
      return {last.at + static_cast<std::size_t>(m.in - before.in), true};
    }
  }
  return {align_up(used_), false};
}

bool TransferPiece::fits(const Message& m, std::size_t count, const Position& position,
                         const PieceLayout& layout) const {
  if (empty()) return true;
  const std::size_t end = layout.coalescing == nullptr ? position.at + count * room_for(m)
                                                       : tag_offset(position.at + std::max(m.in_len, m.output_len())) +
                                                             full_tag_len * (tags_ + 1);
  return align_up(end) + list_len_ + list_room_for(m, layout) <= size_;
}

void TransferPiece::append(Item item, const PieceLayout& layout) {
  const Message& m = message(item);
  const std::size_t text_end = item.at + item.count * std::max(m.in_len, m.output_len());
  item.tag_at = tag_offset(text_end);
  if (m.tag_len != 0) ++tags_;
  used_ = m.tag_len != 0 && layout.coalescing == nullptr ? item.tag_at + tag_room(item) : text_end;
  list_len_ += list_room_for(m, layout);
  items_.push_back(std::move(item));
}

void TransferPiece::place_tags(const PieceLayout& layout) {
  if (layout.coalescing == nullptr || tags_ == 0) return;
  used_ = tag_offset(used_);
  for (Item& item : items_) {
    if (message(item).tag_len == 0) continue;
    item.tag_at = used_;
    used_ += tag_room(item);
  }
}

void TransferPiece::clear() {
  items_.clear();
  used_ = tags_ = list_len_ = 0;
}

namespace {

// Messages for each core. Waking another core for fewer takes longer than they do.
constexpr std::size_t joined_at_once = 8192;

Extent extent_of(std::span<const Message> messages, std::size_t begin, std::size_t end) {
  Extent e;
  for (std::size_t i = begin; i < end; ++i) {
    const Message& m = messages[i];
    const std::size_t room = TransferPiece::room_for(m);
    e.text_len += m.in_len;
    e.output_len += m.output_len();
    e.room += room;
    if (room > e.uncut && !can_be_cut(m)) e.uncut = room;
    if (i == 0) continue;
    e.contiguous = e.contiguous && is_contiguous(messages[i - 1], m);
    e.are_sectors = e.are_sectors && e.contiguous && is_next_sector(messages[i - 1], m);
  }
  return e;
}

}  // namespace

bool is_contiguous(const Message& before, const Message& m) {
  return before.tag_len == 0 && m.tag_len == 0 && before.in + before.in_len == m.in &&
         before.out + before.output_len() == m.out && before.in_len == before.output_len() &&
         m.in_len == m.output_len();
}

bool is_next_sector(const Message& before, const Message& m) {
  return before.key == m.key && before.in_len == m.in_len && before.direction == m.direction &&
         before.iv + before.iv_len == m.iv && m.in_len % TransferPiece::alignment == 0 &&
         m.algorithm().mode.id == Mode::xts && is_contiguous(before, m);
}

Extent find_extent(std::span<const Message> messages) {
  Extent all;
  std::mutex mutex;
  ThreadPool::instance().parallel_for(messages.size(), joined_at_once, [&](std::size_t begin, std::size_t end) {
    const Extent e = extent_of(messages, begin, end);
    const std::lock_guard lock(mutex);
    all.text_len += e.text_len;
    all.output_len += e.output_len;
    all.room += e.room;
    all.uncut = std::max(all.uncut, e.uncut);
    all.contiguous = all.contiguous && e.contiguous;
    all.are_sectors = all.are_sectors && e.are_sectors;
  });
  return all;
}

}  // namespace warpcipher
