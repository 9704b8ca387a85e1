// SPDX-License-Identifier: Apache-2.0
// The entry point of the library in C++: checks messages, chooses the engine, brings host data to a device engine, runs
// the messages, and removes padding. The C ABI and the Python bindings call this and nothing deeper.
#pragma once

#include <span>
#include <string_view>

#include "engine/engine.hpp"
#include "message/message.hpp"

namespace warpcipher {

// Runs messages with the engine of that name ("auto" chooses; WARPCIPHER_ENGINE overrides "auto") and fills one result
// each. Host memory: returns when done. Device memory: enqueues on `stream`, and waits for it only where the host must
// know the result (AEAD decryption, padded decryption). A wrong tag or padding is a result, not an exception. Throws
// Error for everything else; then nothing has been written, unless the status is engine_failure or out_of_memory.
void run(std::string_view engine, std::span<const Message> messages, std::span<Result> results,
         Stream stream = nullptr);

// The first status that is not ok, or ok.
Status first_failure(std::span<const Result> results);

}  // namespace warpcipher
