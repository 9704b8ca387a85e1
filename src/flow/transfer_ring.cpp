// SPDX-License-Identifier: Apache-2.0
#include "flow/transfer_ring.hpp"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "message/message.hpp"
#include "message/plan.hpp"

namespace warpcipher {

TransferSlot::TransferSlot(DeviceEngine& engine, int device, std::size_t size, TransferBatch& batch, CopyJob& job)
    : engine_(engine),
      device_(device),
      size_(size),
      batch_(batch),
      job_(job),
      slot_(engine, device),
      memory_(slot_.on_device(size)),
      piece_(batch.messages, size) {}

// After an error the cores may still use the buffers: waits for them.
TransferSlot::~TransferSlot() { job_.cancel(); }

bool TransferSlot::add(std::size_t index, std::size_t count, const TransferMode& mode) {
  if (!piece_.empty() && mode_ != &mode) return false;
  mode_ = &mode;
  return piece_.add(index, count, mode.layout);
}

void TransferSlot::add(Part part, const TransferMode& mode) {
  mode_ = &mode;
  piece_.add(std::move(part), mode.layout);
}

void TransferSlot::send(bool is_last) {
  is_last_ = is_last;
  piece_.place_tags(mode_->layout);
  const std::size_t bounce_len = mode_->bounce_len(piece_);
  // With texts in the buffer the second piece of a batch is nearly as large as the slot: then it grows no more.
  bounce_ = slot_.pinned(bounce_len, mode_->cores_copy_in ? size_ : bounce_len);
  slot_.set_secret(bounce_, bounce_len);
  if (mode_->layout.lists_out) list_copies();
  if (!mode_->cores_copy_in) return launch();
  std::vector<DeviceCopy>& copies = batch_.merged;
  copies.clear();
  for (const TransferPiece::Item& item : piece_.items()) {
    append_range(copies, {bounce_ + item.at, piece_.message(item).in, piece_.in_len(item)});
  }
  job_.start(copies);
  state_ = State::copying_in;
}

// Writes the list of the copies of a kernel.
void TransferSlot::list_copies() {
  auto* const list = reinterpret_cast<DeviceCopy*>(bounce_ + (mode_->cores_copy_in ? piece_.list_at() : 0));
  batch_.ranges.clear();
  batch_.listed.clear();
  lone_texts_ = 0;
  if (mode_->layout.lists_in) list_texts();
  listed_in_ = write_list(list);
  list_results();
  listed_out_ = write_list(list + listed_in_);
}

// Writes what is listed as entries at `to`, none longer than most_listed_len, and clears it. Returns their number.
std::size_t TransferSlot::write_list(DeviceCopy* to) {
  DeviceCopy* next = to;
  for (const DeviceCopy& copy : batch_.listed) {
    for (std::size_t offset = 0; offset < copy.len; offset += TransferPiece::most_listed_len) {
      *next++ = {static_cast<std::uint8_t*>(copy.to) + offset, static_cast<const std::uint8_t*>(copy.from) + offset,
                 std::min(TransferPiece::most_listed_len, copy.len - offset)};
    }
  }
  batch_.listed.clear();
  return static_cast<std::size_t>(next - to);
}

// Lists how texts come in: long ranges by DMA, others by a kernel.
void TransferSlot::list_texts() {
  const std::span<const TransferPiece::Item> items = piece_.items();
  for (std::size_t begin = 0, end; begin < items.size(); begin = end) {
    end = begin + 1;
    while (end < items.size() && items[end].coalesced) ++end;
    const TransferPiece::Item& last = items[end - 1];
    const std::size_t len = last.at + piece_.message(last).in_len - items[begin].at;
    if (len >= mode_->range_len) {
      batch_.ranges.push_back({memory_ + items[begin].at, piece_.message(items[begin]).in, len});
      continue;
    }
    lone_texts_ += end - begin;
    for (std::size_t i = begin; i < end; ++i) {
      const Message& m = piece_.message(items[i]);
      batch_.listed.push_back({memory_ + items[i].at, m.in, m.in_len});
    }
  }
}

// Lists how results and tags come back. The tags last, so that the kernel's warps share the texts evenly.
void TransferSlot::list_results() {
  const std::span<const TransferPiece::Item> items = piece_.items();
  for (const TransferPiece::Item& item : items) {
    const Message& m = piece_.message(item);
    append_range(batch_.listed, {m.out, memory_ + item.at, m.output_len()});
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Message& m = piece_.message(items[i]);
    if (m.tag_len == 0) continue;
    const std::uint8_t* const from = memory_ + items[i].tag_at;
    if (mode_->writes_tag(items[i], m)) {
      append_range(batch_.listed, {m.tag, from, m.tag_len});
    } else {
      append_range(batch_.listed, {bounce_ + mode_->tag_at(piece_, i), from, TransferPiece::tag_room(items[i])});
    }
  }
}

void TransferSlot::launch() {
  const SelectedDevice scope(engine_, device_);
  memory_used_ = std::max(memory_used_, piece_.device_len());
  slot_.set_secret(memory_, memory_used_);
  copy_in();
  run_on_device();
  copy_out();
  state_ = State::on_device;
}

void TransferSlot::copy_in() {
  const auto* const list = reinterpret_cast<const DeviceCopy*>(memory_ + piece_.list_at());
  const std::size_t list_len = (listed_in_ + listed_out_) * sizeof(DeviceCopy);
  const PieceLayout& layout = mode_->layout;
  if (mode_->cores_copy_in) {  // the list follows the texts in the bounce buffer as on the device: one copy for both
    const std::size_t len = layout.lists_out ? piece_.list_at() + list_len : piece_.texts_len();
    batch_.ranges.assign(1, {memory_, bounce_, len});
  } else if (layout.lists_in) {
    batch_.ranges.push_back({memory_ + piece_.list_at(), bounce_, list_len});
  } else {
    batch_.ranges.clear();
    for (const TransferPiece::Item& item : piece_.items()) {
      batch_.ranges.push_back({memory_ + item.at, piece_.message(item).in, piece_.in_len(item)});
    }
  }
  copy_ranges(&DeviceEngine::copy_all_to_device);
  if (layout.lists_in) engine_.copy_many(list, listed_in_, Pace::full, slot_.stream());
}

void TransferSlot::copy_out() {
  if (mode_->layout.lists_out) {
    const auto* const list = reinterpret_cast<const DeviceCopy*>(memory_ + piece_.list_at());
    return engine_.copy_many(list + listed_in_, listed_out_, pace_of_results(), slot_.stream());
  }
  batch_.ranges.clear();
  if (mode_->cores_copy_out) {
    batch_.ranges.push_back({bounce_, memory_, piece_.texts_len()});
  } else {
    for (const TransferPiece::Item& item : piece_.items()) {
      batch_.ranges.push_back({piece_.message(item).out, memory_ + item.at, piece_.output_len(item)});
    }
  }
  copy_ranges(&DeviceEngine::copy_all_to_host);
}

// Enqueues the DMA copies. Two allocations of the caller's may be adjacent, and the driver refuses a copy across their
// border. Then each range is copied by itself.
void TransferSlot::copy_ranges(void (DeviceEngine::*copy)(std::span<const DeviceCopy>, Stream)) {
  batch_.merged.clear();
  for (const DeviceCopy& range : batch_.ranges) append_range(batch_.merged, range);
  try {
    (engine_.*copy)(batch_.merged, slot_.stream());
  } catch (const Error&) {
    std::erase_if(batch_.ranges, [](const DeviceCopy& range) { return range.len == 0; });
    if (batch_.merged.size() == batch_.ranges.size()) throw;
    (engine_.*copy)(batch_.ranges, slot_.stream());
  }
}

// Many blocks that store crowd out incoming copies. That does not matter after the last piece of the only transfer, and
// where a kernel read most texts, so that no DMA copies come in. Copies of other than whole words need many lanes.
Pace TransferSlot::pace_of_results() const {
  const std::span<const TransferPiece::Item> items = piece_.items();
  if ((is_last_ && ActiveTransfer::count() < 2) || 2 * lone_texts_ >= items.size()) return Pace::full;
  const bool are_words = std::all_of(items.begin(), items.end(), [&](const TransferPiece::Item& item) {
    const auto places = reinterpret_cast<std::uintptr_t>(memory_ + item.at) |
                        reinterpret_cast<std::uintptr_t>(piece_.message(item).out);
    return places % 16 == 0;
  });
  return are_words ? Pace::gentle : Pace::full;
}

Message TransferSlot::on_device(const TransferPiece::Item& item, std::uint8_t* tag) {
  Message m = item.part != nullptr ? item.part->runnable() : piece_.message(item);
  m.out_len = std::max(m.in_len, m.output_len());
  m.memory = Memory::device;
  m.in = m.out = memory_ + item.at;
  m.tag = m.tag_len != 0 ? tag : nullptr;
  // The host compares tags, so that the engine need not wait for its own verdict; a part has no verdict of its own.
  if (m.is_part) m.tag_len = item.part->tags->tag_len();
  if (m.tag_len != 0 && !m.is_part && !m.algorithm().mode.authenticates_tag_len) m.tag_len = full_tag_len;
  m.compute_tag = m.tag_len != 0 && m.direction == Direction::decrypt;
  if (m.compute_tag && m.algorithm().mode.id == Mode::gcm_siv) {
    auto& iv = batch_.given_tags.emplace_back();
    std::memcpy(iv.data(), m.iv, gcm_siv_nonce_len);
    std::memcpy(iv.data() + gcm_siv_nonce_len, piece_.message(item).tag, full_tag_len);
    m.iv = iv.data();
    m.iv_len = iv.size();
  }
  return m;
}

void TransferSlot::run_on_device() {
  batch_.on_device.clear();
  batch_.indices.clear();
  batch_.given_tags.clear();  // an engine has read them before it returned
  const std::span<const TransferPiece::Item> items = piece_.items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const TransferPiece::Item& item = items[i];
    if (item.count > 1) {
      engine_.run_sectors(on_device(item, nullptr), item.count, slot_.stream());
      continue;
    }
    std::uint8_t* const tag =
        mode_->kernels_write_to_bounce ? bounce_ + mode_->tag_at(piece_, i) : memory_ + item.tag_at;
    batch_.on_device.push_back(on_device(item, tag));
    batch_.indices.push_back(item.index);
  }
  if (batch_.on_device.empty()) return;
  batch_.part_statuses.assign(batch_.on_device.size(), Status::ok);
  engine_.run_allocated(make_plan(batch_.on_device, engine_.tile_units()), batch_.part_statuses, slot_.stream());
  for (std::size_t i = 0; i < batch_.indices.size(); ++i) {
    if (batch_.part_statuses[i] != Status::ok) batch_.statuses[batch_.indices[i]] = batch_.part_statuses[i];
  }
}

