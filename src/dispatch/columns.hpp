// SPDX-License-Identifier: Apache-2.0
// The front door of columnar batches. Large ones on a GPU are checked, planned and run there (the engine's
// run_columns); all others become messages (run.hpp), as does a batch that the GPU finds fault with, for the host to
// say what and where it is.
#pragma once

#include <span>
#include <string_view>

#include "batch/columns.hpp"
#include "dispatch/run.hpp"

namespace warpcipher {

// Runs them as run() does; results[i].written counts the tag when encrypting an AEAD. Results lie where the columns do.
// Returns ok, or what the first failed message came to. Throws Error{invalid_argument} when a column has another number
// of entries than `count`, or a range leaves its buffer.
Status run_columns(std::string_view engine, const Columns& columns, std::span<Result> results, Stream stream = nullptr);

}  // namespace warpcipher
