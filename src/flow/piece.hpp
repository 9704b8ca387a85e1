// SPDX-License-Identifier: Apache-2.0
// A piece: the messages and parts of messages that travel to a device together, and where each of them lies there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/device_engine.hpp"
#include "flow/cutter.hpp"
#include "message/message.hpp"

namespace warpcipher {

// The page-locked ranges of the caller's memory that a device can access by itself, each asked of the driver once: for
// example the one buffer of each client.
class PinnedRangeCache {
 public:
  explicit PinnedRangeCache(const DeviceEngine& engine) : engine_(engine) {}

  // Whether one allocation that the device can access holds all `len` bytes.
  bool holds(const void* data, std::size_t len) { return len == 0 || range_of(data).holds(data, len); }

  // The allocation that holds the byte at `data`; empty when the device cannot access it.
  AddressRange range_of(const void* data) {
    const auto holds_it = [&](const AddressRange& range) { return range.holds(data, 1); };
    if (last_ < known_.size() && holds_it(known_[last_])) return known_[last_];
    const auto found = std::find_if(known_.begin(), known_.end(), holds_it);
    last_ = static_cast<std::size_t>(found - known_.begin());
    if (found != known_.end()) return *found;
    if (known_.size() == most_known) known_.clear();
    last_ = known_.size();
    known_.push_back(engine_.find_page_locked(data));  // takes 0.2 us
    return known_.back();
  }

 private:
  static constexpr std::size_t most_known = 64;

  const DeviceEngine& engine_;
  std::vector<AddressRange> known_;
  std::size_t last_ = 0;  // neighbours mostly lie in the same one
};

// How the texts of a piece lie in device memory. A transfer mode has one layout.
struct PieceLayout {
  // Texts follow each other without padding, as they do in the caller's memory. Else each is aligned.
  bool tight = false;
  // Texts that can_coalesce() keep their distances; the piece's tags follow all texts, because gaps have no room for
  // them. nullptr: no text is coalesced, and each tag follows its text.
  PinnedRangeCache* coalescing = nullptr;
  // A kernel copies texts in, or results out, from a list in device memory. It follows the texts. lists_in needs
  // lists_out.
  bool lists_in = false;
  bool lists_out = false;
};

class TransferPiece {
 public:
  // Texts, and lists, are aligned to this in device memory, so that kernels take their aligned paths.
  static constexpr std::size_t alignment = 64;
  // A warp copies at most this many bytes of a text, which takes one entry of the list.
  static constexpr std::size_t most_listed_len = std::size_t{16} << 10;

  static constexpr std::size_t align_up(std::size_t n) { return (n + alignment - 1) / alignment * alignment; }

  // Bytes of device memory that the text and tag of a message need.
  static std::size_t room_for(const Message& message);

  // Bytes that its entries in the list need.
  static std::size_t list_room_for(const Message& message, const PieceLayout& layout);

  // `size` with room for the list of one message of `size` bytes.
  static std::size_t with_list(std::size_t size);

  struct Item {
    std::size_t index;           // of the message in the batch
    std::size_t count;           // 1, or the number of sectors of which the message is the first
    std::size_t at;              // offset of the text in device memory
    bool coalesced;              // one range with the text before it
    std::unique_ptr<Part> part;  // nullptr: the whole message
    std::size_t tag_at = 0;      // offset of the tag in device memory
  };

  // A piece of at most `size` bytes of device memory, of messages of this batch.
  TransferPiece(std::span<const Message> messages, std::size_t size) : messages_(messages), size_(size) {}

  // Adds message `index`, or `count` sectors from it on. Returns false and adds nothing when it does not fit; an empty
  // piece takes anything. All items of a piece have the same layout.
  bool add(std::size_t index, std::size_t count, const PieceLayout& layout);
  void add(Part part, const PieceLayout& layout);

  // Places the tags of a piece with coalescing, after the last text has been added.
  void place_tags(const PieceLayout& layout);

  void clear();

  bool empty() const { return items_.empty(); }
  std::span<const Item> items() const { return items_; }
  const Message& message(const Item& item) const {
    return item.part != nullptr ? item.part->message : messages_[item.index];
  }
  std::size_t in_len(const Item& item) const { return item.count * message(item).in_len; }
  std::size_t output_len(const Item& item) const { return item.count * message(item).output_len(); }

