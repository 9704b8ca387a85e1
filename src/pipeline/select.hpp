// SPDX-License-Identifier: Apache-2.0
// Chooses the engine for a batch: the one that was forced, or the one that should be fastest where the data lies.
#pragma once

#include <span>
#include <string_view>

#include "engine/engine.hpp"
#include "pipeline/rates.hpp"

namespace warpcipher {

// Where host data should go.
enum class Where : std::uint8_t { cpu, device };

// A batch smaller than this stays on the CPU unseen: the copies alone take longer than it does.
inline constexpr std::size_t least_device_len = std::size_t{1} << 20;

// Decides for data in host memory. `rates`: as measured on this machine, or nullptr before anything was: then AES stays
// on the CPU, whose instructions beat the link, and long texts of bitsliced DES go to the device. Pure.
Where choose_where(std::span<const JobPart> job, bool pinned, const RateTable* rates);

// The engine of that name; for "auto" the one that WARPCIPHER_ENGINE names, else as choose_where() decides among those
// whose time depends on neither keys nor data, or the engine that reaches device memory. It can run here and has passed
// its self-test. Throws Error{engine_unavailable} that says why when a forced engine is unknown or cannot run, and
// Error{invalid_argument} when it cannot reach device memory.
Engine& select_engine(std::string_view name, std::span<const Message> messages);

}  // namespace warpcipher
