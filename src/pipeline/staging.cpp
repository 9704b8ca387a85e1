// SPDX-License-Identifier: Apache-2.0
#include "pipeline/staging.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "pipeline/slot.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

// Of a piece. A launch and its copies take about 20 us of the host, 1 MiB that long on the link; larger pieces than 8
// MiB leave the cores' caches before the link reads them.
constexpr std::size_t least_piece_len = MiB;
constexpr std::size_t most_piece_len = 8 * MiB;
constexpr std::size_t wanted_pieces = 16;
// One in the cores' hands, one on each way of the link, one to spare.
constexpr std::size_t slots_of_device = 4;
constexpr std::size_t bytes_worth_a_device = 32 * MiB;

// The room that a message needs when it travels uncut.
std::size_t whole_room(const Message& message) {
  const std::size_t text_len = std::max(message.in_len, message.output_len());
  return Slot::align_up(text_len) + (message.tag_len != 0 ? Slot::alignment : 0);
}

// The size of the slots: no larger than the work, and large enough for the longest message that cannot be cut.
std::size_t slot_size(std::span<const Message> messages, std::size_t piece_len) {
  std::size_t all = 0, uncut = 0;
  for (const Message& m : messages) {
    all += whole_room(m);
    if (!can_be_cut(m)) uncut = std::max(uncut, whole_room(m));
  }
  // Behind the text of a piece there is room for a tag.
  return std::max({std::min(all, piece_len + Slot::alignment), uncut, Slot::alignment});
}

class Ring {
 public:
  Ring(DeviceEngine& engine, std::span<Status> statuses, std::vector<int> devices, std::size_t slots, std::size_t size)
      : engine_(engine), statuses_(statuses), devices_(std::move(devices)), slots_(slots), size_(size) {}

  // The slot that is being filled. Pieces are dealt to the devices in turn.
  Slot& slot() {
    if (ring_.size() <= current_) {
      ring_.push_back(std::make_unique<Slot>(engine_, devices_[current_ % devices_.size()], size_));
    }
    return *ring_[current_];
  }

  void send() {
    slot().launch(statuses_);
    current_ = (current_ + 1) % slots_;
    if (current_ < ring_.size()) ring_[current_]->drain(statuses_);
  }

  // The oldest piece first: parts of a message come back in order.
  void finish() {
    if (current_ < ring_.size() && !ring_[current_]->empty()) send();
    for (std::size_t i = 0; i < ring_.size(); ++i) ring_[(current_ + i) % ring_.size()]->drain(statuses_);
  }

 private:
  DeviceEngine& engine_;
  std::span<Status> statuses_;
  const std::vector<int> devices_;
  const std::size_t slots_;
  const std::size_t size_;
  std::vector<std::unique_ptr<Slot>> ring_;
  std::size_t current_ = 0;
};

bool travels_direct(const DeviceEngine& engine, const Message& m, std::size_t direct_len) {
  return m.in_len >= direct_len && m.in_len != 0 && engine.is_pinned(m.in, m.in_len) &&
         engine.is_pinned(m.out, m.output_len());
}

void run_pieces(DeviceEngine& engine, std::span<const Message> messages, std::span<Status> statuses,
                const PipelineShape& shape) {
  const std::size_t piece_len = Slot::align_up(shape.piece_len);
  const std::size_t size = slot_size(messages, piece_len);
  std::vector<int> devices = engine.devices_for_host_data();
  devices.resize(std::clamp<std::size_t>(shape.devices, 1, devices.size()));
  // A message held whole may need most of the device's memory: then there is one slot, not a ring.
  const bool whole = size > piece_len + Slot::alignment;
  if (whole) devices.resize(1);
  Ring ring(engine, statuses, devices, whole ? 1 : shape.slots * devices.size(), size);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    const bool direct = travels_direct(engine, message, shape.direct_len);
    const bool cut = can_be_cut(message) && whole_room(message) > size;
    const std::size_t part_len = cut ? std::min(piece_len, size - Slot::alignment) : size;
    Cutter cutter(message, i);
    while (!cutter.done()) {
      const bool alone = cut || direct;
      if (!ring.slot().empty() && (alone || ring.slot().room() < whole_room(message))) ring.send();
      ring.slot().add(cutter.next(part_len), direct);
      if (direct) ring.send();
    }
  }
  ring.finish();
}

}  // namespace

PipelineShape choose_shape(std::size_t total, std::size_t devices) {
  const std::size_t used = std::clamp<std::size_t>(total / bytes_worth_a_device, 1, devices);
  const std::size_t piece_len = std::clamp(total / (wanted_pieces * used), least_piece_len, most_piece_len);
  return {Slot::align_up(piece_len), slots_of_device, used, least_piece_len};
}

void run_through_device(DeviceEngine& engine, std::span<const Message> messages, std::span<Status> statuses) {
  std::size_t total = 0;
  for (const Message& m : messages) total += m.in_len;
  run_through_device(engine, messages, statuses, choose_shape(total, engine.devices_for_host_data().size()));
}

void run_through_device(DeviceEngine& engine, std::span<const Message> messages, std::span<Status> statuses,
                        const PipelineShape& shape) {
  try {
    run_pieces(engine, messages, statuses, shape);
  } catch (...) {
    // By now the slots are gone, and no copy is under way.
    for (const Message& m : messages) {
      if (m.algorithm().is_aead() && m.direction == Direction::decrypt) wipe_in_parallel(m.out, m.in_len);
    }
    throw;
  }
}

}  // namespace warpcipher