  // Bytes of device memory, and of the bounce buffer, for the tag of an item.
  static std::size_t tag_room(const Item& item) {
    return item.part != nullptr && item.part->tags != nullptr ? PieceTags::most_tag_len : full_tag_len;
  }
  // For all tags. A part travels alone.
  std::size_t tags_room() const { return items_.empty() ? 0 : items_.size() * tag_room(items_.front()); }

  // Bytes of device memory: texts and tags; then, from list_at() on, list_len() of the list.
  std::size_t texts_len() const { return used_; }
  std::size_t list_at() const { return align_up(used_); }
  std::size_t list_len() const { return list_len_; }
  std::size_t device_len() const { return list_len_ == 0 ? used_ : list_at() + list_len_; }
  bool has_tags() const { return tags_ != 0; }

 private:
  struct Position {
    std::size_t at;
    bool coalesced;
  };

  Position find_position(const Message& message, const PieceLayout& layout) const;
  bool fits(const Message& message, std::size_t count, const Position& position, const PieceLayout& layout) const;
  void append(Item item, const PieceLayout& layout);

  const std::span<const Message> messages_;
  const std::size_t size_;
  std::size_t used_ = 0;
  std::size_t tags_ = 0;
  std::size_t list_len_ = 0;
  std::vector<Item> items_;
};

// Contiguous runs: messages whose texts, and whose results, follow each other in the caller's memory without a gap, so
// that one copy takes all of them. Some runs are sectors, XTS data units of one kind: the first one and their number
// then describe all of them to a device.

// Whether text and result of `m` begin where text and result of `before` end.
bool is_contiguous(const Message& before, const Message& m);

// Whether `m` is the sector after `before`: contiguous, with contiguous IVs, and with the same key, direction and
// length. The length keeps sectors aligned in device memory.
bool is_next_sector(const Message& before, const Message& m);

// A summary of the messages of a batch, made once: for a million messages each pass of one thread costs too much.
struct Extent {
  std::size_t text_len = 0;    // bytes of text in
  std::size_t output_len = 0;  // bytes of text out
  std::size_t room = 0;        // device memory that they need, in bytes
  std::size_t uncut = 0;       // and the most that a message needs which cannot be cut
  bool contiguous = true;      // all messages are one contiguous run
  bool are_sectors = true;     // of sectors
};

// Uses all cores. There is at least one message.
Extent find_extent(std::span<const Message> messages);

// Which short texts in page-locked memory are coalesced into one range, which a copy engine brings to the device in one
// copy:
//
//   the caller's   [text 0].tag.[text 1].tag.[text 2]..............[text 9].tag.[text 10]
//   on the device  [text 0].....[text 1].....[text 2]  [text 9].....[text 10]
//
// Bytes in the gap are copied and never read. A range stays within one allocation, its copy on the device is wiped with
// everything else there, and no byte of a gap is copied back.

// A text is at least this many times as long as the gap after it, and no gap is longer than a page: otherwise the link
// would move too many bytes that nobody reads.
inline constexpr std::size_t least_text_to_gap = 8;
inline constexpr std::size_t most_gap = 4096;

// Whether the text of `m` extends the range that ends with the text of `before`. `allocation`: the pinned allocation
// that holds the latter. On the device the texts keep their distance, so it must keep blocks aligned and leave room for
// the result.
inline bool can_coalesce(const Message& before, const Message& m, const AddressRange& allocation) {
  const auto begin = reinterpret_cast<std::uintptr_t>(before.in), next = reinterpret_cast<std::uintptr_t>(m.in);
  if (before.in_len == 0 || m.in_len == 0 || next < begin) return false;
  const std::size_t distance = next - begin;
  const std::size_t room = std::max(before.in_len, before.output_len());
  const std::size_t gap = std::min(before.in_len / least_text_to_gap, most_gap);
  return distance >= room && distance - before.in_len <= gap && distance % 16 == 0 && allocation.holds(m.in, m.in_len);
}

}  // namespace warpcipher
