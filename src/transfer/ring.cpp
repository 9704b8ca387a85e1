// SPDX-License-Identifier: Apache-2.0
#include "transfer/ring.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include "transfer/active_transfers.hpp"

namespace warpcipher {
namespace {

constexpr std::chrono::microseconds time_between_looks{20};

}  // namespace

Ring::Ring(DeviceEngine& engine, RingBatch& batch, std::vector<int> devices, std::size_t slots, std::size_t size)
    : engine_(engine),
      batch_(batch),
      devices_(std::move(devices)),
      size_(size),
      count_(slots),
      jobs_(std::make_unique<CopyJob[]>(slots)) {
  slots_.reserve(slots);
}

Slot& Ring::filling() {
  const std::size_t current = current_;
  if (slots_.size() <= current) {
    const int device = devices_[current % devices_.size()];
    slots_.push_back(std::make_unique<Slot>(engine_, device, size_, batch_, jobs_[current]));
  }
  while (slots_[current]->state() != Slot::State::filling) step();
  return *slots_[current];
}

// Whether something was added and not yet sent.
bool Ring::has_filled() const {
  const std::size_t current = current_;
  return current < slots_.size() && slots_[current]->state() == Slot::State::filling && !slots_[current]->empty();
}

void Ring::add(std::size_t index, std::size_t count, Way way) {
  if (filling().add(index, count, way)) return;
  send_filled();
  filling().add(index, count, way);
}

void Ring::send(Part part, Way way) {
  if (!filling().empty()) send_filled();
  filling().add(std::move(part), way);
  send_filled();
}

void Ring::send_filled(bool is_last) {
  filling().send(is_last);
  current_ = (current_ + 1) % count_;
  advance();
}

void Ring::finish_copies_in() {
  if (has_filled()) send_filled(true);
  const auto is_copying = [&] {
    for (const auto& slot : slots_) {
      if (slot->state() == Slot::State::copying_in) return true;
    }
    return false;
  };
  while (is_copying()) step();
}

void Ring::finish() {
  if (has_filled()) send_filled(true);
  const auto is_back = [&] {
    for (const auto& slot : slots_) {
      if (!slot->empty()) return false;
    }
    return true;
  };
  while (!is_back()) step();
}

bool Ring::help() {
  const std::size_t current = current_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count_; ++i) {
    if (jobs_[(current + i) % count_].help()) return true;
  }
  return false;
}

// The oldest piece first. True when one has moved on.
bool Ring::advance() {
  bool moved = false, first = true;
  for (std::size_t i = 0; i < count_; ++i) {
    const std::size_t number = (current_ + i) % count_;
    if (number >= slots_.size()) continue;
    Slot& slot = *slots_[number];
    if (slot.advance(first)) moved = true;
    if (slot.state() == Slot::State::copying_in || slot.state() == Slot::State::on_device) first = false;
  }
  return moved;
}

// Moves a piece on, or does something that will.
void Ring::step() {
  if (advance() || help()) return;
  Slot* oldest = nullptr;
  for (std::size_t i = 0; i < count_; ++i) {
    const std::size_t number = (current_ + i) % count_;
    if (number >= slots_.size()) continue;
    const Slot::State state = slots_[number]->state();
    if (state == Slot::State::copying_in || state == Slot::State::copying_out) {
      std::this_thread::yield();  // helpers are about to end
      return;
    }
    if (state == Slot::State::on_device && oldest == nullptr) oldest = slots_[number].get();
  }
  if (oldest == nullptr) return;
  if (ActiveTransfer::count() > 1) {  // a wait of the driver's spins: eight payloads of a queue took 8.6 cores, so 4.3
    std::this_thread::sleep_for(time_between_looks);
  } else {
    oldest->wait();
  }
}

}  // namespace warpcipher
