// SPDX-License-Identifier: Apache-2.0
// The CPU engine: AES by OpenSSL's libcrypto, DES bitsliced, both spread over all cores.
#pragma once

#include "engine/engine.hpp"

namespace warpcipher {

Engine& cpu_engine();

}  // namespace warpcipher
