// SPDX-License-Identifier: Apache-2.0
// Messages of AES-GCM or ChaCha20-Poly1305, of one length, whose texts lie in pieces (src/message/pieces.hpp).
#pragma once

#include <cstdint>

#include "engine/cuda/execution/device_batch.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "message/pieces.hpp"

namespace warpcipher::cuda {

// Their arrays travel with the batch's.
class PieceArrays {
 public:
  // The caller keeps the pieces until execute() has returned.
  PieceArrays(const Pieces& pieces, const DeviceBatch& batch);

  // Before arrays that are not sent are reserved, and after that.
  void reserve(Upload& upload);
  void reserve_on_device(Upload& upload);
  // Throws Error{engine_failure} if there are more pieces than a launch can have.
  void fill(Upload& upload);

  // execute() of the batch, whose views have the ciphertext as in and out. A wrong tag gets verdict 0, and nothing is
  // written to the pieces of its message, or zeros.
  void execute(const Upload& upload, const DeviceBatch& batch, std::uint32_t* verdicts) const;

 private:
  const Pieces& pieces_;
  const bool encrypting_;
  const std::uint32_t messages_;
  const std::uint32_t of_message_;
  const std::uint64_t count_;   // of all messages
  const Algorithm& algorithm_;  // of a piece by itself
  const std::uint64_t units_;   // of a piece
  const bool lacks_ends_;
  std::uint64_t tiles_of_text_ = 0;
  std::uint64_t ends_of_text_ = 0;  // units that tiles lack
  bool is_aligned_;                 // ciphertexts and pieces lie at multiples of 16
  bool in_one_pass_;
  Upload::Array<PiecePlace> places_{};
  Upload::Array<std::uint64_t> blocks_{}, tiles_{}, first_tile_{};
  Upload::Array<std::uint8_t> heads_{}, nowhere_{};
  Upload::Array<MessageView> views_{};
};

}  // namespace warpcipher::cuda
