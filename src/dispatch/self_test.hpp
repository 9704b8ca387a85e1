// SPDX-License-Identifier: Apache-2.0
// The known-answer self-test: an engine runs nothing for anyone before it has reproduced an answer of every algorithm.
#pragma once

#include "engine/engine.hpp"

namespace warpcipher {

// Tests an engine that can run here, once in the life of the process. Throws Error{engine_unavailable} that names the
// algorithm if an answer was wrong, then and on every later call.
void require_self_test(Engine& engine);

}  // namespace warpcipher
