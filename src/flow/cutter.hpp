// SPDX-License-Identifier: Apache-2.0
// Cuts a message into parts, each a message of its own with the IV that continues the chain. Parts may run on different
// engines. Only modes whose blocks do not depend on each other's results can be cut.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/wipe.hpp"
#include "flow/piece_tags.hpp"
#include "message/message.hpp"

namespace warpcipher {

// A message, or a part of one. The text of `message` is the part's own; its IV is `iv` when has_iv.
struct Part {
  Message message;
  std::size_t index = 0;   // of the message in the batch
  std::size_t offset = 0;  // in the message's text
  bool last = true;
  bool has_iv = false;
  Secret<std::array<std::uint8_t, 16>> iv;
  std::shared_ptr<PieceTags> tags;  // of an AEAD's message that was cut

  // The message as an engine takes it. The part must stay where it is.
  Message runnable() const {
    Message m = message;
    if (has_iv) {
      m.iv = iv->data();
      m.iv_len = tags != nullptr ? iv->size() : message.iv_len;  // GCM's
    }
    return m;
  }

  std::size_t text_len() const { return message.in_len > message.output_len() ? message.in_len : message.output_len(); }
};

// A message may be cut at multiples of this many bytes.
inline constexpr std::size_t cut_multiple = 256;

bool can_be_cut(const Message& message);

// Takes parts off a message, front to back. next() also reads the chaining value of the part that follows, so the part
// that it returns may run in place at once.
class Cutter {
 public:
  Cutter(const Message& message, std::size_t index);

  bool done() const { return done_; }

  // The next part, of at most `len` bytes of text (a multiple of cut_multiple); the whole message if it cannot be cut.
  Part next(std::size_t len);

 private:
  void begin_tags();
  void advance(std::size_t len);

  Part rest_;
  std::shared_ptr<GcmPieces> gcm_;
  bool done_ = false;
};

}  // namespace warpcipher
