// SPDX-License-Identifier: Apache-2.0
// What the environment forces, for tests and measurements.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace warpcipher::cuda {

// The values of each variable, after `none` in the order of Variable::values.
enum class ForcedLayout : std::uint8_t { none, tables_128, tables_64 };
enum class ForcedGhash : std::uint8_t { none, lanes, rows, scalar, tensor, warpgroups };
enum class ForcedCounter : std::uint8_t { none, packed, hybrid_packed, tiles, hybrid };
enum class ForcedText : std::uint8_t { none, hybrid, tiles };
enum class ForcedPoly1305 : std::uint8_t { none, chunks, lanes };
enum class ForcedColumns : std::uint8_t { none, device, host };

struct Variable {
  const char* name;
  std::span<const std::string_view> values;

  // The name of a value of the enum.
  template <class Forced>
  std::string_view value_of(Forced forced) const {
    return forced == Forced::none ? std::string_view() : values[static_cast<std::size_t>(forced) - 1];
  }
};

namespace variables {
inline constexpr std::array<std::string_view, 2> layouts{"128", "64"};
inline constexpr std::array<std::string_view, 5> ghashes{"lanes", "rows", "scalar", "tensor", "warpgroups"};
inline constexpr std::array<std::string_view, 4> counters{"packed", "hybrid-packed", "tiles", "hybrid"};
inline constexpr std::array<std::string_view, 2> texts{"hybrid", "tiles"};
inline constexpr std::array<std::string_view, 2> poly1305s{"chunks", "lanes"};
inline constexpr std::array<std::string_view, 2> planners{"device", "host"};

inline constexpr Variable table_layout{"WARPCIPHER_LANE_TABLE", layouts};
inline constexpr Variable ghash{"WARPCIPHER_GHASH", ghashes};
inline constexpr Variable counter{"WARPCIPHER_COUNTER", counters};
inline constexpr Variable text{"WARPCIPHER_BLOCKS", texts};
inline constexpr Variable poly1305{"WARPCIPHER_POLY1305", poly1305s};
inline constexpr Variable columns{"WARPCIPHER_COLUMNS", planners};
}  // namespace variables

struct Overrides {
  ForcedLayout table_layout = ForcedLayout::none;
  ForcedGhash ghash = ForcedGhash::none;
  ForcedCounter counter = ForcedCounter::none;
  ForcedText text = ForcedText::none;
  ForcedColumns columns = ForcedColumns::none;
  ForcedPoly1305 poly1305 = ForcedPoly1305::none;

  bool operator==(const Overrides&) const = default;
};

// Reads the environment. Throws Error{invalid_argument} that names a variable with an unexpected value.
Overrides read_overrides();

// What the environment said at the first call, or at the last reread_overrides(). Throws as read_overrides() until one
// reading has had no error. From any thread.
Overrides overrides();

// Reads the environment again, for tests that change it. If it throws, as read_overrides(), it changes nothing.
void reread_overrides();

}  // namespace warpcipher::cuda
