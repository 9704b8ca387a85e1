// SPDX-License-Identifier: Apache-2.0
#include "transfer/slot.hpp"

#include <algorithm>
#include <cstring>

#include "batch/plan.hpp"
#include "batch/tag.hpp"
#include "transfer/active_transfers.hpp"
#include "transfer/can_coalesce.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t tag_room = GcmPieces::tag_len;

// Where a tag lies behind a text, so that it is aligned.
std::size_t tag_offset(std::size_t text_end) { return (text_end + tag_room - 1) / tag_room * tag_room; }

// A warp copies so much in a row.
constexpr std::size_t most_copy_len = std::size_t{16} << 10;

std::size_t copies_of(std::size_t len) { return (len + most_copy_len - 1) / most_copy_len; }

}  // namespace

std::size_t Slot::room_for(const Message& message) {
  const std::size_t text_len = std::max(message.in_len, message.output_len());
  return align_up(message.tag_len != 0 ? tag_offset(text_len) + tag_room : text_len);
}

std::size_t Slot::list_room_for(const Message& message, Way way) {
  if (!has_list(way)) return 0;
  const std::size_t in = way == Way::by_device ? copies_of(message.in_len) : 0;
  return (in + copies_of(message.output_len()) + (message.tag_len != 0 ? 1 : 0)) * sizeof(DeviceCopy);
}

std::size_t Slot::with_list(std::size_t size) {
  return size + align_up((2 * copies_of(size) + 1) * sizeof(DeviceCopy));
}

Slot::Slot(DeviceEngine& engine, int device, std::size_t size, RingBatch& batch, CopyJob& job)
    : engine_(engine), device_(device), size_(size), batch_(batch), job_(job), host_(engine) {
  const SelectedDevice scope(engine, device);
  stream_ = engine.create_stream();
  try {
    memory_ = static_cast<std::uint8_t*>(engine.allocate(size, stream_));
  } catch (...) {
    release();
    throw;
  }
}

Slot::~Slot() { release(); }

// After an error copies and the stream may still be at work on the buffers: they are waited for before these go.
void Slot::release() noexcept {
  job_.cancel();
  try {
    const SelectedDevice scope(engine_, device_);
    if (!parts_.empty()) {
      try {
        engine_.wait(stream_);
      } catch (const Error&) {  // the error that brought us here is already on its way
      }
    }
    if (memory_ != nullptr) engine_.deallocate(memory_, size_, memory_used_, stream_);
    engine_.destroy_stream(stream_);
  } catch (const Error&) {  // the driver is gone, and with it what it held
  }
}

bool Slot::add(std::size_t index, std::size_t count, Way way) {
  const Message& m = batch_.messages[index];
  const Place place = find_place(m, way);
  if (!fits(m, count, place, way)) return false;
  hold({index, count, place.at, place.coalesced, nullptr}, way);
  return true;
}

void Slot::add(Part part, Way way) {
  const Place place = find_place(part.message, way);
  const std::size_t index = part.index;
  hold({index, 1, place.at, place.coalesced, std::make_unique<Part>(std::move(part))}, way);
}

Slot::Place Slot::find_place(const Message& m, Way way) const {
  // Direct parts in a row are one range in the caller's memory, so they are one here.
  if (way == Way::direct) return {used_, false};
  if (way == Way::by_device && !parts_.empty()) {
    const Held& last = parts_.back();
    const Message& before = message(last);
    if (can_coalesce(before, m, batch_.read.range_of(before.in))) {
      return {last.at + static_cast<std::size_t>(m.in - before.in), true};
    }
  }
  return {align_up(used_), false};
}

bool Slot::fits(const Message& m, std::size_t count, const Place& place, Way way) const {
  if (empty()) return true;
  if (way != way_) return false;
  std::size_t end = place.at + count * room_for(m);
  if (way == Way::by_device) end = tag_offset(place.at + std::max(m.in_len, m.output_len())) + tag_room * (tags_ + 1);
  return align_up(end) + list_len_ + list_room_for(m, way) <= size_;
}

