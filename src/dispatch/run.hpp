// SPDX-License-Identifier: Apache-2.0
// The entry point of the library in C++: checks messages, chooses the engine, brings host data to a device engine, runs
// the messages, and removes padding. The C ABI and the Python bindings call this and nothing deeper.
#pragma once

#include <span>
#include <string_view>

#include "engine/engine.hpp"
#include "message/message.hpp"
#include "message/pieces.hpp"

namespace warpcipher {

// Runs messages with the engine of that name ("auto" chooses; WARPCIPHER_ENGINE overrides "auto") and fills one result
// each. Host memory: returns when done. Device memory: enqueues on `stream`, and waits for it only where the host must
// know the result (AEAD decryption, padded decryption). A wrong tag or padding is a result, not an exception. Throws
// Error for everything else; then nothing has been written, unless the status is engine_failure or out_of_memory.
void run(std::string_view engine, std::span<const Message> messages, std::span<Result> results,
         Stream stream = nullptr);

// The first status that is not ok, or ok.
Status first_failure(std::span<const Result> results);

// The entry point of columnar batches. Large ones on a GPU are checked, planned and run there (the engine's
// run_columns). All others become messages (run.hpp). So does a batch in which the GPU finds an error: the host then
// names the fault and its place.

// Runs them as run() does; results[i].written counts the tag when encrypting an AEAD. Results lie where the columns do.
// Returns ok, or the status of the first failed message. Throws Error{invalid_argument} when a column does not have
// `count` entries, or a range exceeds its buffer.
Status run_columns(std::string_view engine, const Columns& columns, std::span<Result> results, Stream stream = nullptr);

// Runs messages whose texts lie in pieces, as DeviceEngine::run_pieces() says, on the current device. Throws
// Error{invalid_argument} if the lengths do not fit.
void run_pieces(std::span<const Message> messages, const Pieces& pieces, std::uint32_t* verdicts, Stream stream);

}  // namespace warpcipher
