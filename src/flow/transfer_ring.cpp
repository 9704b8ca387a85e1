// SPDX-License-Identifier: Apache-2.0
#include "flow/transfer_ring.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include "flow/active_transfers.hpp"

namespace warpcipher {
namespace {

constexpr std::chrono::microseconds time_between_looks{20};

}  // namespace

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
  if (has_filled()) send_filled(true);
  const auto is_copying = [&] {
    for (const auto& slot : slots_) {
      if (slot->state() == TransferSlot::State::copying_in) return true;
    }
    return false;
  };
  while (is_copying()) step();
}

void TransferRing::finish() {
  if (has_filled()) send_filled(true);
  const auto is_back = [&] {
    for (const auto& slot : slots_) {
      if (!slot->empty()) return false;
    }
    return true;
  };
  while (!is_back()) step();
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
  for (std::size_t i = 0; i < count_; ++i) {
    const std::size_t number = (current_ + i) % count_;
    if (number >= slots_.size()) continue;
    TransferSlot& slot = *slots_[number];
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
  for (std::size_t i = 0; i < count_; ++i) {
    const std::size_t number = (current_ + i) % count_;
    if (number >= slots_.size()) continue;
    const TransferSlot::State state = slots_[number]->state();
    if (state == TransferSlot::State::copying_in || state == TransferSlot::State::copying_out) {
      std::this_thread::yield();  // helpers are about to end
      return;
    }
    if (state == TransferSlot::State::on_device && oldest == nullptr) oldest = slots_[number].get();
  }
  if (oldest == nullptr) return;
  if (ActiveTransfer::count() >
      1) {  // the driver's wait spins: with it eight payloads of a queue took 8.6 cores, so 4.3
    std::this_thread::sleep_for(time_between_looks);
  } else {
    oldest->wait();
  }
}

}  // namespace warpcipher