void Slot::hold(Held held, Way way) {
  const Message& m = message(held);
  const std::size_t text_end = held.at + held.count * std::max(m.in_len, m.output_len());
  held.tag_at = tag_offset(text_end);
  if (m.tag_len != 0) ++tags_;
  used_ = m.tag_len != 0 && way != Way::by_device ? held.tag_at + tag_room : text_end;
  list_len_ += list_room_for(m, way);
  way_ = way;
  parts_.push_back(std::move(held));
}

// Behind all texts, where those lie as in the caller's memory: between them there may be no room.
void Slot::place_tags() {
  if (tags_ == 0) return;
  used_ = tag_offset(used_);
  for (Held& held : parts_) {
    if (message(held).tag_len == 0) continue;
    held.tag_at = used_;
    used_ += tag_room;
  }
}

std::size_t Slot::needed_host_len() const {
  if (way_ == Way::packed) return used_;
  if (way_ == Way::scattered) return align_up(used_) + list_len_;
  if (way_ == Way::by_device) return list_len_ + tag_room * parts_.size();
  const bool tags = std::any_of(parts_.begin(), parts_.end(), [&](const Held& h) { return message(h).tag_len != 0; });
  return tags ? tag_room * parts_.size() : 0;
}

// Where the list begins in page-locked memory: there it has the texts before it, if they travel that way.
std::size_t Slot::list_at() const { return way_ == Way::scattered ? align_up(used_) : 0; }

// Where a tag comes back to, unless the device writes it to its place.
std::uint8_t* Slot::host_tag(std::size_t number) const {
  if (way_ == Way::direct) return host_.data() + tag_room * number;
  return host_.data() + (way_ == Way::by_device ? list_len_ + tag_room * number : parts_[number].tag_at);
}

// The tag of a whole message that is encrypted needs nothing more of the host.
bool Slot::writes_own_tag(const Held& held) const {
  return batch_.reaches_tags && has_list(way_) && held.part == nullptr && message(held).direction == Direction::encrypt;
}

// Page-locked memory is costly, so there is no more than was needed so far: of direct parts, for their tags.
void Slot::prepare_memory() {
  const std::size_t needed = needed_host_len();
  // A second piece of a batch is nearly as large as the slot: the buffer then grows no more.
  host_.reserve(needed, way_ == Way::direct || way_ == Way::by_device ? needed : size_);
}

void Slot::send(bool is_last) {
  is_last_ = is_last;
  if (way_ == Way::by_device) place_tags();
  prepare_memory();
  if (way_ == Way::direct) {
    launch();
    return;
  }
  if (has_list(way_)) list_copies();
  if (way_ == Way::by_device) {
    launch();
    return;
  }
  batch_.joined.clear();
  for (const Held& held : parts_) {
    append_range(batch_.joined, {host_.data() + held.at, message(held).in, in_len(held)});
  }
  job_.start(batch_.joined);
  state_ = State::copying_in;
}

// What brings texts in: by copy engines into batch_.ranges, by a kernel into batch_.rest.
void Slot::find_texts_in() {
  for (std::size_t begin = 0, end; begin < parts_.size(); begin = end) {
    end = begin + 1;
    while (end < parts_.size() && parts_[end].coalesced) ++end;
    const Message& last = message(parts_[end - 1]);
    const std::size_t len = parts_[end - 1].at + last.in_len - parts_[begin].at;
    if (len >= batch_.range_len) {
      batch_.ranges.push_back({memory_ + parts_[begin].at, message(parts_[begin]).in, len});
      continue;
    }
    lone_ += end - begin;
    for (std::size_t i = begin; i < end; ++i) {
      const Message& m = message(parts_[i]);
      batch_.rest.push_back({memory_ + parts_[i].at, m.in, m.in_len});
    }
  }
}

// What brings texts and tags back, by a kernel: the tags last, so that its warps share the texts evenly.
void Slot::find_texts_out() {
  for (const Held& held : parts_) {
    const Message& m = message(held);
    append_range(batch_.rest, {m.out, memory_ + held.at, m.output_len()});
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Held& held = parts_[i];
    const Message& m = message(held);
    if (m.tag_len == 0) continue;
    const bool own = writes_own_tag(held);
    append_range(batch_.rest, {own ? m.tag : host_tag(i), memory_ + held.tag_at, own ? m.tag_len : tag_room});
  }
}

