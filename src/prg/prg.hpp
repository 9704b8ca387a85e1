// SPDX-License-Identifier: Apache-2.0
// Seeds, trees and point functions, in host or device memory, by an engine. All engines give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/stream.hpp"
#include "message/message.hpp"
#include "prg/point_keys.hpp"

namespace warpcipher::prg {

// Throw Error{invalid_argument} that names the given and the possible values.
Generator find_generator(std::string_view name);
Group find_group(std::string_view name);

// Where arrays of a call lie, all of them, and what works on them. `engine`: auto, or for host memory cpu or reference,
// for device memory cuda. Calls on device memory do not wait. Arrays of a GPU begin at a multiple of 16 bytes.
struct Place {
  Memory memory;
  Stream stream;
  std::string_view engine;
};

// The functions below throw Error{invalid_argument, engine_unavailable, engine_failure, out_of_memory}; nothing is
// written if it is one of the first two. Outputs and inputs do not overlap, except where that is said.

// Children 0 to `children` - 1 (1 to 4) of each seed, one seed after the other. With one child `out` may be `seeds`.
void expand(Generator generator, std::span<const std::uint8_t> seeds, int children, std::span<std::uint8_t> out,
            const Place& place);

// The 2^depth leaves of the tree of each root, one root after the other; depth is 0 to 40.
void tree(Generator generator, std::span<const std::uint8_t> roots, int depth, std::span<std::uint8_t> out,
          const Place& place);

// --- distributed point functions -------------------------------------------------------------------------------------

// Keys of one party: `records` (point_keys.hpp) lie in host memory, and are checked.
struct PointKeys {
  Domain domain;
  int party;
  std::span<const std::uint8_t> records;

  std::uint64_t count() const { return records.size() / domain.record_len(); }
};

// Throws Error{invalid_argument} for a domain or records that generate() cannot have made.
void check_keys(const PointKeys& keys);

// Keys of the functions that are values[i] at points[i] and 0 elsewhere, for both parties. random: 32 bytes for each.
// Time depends only on the domain and the count.
void generate(const Domain& domain, std::span<const std::uint64_t> points, std::span<const std::uint64_t> values,
              std::span<const std::uint8_t> random, std::span<std::uint8_t> first, std::span<std::uint8_t> second);

// The share of each key at each of its points: at[k * n + i], or at[i] for all keys where `same`. out: values, in the
// same order.
void evaluate(const PointKeys& keys, std::span<const std::uint64_t> at, bool same, std::span<std::uint8_t> out,
              const Place& place);

// The shares of each key at all points, one key after the other (Domain::share_len).
void evaluate_all(const PointKeys& keys, std::span<std::uint8_t> out, const Place& place);

// The sum of a table's records, each times the share of its number; record_len bytes for each key. Records are GF(2)'s
// bits, or integers of the group. The table may have less records than the domain has points.
void answer(const PointKeys& keys, std::span<const std::uint8_t> table, std::size_t record_len,
            std::span<std::uint8_t> out, const Place& place);

}  // namespace warpcipher::prg
