// SPDX-License-Identifier: Apache-2.0
#include "pipeline/staging.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "core/bytes.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t max_block_len = 16;
// Each message starts on a line of its own, so that kernels take their aligned paths.
constexpr std::size_t alignment = 256;

constexpr std::size_t align_up(std::size_t n) { return (n + alignment - 1) / alignment * alignment; }

// A part of a message as it travels: the message with its pointers moved to the part, and the IV that continues the
// chain there.
struct Part {
  Message message;
  std::size_t index;  // of the message in the batch
  std::array<std::uint8_t, max_block_len> iv;
  std::size_t offset;  // in the slot's buffers

  std::size_t text_len() const { return std::max(message.in_len, message.output_len()); }
  std::size_t room() const { return align_up(text_len()) + align_up(message.tag_len); }
};

// Modes whose chain can be entered anywhere: the value that a block needs is a counter or lies in the ciphertext.
bool can_be_cut(const Message& message) {
  const Algorithm& algorithm = message.algorithm();
  return algorithm.parallel(message.direction) && !algorithm.is_aead() && algorithm.mode.id != Mode::xts;
}

// Takes the first `len` bytes of a message off as a part, and moves `rest` and its chaining value behind them.
class Cutter {
 public:
  Cutter(const Message& message, std::size_t index) : rest_(message), index_(index) {
    if (can_be_cut(message) && message.iv_len != 0) std::memcpy(iv_.data(), message.iv, message.iv_len);
  }

  bool done() const { return done_; }

  // The next part, of at most `len` bytes of text (a multiple of every block length).
  Part next(std::size_t len) {
    Part part{rest_, index_, iv_, 0};
    if (rest_.in_len + max_block_len <= len || !can_be_cut(rest_)) {
      done_ = true;
      return part;
    }
    const std::size_t taken = std::min(len, rest_.in_len / max_block_len * max_block_len);
    part.message.in_len = taken;
    part.message.padding = Padding::none;
    advance(taken);
    return part;
  }

 private:
  void advance(std::size_t len) {
    const std::size_t block = rest_.algorithm().block_len();
    switch (rest_.algorithm().mode.id) {
      case Mode::ctr:
        add_be128(iv_.data(), len / block);
        break;
      case Mode::cbc:
      case Mode::cfb:
      case Mode::cfb8:
        std::memcpy(iv_.data(), rest_.in + len - block, block);
        break;
      default:
        break;  // ECB has no chain; the others are never cut
    }
    rest_.in += len;
    rest_.out += len;
    rest_.in_len -= len;
    rest_.out_len -= len;
  }

  Message rest_;
  std::size_t index_;
  std::array<std::uint8_t, max_block_len> iv_{};
  bool done_ = false;
};

// One piece on its way: a page-locked buffer, its twin on the device, a stream, and the parts they hold.
class Slot {
 public:
  Slot(DeviceEngine& engine, std::size_t size) : engine_(engine), size_(size), stream_(engine.create_stream()) {
    try {
      host_ = static_cast<std::uint8_t*>(engine.allocate_pinned(size));
      device_ = static_cast<std::uint8_t*>(engine.allocate(size, stream_));
    } catch (...) {
      release();
      throw;
    }
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot() { release(); }

  std::size_t room() const { return size_ - used_; }
  bool empty() const { return parts_.empty(); }

  void add(Part part) {
    part.offset = used_;
    used_ += part.room();
    const Message& m = part.message;
    if (m.in_len != 0) std::memcpy(host_ + part.offset, m.in, m.in_len);
    if (m.tag_len != 0 && m.direction == Direction::decrypt) std::memcpy(host_ + tag_offset(part), m.tag, m.tag_len);
    parts_.push_back(part);
  }

  // Sends the piece, and starts its way back. Statuses of tags are known on return.
  void launch(std::span<Status> statuses) {
    engine_.copy_to_device(device_, host_, used_, stream_);
    std::vector<Message> messages;
    messages.reserve(parts_.size());
    for (const Part& part : parts_) {
      Message m = part.message;
      m.memory = Memory::device;
      m.in = m.out = device_ + part.offset;
      m.out_len = part.text_len();
      m.tag = m.tag_len != 0 ? device_ + tag_offset(part) : nullptr;
      if (can_be_cut(m) && m.iv_len != 0) m.iv = part.iv.data();
      messages.push_back(m);
    }
    std::vector<Status> part_statuses(messages.size(), Status::ok);
    engine_.run(make_plan(messages, engine_.tile_units()), part_statuses, stream_);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (part_statuses[i] != Status::ok) statuses[parts_[i].index] = part_statuses[i];
    }
    engine_.copy_to_host(host_, device_, used_, stream_);
  }

