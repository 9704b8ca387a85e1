// SPDX-License-Identifier: Apache-2.0
#include "pipeline/slot.hpp"

#include <algorithm>
#include <cstring>

#include "batch/plan.hpp"
#include "core/bytes.hpp"

namespace warpcipher {

Slot::Slot(DeviceEngine& engine, int device, std::size_t size) : engine_(engine), device_(device), size_(size) {
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

// After an error the stream may still be at work on the buffers: it is waited for before they go.
void Slot::release() noexcept {
  try {
    const SelectedDevice scope(engine_, device_);
    try {
      engine_.wait(stream_);
    } catch (const Error&) {  // the error that brought us here is already on its way
    }
    if (memory_ != nullptr) engine_.deallocate(memory_, size_, stream_);
    engine_.destroy_stream(stream_);
  } catch (const Error&) {  // the driver is gone, and with it what it held
  }
  if (host_ == nullptr) return;
  wipe_in_parallel(host_, host_used_);
  engine_.free_pinned(host_, host_size_, 0);
}

void Slot::add(Part part, bool direct) {
  Held held{std::move(part), used_, 0};
  held.tag_at = used_ + align_up(held.part.text_len());
  used_ += room_for(held.part);
  direct_ = direct;
  parts_.push_back(std::move(held));
}

// Page-locked memory is costly, so there is no more than was needed so far.
void Slot::prepare_memory() {
  const std::size_t needed = direct_ ? (parts_[0].part.message.tag_len != 0 ? alignment : 0) : used_;
  if (needed > host_size_) {
    if (host_ != nullptr) engine_.free_pinned(host_, host_size_, host_used_);
    host_ = nullptr;
    host_used_ = 0;
    // A second piece of a batch is as large as the slot, more or less: then it is not asked for twice.
    const std::size_t size = direct_ || host_size_ == 0 ? needed : size_;
    host_size_ = 0;
    host_ = static_cast<std::uint8_t*>(engine_.allocate_pinned(size));
    host_size_ = size;
  }
  host_used_ = std::max(host_used_, needed);
}

std::vector<Message> Slot::on_device() const {
  std::vector<Message> messages;
  messages.reserve(parts_.size());
  for (const Held& held : parts_) {
    Message m = held.part.runnable();
    m.memory = Memory::device;
    m.in = m.out = memory_ + held.at;
    m.out_len = held.part.text_len();
    m.tag = m.tag_len != 0 ? memory_ + held.tag_at : nullptr;
    // Tags are checked here, so that the engine need not wait for its own verdict; those of pieces are of no use alone.
    if (m.tag_len != 0) m.tag_len = GcmPieces::tag_len;
    m.compute_tag = m.tag_len != 0 && m.direction == Direction::decrypt;
    messages.push_back(m);
  }
  return messages;
}

void Slot::launch(std::span<Status> statuses) {
  const SelectedDevice scope(engine_, device_);
  prepare_memory();
  if (direct_) {
    const Message& m = parts_[0].part.message;
    if (m.in_len != 0) engine_.copy_to_device(memory_, m.in, m.in_len, stream_);
  } else {
    copies_.clear();
    for (const Held& held : parts_) {
      copies_.push_back({host_ + held.at, held.part.message.in, held.part.message.in_len});
    }
    copy_in_parallel(copies_);
    engine_.copy_to_device(memory_, host_, used_, stream_);
  }
  const std::vector<Message> messages = on_device();
  std::vector<Status> part_statuses(messages.size(), Status::ok);
  engine_.run(make_plan(messages, engine_.tile_units()), part_statuses, stream_);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (part_statuses[i] != Status::ok) statuses[parts_[i].part.index] = part_statuses[i];
  }
  if (!direct_) {
    engine_.copy_to_host(host_, memory_, used_, stream_);
    return;
  }
  const Held& held = parts_[0];
  const Message& m = held.part.message;
  if (m.output_len() != 0) engine_.copy_to_host(m.out, memory_, m.output_len(), stream_);
  if (m.tag_len != 0) engine_.copy_to_host(host_, memory_ + held.tag_at, GcmPieces::tag_len, stream_);
}

// Adds a part's tag to its message's; of the last part, writes the tag or tells whether it is right.
bool Slot::is_authentic(const Held& held, std::span<Status> statuses) const {
  const Message& m = held.part.message;
  Secret<std::uint8_t[16]> tag;
  std::memcpy(*tag, host_tag(held), GcmPieces::tag_len);
  if (held.part.gcm != nullptr) {
    held.part.gcm->add(held.part.offset / 16, m.in_len, *tag);
    if (!held.part.last) return true;
    held.part.gcm->tag(*tag);
  }
  if (m.direction == Direction::encrypt) {
    std::memcpy(m.tag, *tag, m.tag_len);
    return true;
  }
  if (equal_constant_time(*tag, m.tag, m.tag_len)) return true;
  statuses[held.part.index] = Status::invalid_tag;
  return false;
}

void Slot::drain(std::span<Status> statuses) {
  if (parts_.empty()) return;
  {
    const SelectedDevice scope(engine_, device_);
    engine_.wait(stream_);
  }
  copies_.clear();
  for (const Held& held : parts_) {
    const Message& m = held.part.message;
    if (m.tag_len != 0 && !is_authentic(held, statuses)) {
      wipe_in_parallel(m.out - held.part.offset, held.part.offset + m.in_len);
    } else if (!direct_) {
      copies_.push_back({m.out, host_ + held.at, m.output_len()});
    }
  }
  copy_in_parallel(copies_);
  parts_.clear();
  used_ = 0;
  direct_ = false;
}

}  // namespace warpcipher
