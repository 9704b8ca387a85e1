// SPDX-License-Identifier: Apache-2.0
// The algorithms that have kernels.
#pragma once

#include "mode/algorithm.hpp"

namespace warpcipher::cuda {

// Modes of block ciphers; stream ciphers and GCM-SIV have none yet.
constexpr bool has_kernels(const Algorithm& algorithm) {
  return !is_stream_cipher(algorithm.cipher.id) && algorithm.mode.id != Mode::gcm_siv;
}

}  // namespace warpcipher::cuda
