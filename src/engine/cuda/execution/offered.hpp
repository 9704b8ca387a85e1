// SPDX-License-Identifier: Apache-2.0
// The algorithms that have kernels.
#pragma once

#include "mode/algorithm.hpp"

namespace warpcipher::cuda {

constexpr bool has_kernels(const Algorithm& algorithm) {
  switch (algorithm.mode.id) {
    case Mode::ecb:
    case Mode::cbc:
    case Mode::cfb:
    case Mode::cfb8:
    case Mode::ofb:
    case Mode::ctr:
    case Mode::gcm:
    case Mode::xts:
    case Mode::gcm_siv:
    case Mode::stream:
    case Mode::poly1305:
    case Mode::ccm:
      return true;
  }
  return false;
}

}  // namespace warpcipher::cuda
