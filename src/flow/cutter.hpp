// SPDX-License-Identifier: Apache-2.0
// Cuts a message into parts, each a message of its own with the IV that continues the chain. Parts may run on different
// engines. Only modes whose blocks do not depend on each other's results can be cut.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cipher/aes.hpp"
#include "cipher/gf128.hpp"
#include "cipher/poly1305.hpp"
#include "core/wipe.hpp"
#include "message/message.hpp"
#include "mode/mode.hpp"

namespace warpcipher {

// The tag of a message that goes to an engine in pieces: it comes from the pieces' tags, because both hashes, GHASH
// and Poly1305, are polynomials over the blocks of the text.
class PieceTags {
 public:
  static constexpr std::size_t most_tag_len = 32;  // of a piece

  PieceTags() = default;
  PieceTags(const PieceTags&) = delete;
  PieceTags& operator=(const PieceTags&) = delete;
  virtual ~PieceTags() = default;

  // Bytes of the tag of a piece.
  virtual std::size_t tag_len() const = 0;

  // Adds the next piece, whose own tag is `tag`: its text of `len` bytes (whole blocks, but in the last) begins at
  // `offset`. The first one's AAD counts.
  virtual void add(std::uint64_t offset, std::size_t len, const std::uint8_t* tag) = 0;

  // The whole message's tag, once every piece is there.
  virtual void tag(std::uint8_t (&tag)[full_tag_len]) const = 0;

 protected:
  // Blocks of both hashes; the last is filled up with zeros.
  static std::uint64_t hash_blocks_of(std::uint64_t len) { return (len + 15) / 16; }
};

// GCM (SP 800-38D) of one message in pieces, on engines that know only whole messages. Each piece runs as a message of
// its own with the IV iv_at(): a 16-byte IV that GHASH maps to the counter at which the piece begins. GHASH is a
// polynomial in H, so the hashes of pieces add up once each is multiplied by a power of H. So the tags of the pieces
// give the tag of the whole:
//
//   piece i   tag_i = E(J_i) + (Y_i + L_i) H   gives Y_i, its hash; L_i the block of its lengths
//   whole     Y <- Y H^(blocks of piece i) + Y_i,   tag = E(J0) + (Y + L) H

class GcmPieces final : public PieceTags {
 public:
  // For a message of any AES-GCM. Throws Error{engine_failure} for the one key in 2^128 whose H is zero.
  explicit GcmPieces(const Message& message);

  // The IV of a piece that begins `block` (> 0) blocks into the text. The first piece takes the message's own IV and
  // AAD.
  void iv_at(std::uint64_t block, std::uint8_t (&iv)[16]) const;

  std::size_t tag_len() const override { return full_tag_len; }
  void add(std::uint64_t offset, std::size_t len, const std::uint8_t* tag) override;
  void tag(std::uint8_t (&tag)[full_tag_len]) const override;

 private:
  struct State {
    aes::Schedule schedule;
    gf128::Element hash_key, inverse;
    gf128::Element first_counter;  // J0
    gf128::Element sum;            // Y
  };

  gf128::Element mask(std::uint64_t block) const;

  Secret<State> state_;
  std::uint64_t aad_len_;
  std::uint64_t text_len_ = 0;
};

// ChaCha20-Poly1305 and XChaCha20-Poly1305 (RFC 8439, section 2.8) of one message in pieces. A piece runs as
// Message::is_part says, and gives its sum modulo 2^130 - 5:
//
//   whole   h <- h r^(blocks of piece i) + sum_i,   tag = (h + lengths) r + s

class Poly1305Pieces final : public PieceTags {
 public:
  explicit Poly1305Pieces(const Message& message);

  std::size_t tag_len() const override { return poly1305::sum_len; }
  void add(std::uint64_t offset, std::size_t len, const std::uint8_t* tag) override;
  void tag(std::uint8_t (&tag)[full_tag_len]) const override;

 private:
  Secret<poly1305::Hash> hash_;
  const std::uint64_t aad_len_;
  std::uint64_t text_len_ = 0;
};

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
