// SPDX-License-Identifier: Apache-2.0
// A piece: the messages and parts of messages that travel to a device together, and where each of them lies there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "engine/device_engine.hpp"
#include "flow/cutter.hpp"

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

}  // namespace warpcipher
