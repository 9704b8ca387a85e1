// SPDX-License-Identifier: Apache-2.0
// One piece on its way to a device and back: memory there, page-locked memory here, a stream, and the parts of messages
// that they hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/device_engine.hpp"
#include "pipeline/copy.hpp"
#include "pipeline/cutter.hpp"

namespace warpcipher {

class Slot {
 public:
  // Messages start at multiples of this in a slot, so that kernels take their aligned paths.
  static constexpr std::size_t alignment = 256;

  static constexpr std::size_t align_up(std::size_t n) { return (n + alignment - 1) / alignment * alignment; }

  // What a part needs of a slot's size.
  static std::size_t room_for(const Part& part) {
    return align_up(part.text_len()) + (part.message.tag_len != 0 ? alignment : 0);
  }

  Slot(DeviceEngine& engine, int device, std::size_t size);
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot();

  std::size_t room() const { return size_ - used_; }
  bool empty() const { return parts_.empty(); }

  // direct: the text is page-locked, and travels without a copy on the host. Such a part is alone in its slot.
  void add(Part part, bool direct);

  // Sends the piece, and starts its way back. Does not wait, but for the cores' copies.
  void launch(std::span<Status> statuses);

  // Waits for the piece and hands over what came out: texts, tags, and verdicts of tags.
  void drain(std::span<Status> statuses);

 private:
  struct Held {
    Part part;
    std::size_t at;      // of the text, in device memory and, unless direct, in host memory
    std::size_t tag_at;  // of the tag, in device memory; in host memory alone it is at the start when direct
  };

  void prepare_memory();
  std::vector<Message> on_device() const;
  std::uint8_t* host_tag(const Held& held) const { return host_ + (direct_ ? 0 : held.tag_at); }
  bool is_authentic(const Held& held, std::span<Status> statuses) const;
  void release() noexcept;

  DeviceEngine& engine_;
  const int device_;
  const std::size_t size_;
  Stream stream_ = nullptr;
  std::uint8_t* memory_ = nullptr;  // on the device
  std::uint8_t* host_ = nullptr;    // page-locked
  std::size_t host_size_ = 0;
  std::size_t host_used_ = 0;  // of host_, ever: to be wiped
  std::size_t used_ = 0;
  bool direct_ = false;
  std::vector<Held> parts_;
  std::vector<CopyRange> copies_;
};

}  // namespace warpcipher
