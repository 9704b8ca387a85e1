// SPDX-License-Identifier: Apache-2.0
// One piece on its way to a device and back: memory there, page-locked memory here, a stream, and the parts of messages
// that they hold. Nothing in it waits: whoever drives a slot calls advance() until the piece is back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/device_engine.hpp"
#include "transfer/bounce_buffer.hpp"
#include "transfer/copy.hpp"
#include "transfer/cutter.hpp"
#include "transfer/pinned_range_cache.hpp"

namespace warpcipher {

// How texts get from the caller's memory to a device and back.
enum class Way : std::uint8_t {
  packed,     // the cores copy them into and out of the slot's page-locked memory
  scattered,  // in likewise; out straight to the caller's page-locked memory, by a kernel, as they are many and short
  by_device,  // both ways straight from and to the caller's page-locked memory, many and short, too: in by a copy
              // engine where they lie close together (can_coalesce.hpp), else by a kernel; out by a kernel
  direct,     // straight from and to the caller's page-locked memory
};

// Whether a kernel makes copies, of which the slot then has a list.
constexpr bool has_list(Way way) { return way == Way::scattered || way == Way::by_device; }

// What the slots of a ring share: the batch, its statuses, and lists whose memory is used again, for fresh memory costs
// a batch of short messages more than all else does.
struct RingBatch {
  std::span<const Message> messages;
  std::span<Status> statuses;
  std::vector<Message> on_device;
  std::vector<std::size_t> indices;  // of those
  std::vector<Status> part_statuses;
  std::vector<DeviceCopy> ranges, joined, rest;
  PinnedRangeCache read;  // of the caller's memory, by the device
  std::size_t range_len;  // PipelineShape::range_len
  bool reaches_tags;      // the device may write tags to their places, as it does texts
};

class Slot {
 public:
  // What messages start at multiples of in a slot, so that kernels take their aligned paths. Those that travel in one
  // range lie here as they do in the caller's memory.
  static constexpr std::size_t alignment = 64;

  static constexpr std::size_t align_up(std::size_t n) { return (n + alignment - 1) / alignment * alignment; }

  // What a message needs of a slot's size.
  static std::size_t room_for(const Message& message);

  // What the list of the copies that a kernel makes takes of it beside that; and `size` with room for the list of a
  // message as long.
  static std::size_t list_room_for(const Message& message, Way way);
  static std::size_t with_list(std::size_t size);

  // job: of the copies by the cores; helpers may look at it for longer than the slot lives.
  Slot(DeviceEngine& engine, int device, std::size_t size, RingBatch& batch, CopyJob& job);
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot();

  bool empty() const { return parts_.empty(); }

  // Adds message number `index`, with the sectors of its row behind it if `count` is more than 1. False, and nothing is
  // added, when it does not fit in or travels another way than those that are there.
  bool add(std::size_t index, std::size_t count, Way way);
  void add(Part part, Way way);

  // Sets the piece off. is_last: none of the run comes in behind it.
  void send(bool is_last);

  // What the piece is at.
  enum class State : std::uint8_t { filling, copying_in, on_device, copying_out };

  State state() const { return state_; }

  // Moves on if what the piece waits for has happened. The piece that comes back hands over texts, tags and verdicts of
  // tags, and leaves the slot empty. `first`: the pieces sent before it have left the device, so that it may, too (the
  // tags of a message's parts add up in order). False when nothing happened.
  bool advance(bool first);

  // Waits for the device.
  void wait();

 private:
  struct Held {
    std::size_t index;           // of the message in the batch
    std::size_t count;           // more than 1: the first of so many sectors, which this then is about
    std::size_t at;              // of the text, in device memory and, unless direct, in host memory
    bool coalesced;              // in one range with the text before it
    std::unique_ptr<Part> part;  // if it is not the whole message
    std::size_t tag_at = 0;      // of the tag, as the text
  };

  const Message& message(const Held& held) const {
    return held.part != nullptr ? held.part->message : batch_.messages[held.index];
  }
  // Where a message would begin, and whether that is in one range with the one before it.
  struct Place {
    std::size_t at;
    bool coalesced;
  };

  // Bytes in and out.
  std::size_t in_len(const Held& held) const { return held.count * message(held).in_len; }
  std::size_t output_len(const Held& held) const { return held.count * message(held).output_len(); }

  Place find_place(const Message& message, Way way) const;
  bool fits(const Message& message, std::size_t count, const Place& place, Way way) const;
  void hold(Held held, Way way);
  void place_tags();
  std::size_t needed_host_len() const;
  std::size_t list_at() const;
  std::uint8_t* host_tag(std::size_t number) const;
  bool writes_own_tag(const Held& held) const;
  void prepare_memory();
  void list_copies();
  void find_texts_in();
  void find_texts_out();
  template <class Copy>
  void copy_ranges(Copy&& copy);
  void launch();
  Pace pace_out() const;
  void bring_back();
  void collect();
  Message on_device(const Held& held) const;
  void run_on_device();
  bool is_authentic(std::size_t number);
  void release() noexcept;

  DeviceEngine& engine_;
  const int device_;
  const std::size_t size_;
  RingBatch& batch_;
  CopyJob& job_;
  Stream stream_ = nullptr;
  std::uint8_t* memory_ = nullptr;  // on the device
  std::size_t memory_used_ = 0;     // bytes ever used of it: to be wiped
  BounceBuffer host_;
  std::size_t used_ = 0;        // of memory_, by parts_
  std::size_t tags_ = 0;        // how many of them have one
  std::size_t list_len_ = 0;    // room for the list of copies by a kernel behind them, in bytes
  std::size_t copies_in_ = 0;   // of the list: first those that bring texts in,
  std::size_t copies_out_ = 0;  // then those that bring texts and tags back
  std::size_t lone_ = 0;        // texts that the former bring in
  Way way_ = Way::packed;
  bool is_last_ = false;
  State state_ = State::filling;
  std::vector<Held> parts_;
};

}  // namespace warpcipher
