// SPDX-License-Identifier: Apache-2.0
// Writes texts to a file as they are, on all cores: the counterpart of read_plain(). What lies in device memory is
// copied to page-locked slots, two a thread, and written from there while the next is copied.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "engine/device_engine.hpp"
#include "flow/file/write_chunks.hpp"

namespace warpcipher {

// Writes the parts, one after another, from the beginning of a file on that takes pwrite(). Returns when all is there,
// or why it is not: then parts of it are. engine: as of run(); needed where a part is in device memory. What is on the
// streams that made the parts is done.
//
// Throws Error{invalid_argument}, and nothing has been written; Error{engine_unavailable, engine_failure,
// out_of_memory}; what options.check throws.
std::optional<WriteFailure> write_plain(std::string_view engine, int descriptor, std::span<const TextPart> parts,
                                        const WriteOptions& options);

// The same by an engine, through slots of its memory.
std::optional<WriteFailure> write_plain(DeviceEngine& engine, int descriptor, std::span<const TextPart> parts,
                                        const WriteOptions& options);

}  // namespace warpcipher
