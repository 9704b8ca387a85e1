// SPDX-License-Identifier: Apache-2.0
// Chooses the engines for a batch: the one that the caller named, or the fastest for the data's residence, or both.
#pragma once

#include <span>
#include <string_view>

#include "engine/device_engine.hpp"
#include "tuning/tuning.hpp"

namespace warpcipher {

// Where host data should go.
enum class Where : std::uint8_t { cpu, device, both };

struct Choice {
  Where where = Where::cpu;
  double cpu_share = 0;  // of the bytes, where both work
};

// A smaller batch stays on the CPU; the rates are not consulted. H200 and 16 cores, 64 KiB: AES 0.02 ms on the CPU and
// 0.05 through the GPU, triple DES 0.067 and 0.062; 256 KiB of triple DES 0.27 and 0.07.
inline constexpr std::size_t least_device_len = std::size_t{64} << 10;

// A smaller batch is not shared. H200 and 16 cores, AES-128-CTR from page-locked memory: 16 MiB took 0.48 ms
// on the better engine and 0.36 on both, but 1 MiB 0.10 and 0.17.
inline constexpr std::size_t least_shared_len = std::size_t{16} << 20;

// Decides for data in host memory. `rates`: measured on this machine, or nullptr. Without rates AES stays on the CPU,
// whose instructions are faster than the link, and long texts of bitsliced DES go to the device. Only a batch of one
// algorithm and direction is shared. A pure function.
Choice choose_where(std::span<const JobPart> job, bool pinned, const RateTable* rates);

struct Selection {
  Engine* engine;
  Engine* cpu = nullptr;  // takes a share of the work
  double cpu_share = 0;   // of the bytes
};

// Throws Error{engine_unavailable} if the device's engine has no code for that algorithm.
void require_offered(const DeviceEngine& engine, const Algorithm& algorithm);

// The engine of that name. For "auto": the engine that WARPCIPHER_ENGINE names; else, for device memory, the engine
// that runs there, and for host memory what choose_where() decides among engines whose time depends on neither keys nor
// data. The engines can run here, offer the algorithms of all messages, and have passed their self-test. Throws
// Error{engine_unavailable} that says why when a named engine is unknown or cannot run, or does not offer an algorithm,
// and Error{invalid_argument} when it cannot access device memory.
Selection select_engines(std::string_view name, std::span<const Message> messages);

// The same for text in device memory.
DeviceEngine& select_device_engine(std::string_view name);

// Whether select_engines() is likely to send data in host memory to a device, if `among` were the engines. For "auto",
// only once the rates of this machine have been measured: before that nearly all data stay on the CPU. Does not start
// the driver of an engine that the name excludes.
bool may_use_device(std::string_view name, std::span<Engine* const> among = engines());

}  // namespace warpcipher