// Adds the tag of a part to its message's tag. After the last part, writes the tag or checks it.
bool TransferSlot::is_authentic(const TransferPiece::Item& item, const std::uint8_t* computed_tag) {
  const Message& m = piece_.message(item);
  Secret<std::uint8_t[full_tag_len]> tag;
  if (item.part != nullptr && item.part->tags != nullptr) {
    PieceTags& tags = *item.part->tags;
    tags.add(item.part->offset, m.in_len, computed_tag);
    if (!item.part->last) return true;
    tags.tag(*tag);
  } else {
    std::memcpy(*tag, computed_tag, full_tag_len);
  }
  if (settle_tag(m, *tag)) return true;
  batch_.statuses[item.index] = Status::invalid_tag;
  return false;
}

// Settles the tags, and has the cores copy results that are in the bounce buffer. Nothing is copied of a text whose tag
// is wrong.
void TransferSlot::collect() {
  const std::span<const TransferPiece::Item> items = piece_.items();
  std::vector<DeviceCopy>& copies = batch_.merged;
  copies.clear();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const TransferPiece::Item& item = items[i];
    const Message& m = piece_.message(item);
    const bool has_tag_here = m.tag_len != 0 && !mode_->writes_tag(item, m);
    if (has_tag_here && !is_authentic(item, bounce_ + mode_->tag_at(piece_, i))) continue;
    if (mode_->cores_copy_out) append_range(copies, {m.out, bounce_ + item.at, piece_.output_len(item)});
  }
  job_.start(copies);
  state_ = State::copying_out;
}

