// SPDX-License-Identifier: Apache-2.0
// Chooses the engine for a batch: the one that was forced, or the one that should be fastest where the data lies.
#pragma once

#include <span>
#include <string_view>

#include "engine/engine.hpp"

namespace warpcipher {

// The engine of that name; for "auto" the one that WARPCIPHER_ENGINE names, else one chosen by where the data lies, the
// algorithm and the size. It can run here and has passed its self-test. Throws Error{engine_unavailable} that says why
// when a forced engine is unknown or cannot run, and Error{invalid_argument} when it cannot reach device memory.
Engine& select_engine(std::string_view name, std::span<const Message> messages);

}  // namespace warpcipher