// The list travels behind the texts, in one copy with them, or alone.
void Slot::list_copies() {
  auto* const list = reinterpret_cast<DeviceCopy*>(host_.data() + list_at());
  auto* next = list;
  const auto append_rest = [&] {
    const auto* const begin = next;
    for (const DeviceCopy& range : batch_.rest) {
      for (std::size_t offset = 0; offset < range.len; offset += most_copy_len) {
        *next++ = {static_cast<std::uint8_t*>(range.to) + offset, static_cast<const std::uint8_t*>(range.from) + offset,
                   std::min(most_copy_len, range.len - offset)};
      }
    }
    batch_.rest.clear();
    return static_cast<std::size_t>(next - begin);
  };
  batch_.ranges.clear();
  batch_.rest.clear();
  lone_ = 0;
  if (way_ == Way::by_device) find_texts_in();
  copies_in_ = append_rest();
  find_texts_out();
  copies_out_ = append_rest();
}

Message Slot::on_device(const Held& held) const {
  Message m = held.part != nullptr ? held.part->runnable() : message(held);
  m.out_len = std::max(m.in_len, m.output_len());
  m.memory = Memory::device;
  m.in = m.out = memory_ + held.at;
  m.tag = m.tag_len != 0 ? memory_ + held.tag_at : nullptr;
  // Tags are checked here, so that the engine need not wait for its own verdict; those of pieces are of no use alone.
  if (m.tag_len != 0) m.tag_len = GcmPieces::tag_len;
  m.compute_tag = m.tag_len != 0 && m.direction == Direction::decrypt;
  return m;
}

// Sectors need no list.
void Slot::run_on_device() {
  batch_.on_device.clear();
  batch_.indices.clear();
  for (const Held& held : parts_) {
    if (held.count > 1) {
      engine_.run_sectors(on_device(held), held.count, stream_);
      continue;
    }
    batch_.on_device.push_back(on_device(held));
    batch_.indices.push_back(held.index);
  }
  if (batch_.on_device.empty()) return;
  batch_.part_statuses.assign(batch_.on_device.size(), Status::ok);
  engine_.run_allocated(make_plan(batch_.on_device, engine_.tile_units()), batch_.part_statuses, stream_);
  for (std::size_t i = 0; i < batch_.indices.size(); ++i) {
    if (batch_.part_statuses[i] != Status::ok) batch_.statuses[batch_.indices[i]] = batch_.part_statuses[i];
  }
}

// Ranges in a row are copied as one; but two allocations of the caller's may lie side by side, and the driver refuses a
// copy across their border. Then each goes alone.
template <class Copy>
void Slot::copy_ranges(Copy&& copy) {
  batch_.joined.clear();
  for (const DeviceCopy& range : batch_.ranges) append_range(batch_.joined, range);
  try {
    copy(batch_.joined);
  } catch (const Error&) {
    std::erase_if(batch_.ranges, [](const DeviceCopy& range) { return range.len == 0; });
    if (batch_.joined.size() == batch_.ranges.size()) throw;
    copy(batch_.ranges);
  }
}

void Slot::launch() {
  const SelectedDevice scope(engine_, device_);
  memory_used_ = std::max(memory_used_, has_list(way_) ? align_up(used_) + list_len_ : used_);
  const std::size_t list_len = (copies_in_ + copies_out_) * sizeof(DeviceCopy);
  if (way_ != Way::by_device) batch_.ranges.clear();
  if (way_ == Way::packed) batch_.ranges.push_back({memory_, host_.data(), used_});
  if (way_ == Way::scattered) batch_.ranges.push_back({memory_, host_.data(), align_up(used_) + list_len});
  if (way_ == Way::by_device) batch_.ranges.push_back({memory_ + align_up(used_), host_.data(), list_len});
  for (std::size_t i = 0; way_ == Way::direct && i < parts_.size(); ++i) {
    batch_.ranges.push_back({memory_ + parts_[i].at, message(parts_[i]).in, in_len(parts_[i])});
  }
  copy_ranges([&](std::span<const DeviceCopy> ranges) { engine_.copy_all_to_device(ranges, stream_); });
  const auto* const copies = reinterpret_cast<const DeviceCopy*>(memory_ + align_up(used_));
  if (way_ == Way::by_device) engine_.copy_many(copies, copies_in_, Pace::full, stream_);
  run_on_device();
  bring_back();
  state_ = State::on_device;
}

