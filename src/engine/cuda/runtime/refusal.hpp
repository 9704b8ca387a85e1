// SPDX-License-Identifier: Apache-2.0
// Why a candidate was refused: plain numbers for a launch, text for people (explain.hpp).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/cuda/runtime/gpu.hpp"

namespace warpcipher::cuda {

// The conditions of every choice of kernels, in addition to the batch: the device, the environment, and what
// the tuner measured. A choice that can be forced or tuned has one name: in WARPCIPHER_FORCE, in the tuner's policies
// and in what explain prints.

// The values of each choice, after `none` in the order of Choice::values.
enum class PickedTables : std::uint8_t { none, tables_128, tables_64 };
enum class PickedGhash : std::uint8_t { none, lanes, rows, scalar, tensor, warpgroups };
enum class PickedCounter : std::uint8_t { none, packed, hybrid_packed, tiles, hybrid };
enum class PickedText : std::uint8_t { none, hybrid, tiles };
enum class PickedPoly1305 : std::uint8_t { none, chunks, lanes };
enum class PickedColumns : std::uint8_t { none, device, host };
enum class PickedCopies : std::uint8_t { none, batches, calls };

struct Choice {
  std::string_view name;
  std::span<const std::string_view> values;

  // The name of a value of the enum.
  template <class Picked>
  std::string_view value_of(Picked picked) const {
    return picked == Picked::none ? std::string_view() : values[static_cast<std::size_t>(picked) - 1];
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

// The candidates that are forced, or were measured to be best.
struct alignas(8) Picks {
  PickedTables tables = PickedTables::none;
  PickedGhash ghash = PickedGhash::none;
  PickedCounter counter = PickedCounter::none;
  PickedText text = PickedText::none;
  PickedPoly1305 poly1305 = PickedPoly1305::none;
  PickedColumns columns = PickedColumns::none;
  PickedCopies copies = PickedCopies::none;

  bool operator==(const Picks&) const = default;
};

// The name of what is picked; empty: nothing is.
std::string_view picked(const Picks& all, const Choice& choice);

// Picks a value by its names; an empty value: none. An unknown one changes nothing.
void pick(Picks& all, std::string_view name, std::string_view value);

// --- forced by the environment, for tests and measurements: WARPCIPHER_FORCE=ghash=rows,text=tiles ---
// The later entry of a name holds.

// Reads the environment. Throws Error{invalid_argument} for an unknown name or value, which lists the right ones.
Picks read_overrides();

// The environment at the first call, or at the last reread_overrides(). Throws as read_overrides() until one
// reading has had no error. From any thread.
Picks overrides();

// Reads the environment again, for tests that change it. If it throws, as read_overrides(), it changes nothing.
void reread_overrides();

// --- the tuner's choice for each device ---

// Where the choices for a device are kept, from any thread; nullptr for a device that has no place.
std::atomic<Picks>* tuned_place(const Device& device);

inline Picks tuned_of(const Device& device) {
  const std::atomic<Picks>* const place = tuned_place(device);
  return place == nullptr ? Picks{} : place->load(std::memory_order_relaxed);
}

struct Conditions {
  const Device& device;
  Picks overrides{};
  Picks tuned{};  // tables, ghash, counter and text
};

// The conditions of a launch that begins now. Throws as overrides().
inline Conditions conditions_of(const Device& device) { return {device, overrides(), tuned_of(device)}; }

enum class Reason : std::uint8_t {
  none,                // not refused
  forced,              // `choice` is forced to another candidate: `given`, a value of its enum
  tuned,               // another was measured to be faster on this machine
  capability_9_0,      // another compute capability
  tensor_cores,        // compute capability 8.x or 9.x is needed
  one_multiprocessor,  // two are needed
  shared_memory,       // of a block: `given` bytes, `bound` needed
  tables_64,           // tables of 128 KiB are needed
  mode,                // no such kernel for the mode
  batch,               // in this mode for one message by itself
  many_keys,           // messages do not share a key that can be a kernel parameter
  one_key,             // messages share a key
  key_not_128,         // keys of other lengths
  no_expansion,        // the kernel makes no round keys
  derived_on_host,     // the host has made the round keys already
  empty,               // no text
  long_messages,       // `given` blocks, at most `bound`
  uneven_messages,     // lengths differ
  partial_tiles,       // most tiles, or places of tiles, would be empty
  few_tiles,           // `given`, `bound` needed
  few_warps,           // likewise
  few_messages,        // likewise
  many_messages,       // `given`, at most `bound`
  few_blocks,          // as few_tiles
  few_blocks_of_key,   // likewise
  many_short,          // `given` short messages: each is too short for this
  sector_len,          // the kernel takes no data units of `given` bytes
  key_192,             // no such kernel for 12 rounds
  registers,           // a thread needs more of them for longer keys
  any_address,         // texts are not aligned, and fill tiles
};

struct Refusal {
  Reason reason = Reason::none;
  std::uint64_t given = 0;
  std::uint64_t bound = 0;
  const Choice* choice = nullptr;

  explicit operator bool() const { return reason != Reason::none; }
};

template <class Picked>
Refusal refuse_forced(const Choice& choice, Picked forced) {
  return {Reason::forced, static_cast<std::uint64_t>(forced), 0, &choice};
}

// "WARPCIPHER_FORCE=text=tiles": forces that value.
std::string forced_text(const Choice& choice, std::string_view value);

// For people; empty for Reason::none.
std::string to_text(const Refusal& refusal);

// The first candidate that is not refused; the last if all are refused.
template <class Candidate, std::size_t N, class Refuse>
Candidate first_accepted(const std::array<Candidate, N>& candidates, Refuse&& refuse) {
  for (std::size_t i = 0; i + 1 < N; ++i) {
    if (!refuse(candidates[i])) return candidates[i];
  }
  return candidates[N - 1];
}

}  // namespace warpcipher::cuda