bool TransferSlot::advance(bool first) {
  switch (state_) {
    case State::filling: return false;
    case State::copying_in:
      if (!job_.done()) return false;
      launch();
      return true;
    case State::on_device:
      if (!first || !slot_.is_done()) return false;
      collect();
      return true;
    case State::copying_out:
      if (!job_.done()) return false;
      piece_.clear();
      state_ = State::filling;
      return true;
  }
  return false;
}

TransferRing::TransferRing(DeviceEngine& engine, TransferBatch& batch, std::vector<int> devices, std::size_t slots,
                           std::size_t size)
    : engine_(engine),
      batch_(batch),
      devices_(std::move(devices)),
      size_(size),
      count_(slots),
      jobs_(std::make_unique<CopyJob[]>(slots)) {
  slots_.reserve(slots);
}

TransferSlot& TransferRing::filling() {
  const std::size_t current = current_;
  if (slots_.size() <= current) {
    const int device = devices_[current % devices_.size()];
    slots_.push_back(std::make_unique<TransferSlot>(engine_, device, size_, batch_, jobs_[current]));
  }
  while (slots_[current]->state() != TransferSlot::State::filling) step();
  return *slots_[current];
}

// Whether messages were added that are not sent yet.
bool TransferRing::has_filled() const {
  const std::size_t current = current_;
  return current < slots_.size() && slots_[current]->state() == TransferSlot::State::filling &&
         !slots_[current]->empty();
}

