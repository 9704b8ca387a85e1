// SPDX-License-Identifier: Apache-2.0
// Turns messages given as objects into columns, in one pass over them on all cores. A device that plans columnar
// batches itself then needs nothing else from the host.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/wipe.hpp"
#include "message/message.hpp"

namespace warpcipher {

class MessageColumns {
 public:
  // The columns of messages in device memory. Nothing where columns cannot describe the messages: they differ in
  // algorithm, direction, padding, or the length of IV or tag; a tag does not follow its text; or check_messages()
  // refuses one of them by itself. This does not check messages against each other (overlaps, nonces used twice).
  static std::optional<MessageColumns> make(std::span<const Message> messages);

  // `in` and `out` span the addresses of all texts (Columns::scattered). They refer to this object and to the keys.
  Columns columns() const;

  // The message at each position of the columns, which are in the order of the outputs. Empty: message i is at
  // position i.
  std::span<const std::uint32_t> order() const { return order_; }

 private:
  MessageColumns() = default;

  // Uninitialised, so that the cores which write it first also map its pages.
  template <class T>
  using Array = std::unique_ptr<T[]>;

  struct Bounds;
  void place_texts(std::span<const Message> messages, const Bounds& bounds);
  void place_aad(std::span<const Message> messages);
  void number_keys(std::span<const Message> messages);
  const Message& message_at(std::span<const Message> messages, std::size_t i) const {
    return messages[order_.empty() ? i : order_[i]];
  }

  Columns columns_;
  std::vector<std::uint32_t> order_;
  Array<std::uint64_t> in_offsets_, in_lengths_, out_offsets_, aad_offsets_, aad_lengths_;
  Array<std::uint8_t> ivs_, aad_;
  Array<std::uint32_t> key_index_;
  std::vector<const Key*> keys_;
};

}  // namespace warpcipher
