// SPDX-License-Identifier: Apache-2.0
// The conditions of every choice of kernels, in addition to the batch: the device, the environment, and what
// the tuner measured. A choice that can be forced or tuned has one name: in WARPCIPHER_FORCE, in the tuner's policies
// and in what explain prints.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/cuda/runtime/gpu.hpp"

namespace warpcipher::cuda {

// --- forced by the environment, for tests and measurements: WARPCIPHER_FORCE=ghash=rows,text=tiles ---
// The later entry of a name holds.

// The values of each choice, after `none` in the order of Choice::values.
enum class ForcedTables : std::uint8_t { none, tables_128, tables_64 };
enum class ForcedGhash : std::uint8_t { none, lanes, rows, scalar, tensor, warpgroups };
enum class ForcedCounter : std::uint8_t { none, packed, hybrid_packed, tiles, hybrid };
enum class ForcedText : std::uint8_t { none, hybrid, tiles };
enum class ForcedPoly1305 : std::uint8_t { none, chunks, lanes };
enum class ForcedColumns : std::uint8_t { none, device, host };
enum class ForcedCopies : std::uint8_t { none, batches, calls };

struct Choice {
  std::string_view name;
  std::span<const std::string_view> values;

  // The name of a value of the enum.
  template <class Forced>
  std::string_view value_of(Forced forced) const {
    return forced == Forced::none ? std::string_view() : values[static_cast<std::size_t>(forced) - 1];
  }
};

namespace choices {
namespace values {
inline constexpr std::array<std::string_view, 2> tables{"128", "64"};
inline constexpr std::array<std::string_view, 5> ghash{"lanes", "rows", "scalar", "tensor", "warpgroups"};
inline constexpr std::array<std::string_view, 4> counter{"packed", "hybrid-packed", "tiles", "hybrid"};
inline constexpr std::array<std::string_view, 2> text{"hybrid", "tiles"};
inline constexpr std::array<std::string_view, 2> poly1305{"chunks", "lanes"};
inline constexpr std::array<std::string_view, 2> columns{"device", "host"};
inline constexpr std::array<std::string_view, 2> copies{"batches", "calls"};
}  // namespace values

inline constexpr Choice tables{"tables", values::tables};        // KiB of lane tables
inline constexpr Choice ghash{"ghash", values::ghash};           // tags of GCM and GCM-SIV
inline constexpr Choice counter{"counter", values::counter};     // text of CTR, GCM, GCM-SIV and ChaCha20
inline constexpr Choice text{"text", values::text};              // of ECB, CBC, CFB and XTS
inline constexpr Choice poly1305{"poly1305", values::poly1305};  // text and tags of ChaCha20-Poly1305
inline constexpr Choice columns{"columns", values::columns};     // who plans them
inline constexpr Choice copies{"copies", values::copies};        // of ranges of host memory
}  // namespace choices

struct Overrides {
  ForcedTables tables = ForcedTables::none;
  ForcedGhash ghash = ForcedGhash::none;
  ForcedCounter counter = ForcedCounter::none;
  ForcedText text = ForcedText::none;
  ForcedPoly1305 poly1305 = ForcedPoly1305::none;
  ForcedColumns columns = ForcedColumns::none;
  ForcedCopies copies = ForcedCopies::none;

  bool operator==(const Overrides&) const = default;
};

// Reads the environment. Throws Error{invalid_argument} for an unknown name or value, which lists the right ones.
Overrides read_overrides();

// The environment at the first call, or at the last reread_overrides(). Throws as read_overrides() until one
// reading has had no error. From any thread.
Overrides overrides();

// Reads the environment again, for tests that change it. If it throws, as read_overrides(), it changes nothing.
void reread_overrides();

// --- the tuner's choice for each device ---

// The values of each policy, after `none` (the shipped default holds) in the order of policies.cpp.
enum class TunedTables : std::uint8_t { none, tables_128, tables_64 };
enum class TunedGhash : std::uint8_t { none, tensor, scalar };
enum class TunedText : std::uint8_t { none, hybrid, tiles };

struct alignas(4) Tuned {
  TunedTables tables = TunedTables::none;
  TunedGhash ghash = TunedGhash::none;  // of long texts
  TunedText counter = TunedText::none;  // of long texts in counter mode
  TunedText text = TunedText::none;     // of long texts in other modes

  bool operator==(const Tuned&) const = default;
};

// Where the choices for a device are kept, from any thread; nullptr for a device that has no place.
std::atomic<Tuned>* tuned_place(const Device& device);

inline Tuned tuned_of(const Device& device) {
  const std::atomic<Tuned>* const place = tuned_place(device);
  return place == nullptr ? Tuned{} : place->load(std::memory_order_relaxed);
}

struct Conditions {
  const Device& device;
  Overrides overrides{};
  Tuned tuned{};
};

// The conditions of a launch that begins now. Throws as overrides().
inline Conditions conditions_of(const Device& device) { return {device, overrides(), tuned_of(device)}; }

}  // namespace warpcipher::cuda