  // Waits for the piece and hands the outputs over.
  void drain() {
    if (parts_.empty()) return;
    engine_.wait(stream_);
    for (const Part& part : parts_) {
      const Message& m = part.message;
      if (m.output_len() != 0) std::memcpy(m.out, host_ + part.offset, m.output_len());
      if (m.tag_len != 0 && m.direction == Direction::encrypt) std::memcpy(m.tag, host_ + tag_offset(part), m.tag_len);
    }
    parts_.clear();
    used_ = 0;
  }

 private:
  static std::size_t tag_offset(const Part& part) { return part.offset + align_up(part.text_len()); }

  // After an error the stream may still be at work on the buffers: it is waited for before they go.
  void release() noexcept {
    try {
      engine_.wait(stream_);
    } catch (const Error&) {  // the error that brought us here is already on its way
    }
    if (device_ != nullptr) engine_.deallocate(device_, size_, stream_);
    engine_.destroy_stream(stream_);
    if (host_ != nullptr) engine_.free_pinned(host_, size_);
  }

  DeviceEngine& engine_;
  std::size_t size_;
  Stream stream_;
  std::uint8_t* host_ = nullptr;
  std::uint8_t* device_ = nullptr;
  std::size_t used_ = 0;
  std::vector<Part> parts_;
};

// The room that a message needs when it travels uncut.
std::size_t whole_room(const Message& message) { return Part{message, 0, {}, 0}.room(); }

// The size of the ring's buffers: no larger than the work, and large enough for the longest message that cannot be cut.
std::size_t slot_size(std::span<const Message> messages, std::size_t piece_len) {
  std::size_t all = 0, uncut = 0;
  for (const Message& m : messages) {
    all += whole_room(m);
    if (!can_be_cut(m)) uncut = std::max(uncut, whole_room(m));
  }
  return std::max({std::min(all, piece_len), uncut, alignment});
}

}  // namespace

void run_through_device(DeviceEngine& engine, std::span<const Message> messages, std::span<Status> statuses,
                        std::size_t piece_len) {
  piece_len = align_up(piece_len);
  const std::size_t size = slot_size(messages, piece_len);
  // A message held whole may need most of the device's memory: then there is one slot, not a ring.
  const std::size_t slots = size > piece_len ? 1 : staging_pieces;
  std::vector<std::unique_ptr<Slot>> ring;
  std::size_t current = 0;
  const auto slot = [&]() -> Slot& {
    if (ring.size() <= current) ring.push_back(std::make_unique<Slot>(engine, size));
    return *ring[current];
  };
  const auto send = [&] {
    slot().launch(statuses);
    current = (current + 1) % slots;
    if (current < ring.size()) ring[current]->drain();
  };
  for (std::size_t i = 0; i < messages.size(); ++i) {
    Cutter cutter(messages[i], i);
    while (!cutter.done()) {
      const bool cut = can_be_cut(messages[i]) && whole_room(messages[i]) > size;
      if (!slot().empty() && (cut || slot().room() < whole_room(messages[i]))) send();
      Part part = cutter.next(cut ? size - alignment : size);
      slot().add(part);
    }
  }
  if (!slot().empty()) send();
  for (auto& used : ring) used->drain();
}

}  // namespace warpcipher
