// SPDX-License-Identifier: Apache-2.0
// The HMAC of chunks whose cipher authenticates nothing: Tink's AES-CTR-HMAC.
#pragma once

#include <optional>

#include "engine/cpu/hmac.hpp"
#include "flow/file/file_piece.hpp"

namespace warpcipher {

// Of one thread; another takes a copy.
class MacCheck {
 public:
  explicit MacCheck(const FileChunks& chunks) : chunks_(chunks) {
    if (chunks.has_mac()) hmac_.emplace(chunks.mac.hash, chunks.mac.key);
  }
  MacCheck(const MacCheck&) = default;
  MacCheck& operator=(const MacCheck&) = delete;

  // The first chunk of a piece whose tag does not match what the buffer holds of it.
  std::optional<ReadFailure> find_bad_tag(const FilePiece& piece, const std::uint8_t* buffer) {
    if (!hmac_) return std::nullopt;
    for (const FilePiece::Item& item : piece.items) {
      const std::uint8_t* const text = buffer + item.at;
      const std::size_t len = chunks_.lengths[item.chunk];
      const bool is_right = hmac_->matches({{{iv_of(chunks_, item, buffer), chunks_.iv_len}, {text, len}}},
                                           {text + len, chunks_.tag_len});
      if (!is_right) return ReadFailure{ReadFailure::Kind::bad_tag, item.chunk};
    }
    return std::nullopt;
  }

 private:
  const FileChunks& chunks_;
  std::optional<Hmac> hmac_;
};

}  // namespace warpcipher
