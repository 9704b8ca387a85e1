// SPDX-License-Identifier: Apache-2.0
// The CPU engine: AES by libcrypto or own code, whichever is faster, and bitsliced DES, over all cores.
#pragma once

#include "engine/engine.hpp"

namespace warpcipher {

Engine& cpu_engine();

}  // namespace warpcipher
