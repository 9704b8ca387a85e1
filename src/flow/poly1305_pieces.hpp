// SPDX-License-Identifier: Apache-2.0
// ChaCha20-Poly1305 and XChaCha20-Poly1305 (RFC 8439, section 2.8) of one message in pieces. A piece runs as
// Message::is_part says, and gives its sum modulo 2^130 - 5:
//
//   whole   h <- h r^(blocks of piece i) + sum_i,   tag = (h + lengths) r + s
#pragma once

#include <cstddef>
#include <cstdint>

#include "cipher/poly1305.hpp"
#include "core/wipe.hpp"
#include "flow/piece_tags.hpp"
#include "message/message.hpp"

namespace warpcipher {

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

}  // namespace warpcipher
