// SPDX-License-Identifier: Apache-2.0
// The engine that says what must come out: `cpu`, whose AES is libcrypto's, and the slower `reference` where that
// cannot run. Both are held against published vectors elsewhere.
#pragma once

#include "engine/engine.hpp"

inline warpcipher::Engine& oracle() {
  return warpcipher::cpu_engine().offers(warpcipher::find_algorithm("aes-128-ctr")) ? warpcipher::cpu_engine()
                                                                                    : warpcipher::reference_engine();
}
