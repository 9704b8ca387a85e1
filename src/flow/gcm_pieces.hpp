// SPDX-License-Identifier: Apache-2.0
// GCM (SP 800-38D) of one message in pieces, on engines that know only whole messages. Each piece runs as a message of
// its own with the IV iv_at(): a 16-byte IV that GHASH maps to the counter at which the piece begins. GHASH is a
// polynomial in H, so the hashes of pieces add up once each is multiplied by a power of H. So the tags of the pieces
// give the tag of the whole:
//
//   piece i   tag_i = E(J_i) + (Y_i + L_i) H   gives Y_i, its hash; L_i the block of its lengths
//   whole     Y <- Y H^(blocks of piece i) + Y_i,   tag = E(J0) + (Y + L) H
#pragma once

#include <cstddef>
#include <cstdint>

#include "cipher/aes.hpp"
#include "cipher/gf128.hpp"
#include "core/wipe.hpp"
#include "flow/piece_tags.hpp"
#include "message/message.hpp"

namespace warpcipher {

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
    std::uint8_t first_counter[16];  // J0
    gf128::Element sum;              // Y
  };

  gf128::Element mask(std::uint64_t block) const;

  Secret<State> state_;
  std::uint64_t aad_len_;
  std::uint64_t text_len_ = 0;
};

}  // namespace warpcipher
