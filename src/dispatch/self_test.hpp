// SPDX-License-Identifier: Apache-2.0
// The known-answer self-test: an engine must reproduce one answer of every algorithm that it offers before it runs
// anything else.
#pragma once

#include "engine/engine.hpp"

namespace warpcipher {

// Tests an engine that can run here, once in the life of the process. Throws Error{engine_unavailable} that names the
// algorithm if an answer was wrong, then and on every later call.
void require_self_test(Engine& engine);

}  // namespace warpcipher