// While many blocks store, the next piece does not come in. There is none behind the last piece of a run alone; where
// texts that lie alone were read by a kernel no copy engine is to be spared; and copies of other than whole words need
// many lanes.
Pace Slot::pace_out() const {
  if ((is_last_ && ActiveTransfer::count() < 2) || 2 * lone_ >= parts_.size()) return Pace::full;
  const bool are_words = std::all_of(parts_.begin(), parts_.end(), [&](const Held& held) {
    const auto places =
        reinterpret_cast<std::uintptr_t>(memory_ + held.at) | reinterpret_cast<std::uintptr_t>(message(held).out);
    return places % 16 == 0;
  });
  return are_words ? Pace::gentle : Pace::full;
}

void Slot::bring_back() {
  if (has_list(way_)) {
    const auto* const copies = reinterpret_cast<const DeviceCopy*>(memory_ + align_up(used_));
    engine_.copy_many(copies + copies_in_, copies_out_, pace_out(), stream_);
    return;
  }
  batch_.ranges.clear();
  if (way_ == Way::packed) batch_.ranges.push_back({host_.data(), memory_, used_});
  for (std::size_t i = 0; way_ == Way::direct && i < parts_.size(); ++i) {
    const Message& m = message(parts_[i]);
    batch_.ranges.push_back({m.out, memory_ + parts_[i].at, output_len(parts_[i])});
    if (m.tag_len != 0) batch_.ranges.push_back({host_.data() + tag_room * i, memory_ + parts_[i].tag_at, tag_room});
  }
  copy_ranges([&](std::span<const DeviceCopy> ranges) { engine_.copy_all_to_host(ranges, stream_); });
}

// Adds a part's tag to its message's; of the last part, writes the tag or tells whether it is right.
bool Slot::is_authentic(std::size_t number) {
  const Held& held = parts_[number];
  const Message& m = message(held);
  Secret<std::uint8_t[16]> tag;
  std::memcpy(*tag, host_tag(number), GcmPieces::tag_len);
  if (held.part != nullptr && held.part->gcm != nullptr) {
    GcmPieces& pieces = *held.part->gcm;
    pieces.add(held.part->offset / 16, m.in_len, *tag);
    if (!held.part->last) return true;
    pieces.tag(*tag);
  }
  if (settle_tag(m, *tag)) return true;
  batch_.statuses[held.index] = Status::invalid_tag;
  return false;
}

void Slot::collect() {
  batch_.joined.clear();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Message& m = message(parts_[i]);
    if (m.tag_len != 0 && !writes_own_tag(parts_[i]) && !is_authentic(i)) continue;
    if (way_ == Way::packed) append_range(batch_.joined, {m.out, host_.data() + parts_[i].at, output_len(parts_[i])});
  }
  job_.start(batch_.joined);
  state_ = State::copying_out;
}

bool Slot::advance(bool first) {
  switch (state_) {
    case State::filling:
      return false;
    case State::copying_in:
      if (!job_.done()) return false;
      launch();
      return true;
    case State::on_device: {
      if (!first) return false;
      const SelectedDevice scope(engine_, device_);
      if (!engine_.is_done(stream_)) return false;
      collect();
      return true;
    }
    case State::copying_out:
      if (!job_.done()) return false;
      parts_.clear();
      used_ = 0;
      tags_ = 0;
      list_len_ = 0;
      state_ = State::filling;
      return true;
  }
  return false;
}

void Slot::wait() {
  const SelectedDevice scope(engine_, device_);
  engine_.wait(stream_);
}

}  // namespace warpcipher
