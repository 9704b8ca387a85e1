// SPDX-License-Identifier: Apache-2.0
// The entry point of columnar batches. Large ones on a GPU are checked, planned and run there (the engine's
// run_columns). All others become messages (run.hpp). So does a batch in which the GPU finds an error: the host then
// names the fault and its place.
#pragma once

#include <span>
#include <string_view>

#include "dispatch/run.hpp"
#include "message/columns.hpp"
#include "message/pieces.hpp"

namespace warpcipher {

// Runs them as run() does; results[i].written counts the tag when encrypting an AEAD. Results lie where the columns do.
// Returns ok, or the status of the first failed message. Throws Error{invalid_argument} when a column does not have
// `count` entries, or a range exceeds its buffer.
Status run_columns(std::string_view engine, const Columns& columns, std::span<Result> results, Stream stream = nullptr);

// Runs messages whose texts lie in pieces, as DeviceEngine::run_pieces() says, on the current device. Throws
// Error{invalid_argument} if the lengths do not fit.
void run_pieces(std::span<const Message> messages, const Pieces& pieces, std::span<Status> statuses, Stream stream);

}  // namespace warpcipher
