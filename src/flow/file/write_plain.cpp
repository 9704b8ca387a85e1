// SPDX-License-Identifier: Apache-2.0
#include "flow/file/write_plain.hpp"

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "dispatch/select.hpp"
#include "engine/device_engine.hpp"
#include "flow/file/file_target.hpp"
#include "flow/file/file_work.hpp"
#include "flow/file/slots.hpp"
#include "message/message.hpp"

namespace warpcipher {
namespace {

class PlainWriting {
 public:
  PlainWriting(int descriptor, std::span<const TextPart> parts, const WriteOptions& options, std::size_t piece_len)
      : parts_(parts),
        work_(options.check),
        target_(descriptor, parts_.size(), work_),
        cutter_(parts_.size(), piece_len) {}

  const TextParts& parts() const { return parts_; }
  FileTarget& target() { return target_; }

  // The next piece for this thread; empty when there is none, or something failed.
  TextCutter::Piece next() { return work_.goes_on() ? cutter_.next() : TextCutter::Piece{}; }

  template <class Body>
  std::optional<WriteFailure> run(std::size_t threads, Body&& body) {
    if (!target_.failure()) work_.run(threads, body);
    return target_.failure();
  }

 private:
  const TextParts parts_;
  FileWork work_;
  FileTarget target_;
  TextCutter cutter_;
};

// Page-locked memory on its way from the device to the file.
class PlainWriteSlot {
 public:
  PlainWriteSlot(DeviceEngine& engine, PlainWriting& writing, std::size_t room)
      : engine_(engine), writing_(writing), room_(room), slot_(engine) {}

  bool load() {
    piece_ = writing_.next();
    if (piece_.len == 0) return false;
    if (pinned_ == nullptr) pinned_ = slot_.pinned(room_);
    used_ = std::max(used_, piece_.len);
    slot_.set_secret(pinned_, used_);
    std::uint8_t* to = pinned_;
    writing_.parts().for_range(piece_.begin, piece_.len, [&](Memory memory, const std::uint8_t* data, std::size_t len) {
      if (memory == Memory::device) {
        engine_.copy_to_host(to, data, len, slot_.stream());
      } else {
        std::copy_n(data, len, to);
      }
      to += len;
    });
    return true;
  }

  bool write() {
    if (piece_.len == 0) return true;
    slot_.wait();
    const TextCutter::Piece piece = piece_;
    piece_ = {};
    return writing_.target().write(pinned_, piece.len, piece.begin);
  }

 private:
  DeviceEngine& engine_;
  PlainWriting& writing_;
  const std::size_t room_;
  SlotMemory slot_;
  std::uint8_t* pinned_ = nullptr;
  std::size_t used_ = 0;
  TextCutter::Piece piece_;
};

std::optional<WriteFailure> write_from_host(int descriptor, std::span<const TextPart> parts, std::uint64_t total,
                                            const WriteOptions& options) {
  const std::size_t piece_len = options.piece_len != 0 ? options.piece_len : most_slot_len;
  PlainWriting writing(descriptor, parts, options, piece_len);
  const std::uint64_t pieces = (total - 1) / piece_len + 1;
  return writing.run(std::min<std::uint64_t>(threads_for(options.threads), pieces), [&] {
    for (TextCutter::Piece piece = writing.next(); piece.len != 0; piece = writing.next()) {
      std::uint64_t position = piece.begin;
      bool is_written = true;
      writing.parts().for_range(piece.begin, piece.len, [&](Memory, const std::uint8_t* data, std::size_t len) {
        is_written = is_written && writing.target().write(data, len, position);
        position += len;
      });
      if (!is_written) return;
    }
  });
}

std::uint64_t checked_size(std::span<const TextPart> parts) {
  for (const TextPart& part : parts) check_buffer_len("a part", part.len);
  return TextParts(parts).size();
}

}  // namespace

std::optional<WriteFailure> write_plain(DeviceEngine& engine, int descriptor, std::span<const TextPart> parts,
                                        const WriteOptions& options) {
  const std::uint64_t total = checked_size(parts);
  if (total == 0) return std::nullopt;
  const std::size_t most = threads_for(options.threads);
  const std::size_t piece_len = options.piece_len != 0 ? options.piece_len : slot_len_for(total, most);
  const auto room =
      static_cast<std::size_t>(std::min<std::uint64_t>({piece_len, total, PinnedBudget::most / slots_of_thread}));
  PlainWriting writing(descriptor, parts, options, room);
  const int device = engine.current_device();
  return writing.run(threads_with_slots(most, total, room), [&] {
    const SelectedDevice scope(engine, device);  // before the slots, and so there when they go
    std::array<PlainWriteSlot, slots_of_thread> slots{PlainWriteSlot(engine, writing, room),
                                                      PlainWriteSlot(engine, writing, room)};
    write_in_turns(slots);
  });
}

std::optional<WriteFailure> write_plain(std::string_view engine, int descriptor, std::span<const TextPart> parts,
                                        const WriteOptions& options) {
  const std::uint64_t total = checked_size(parts);
  if (total == 0) return std::nullopt;
  const bool on_device =
      std::any_of(parts.begin(), parts.end(), [](const TextPart& part) { return part.memory == Memory::device; });
  if (!on_device) return write_from_host(descriptor, parts, total, options);
  return write_plain(select_device_engine(engine), descriptor, parts, options);
}

}  // namespace warpcipher
