// SPDX-License-Identifier: Apache-2.0
// ChaCha20, ChaCha20-Poly1305 and XChaCha20-Poly1305: by own code or by libcrypto; long messages are cut into tiles
// that any core may take, and short ones run side by side.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "core/wipe.hpp"
#include "engine/cpu/lanes.hpp"
#include "engine/cpu/piece.hpp"
#include "message/message.hpp"

namespace warpcipher {

// Transforms `piece` of `m`, a message of ChaCha20. Pieces may run in any order and at the same time.
void run_chacha_piece(const Message& m, const Piece& piece);

// A message of an AEAD of ChaCha20: invalid_tag, and a wiped `out`, where the tag does not match.
Status run_chacha_message(const Message& m);

// The work of both. `code` is one of cpu::chacha_lanes_list(). Own code also computes tags without a comparison
// (Message::compute_tag).
void run_chacha_piece_by_own(const cpu::ChaChaLanes& code, const Message& m, const Piece& piece);
void run_chacha_piece_by_libcrypto(const Message& m, const Piece& piece);
Status run_chacha_by_own(const cpu::ChaChaLanes& code, const Message& m);
Status run_chacha_by_libcrypto(const Message& m);

// Messages of one AEAD side by side: the blocks of short ones fill lanes together, whatever their keys. The status of
// messages[i] goes to statuses[i], which is ok before.
void run_chacha_messages(const cpu::ChaChaLanes& code, std::span<const Message* const> messages,
                         std::span<Status* const> statuses);

// One long message of an AEAD in work. Tiles run in any order, on any threads. Each adds its part of Poly1305, and the
// last one to finish joins them and settles the tag.
class SplitChaCha {
 public:
  // `m` must outlive this; it has `tiles` tiles of cpu_tile_units units.
  SplitChaCha(const Message& m, std::uint64_t tiles, const cpu::ChaChaLanes& code = *cpu::chacha_lanes_list().front());

  // Each tile once; `tile` counts from 0 and `piece` is its text. Says whether this was the last one to finish: then
  // `status` is set, the tag written or compared, and out wiped if it did not match.
  bool run_tile(std::uint64_t tile, const Piece& piece, Status& status);

 private:
  Status finish();

  const cpu::ChaChaLanes& code_;
  const Message& message_;
  const std::uint64_t tiles_;
  Secret<chacha::State> first_;
  Secret<std::uint8_t[chacha::block_len]> key_;  // block 0, which begins with the key of Poly1305
  SecretBytes parts_;                            // of each tile, a ChaChaHash
  std::atomic<std::uint64_t> left_;
};

}  // namespace warpcipher