void TransferRing::add(std::size_t index, std::size_t count, const TransferMode& mode) {
  if (filling().add(index, count, mode)) return;
  send_filled();
  filling().add(index, count, mode);
}

void TransferRing::send(Part part, const TransferMode& mode) {
  if (!filling().empty()) send_filled();
  filling().add(std::move(part), mode);
  send_filled();
}

void TransferRing::send_filled(bool is_last) {
  filling().send(is_last);
  current_ = (current_ + 1) % count_;
  advance();
}

void TransferRing::finish_copies_in() {
  step_while([](const auto& slot) { return slot->state() == TransferSlot::State::copying_in; });
}

void TransferRing::finish() {
  step_while([](const auto& slot) { return !slot->empty(); });
}

// Sends what has been added, and returns when of no slot is_busy(slot).
template <class IsBusy>
void TransferRing::step_while(IsBusy&& is_busy) {
  if (has_filled()) send_filled(true);
  while (std::any_of(slots_.begin(), slots_.end(), is_busy)) step();
}

bool TransferRing::help() {
  const std::size_t current = current_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count_; ++i) {
    if (jobs_[(current + i) % count_].help()) return true;
  }
  return false;
}

// Advances pieces, the oldest first. True when one has gone to its next state.
bool TransferRing::advance() {
  bool moved = false, first = true;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    TransferSlot& slot = by_age(i);
    if (slot.advance(first)) moved = true;
    if (slot.state() == TransferSlot::State::copying_in || slot.state() == TransferSlot::State::on_device)
      first = false;
  }
  return moved;
}

// Advances a piece, or does or waits for something that lets one advance.
void TransferRing::step() {
  if (advance() || help()) return;
  TransferSlot* oldest = nullptr;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const TransferSlot::State state = by_age(i).state();
    if (state == TransferSlot::State::copying_in || state == TransferSlot::State::copying_out) {
      std::this_thread::yield();  // helpers are about to end
      return;
    }
    if (state == TransferSlot::State::on_device && oldest == nullptr) oldest = &by_age(i);
  }
  if (oldest != nullptr) oldest->wait();
}

}  // namespace warpcipher
