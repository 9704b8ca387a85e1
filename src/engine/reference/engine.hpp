// SPDX-License-Identifier: Apache-2.0
// The reference engine: the standards' text, one block after the other. The oracle of every test; slow, and not
// constant in time (its S-boxes are tables), so `auto` never takes it.
#pragma once

#include "engine/engine.hpp"

namespace warpcipher {

Engine& reference_engine();

}  // namespace warpcipher
