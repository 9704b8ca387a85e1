// SPDX-License-Identifier: Apache-2.0
// Seeds, trees and point functions in host memory, by all cores. Arguments are checked (prg.hpp).
#pragma once

#include "prg/lanes.hpp"
#include "prg/prg.hpp"

namespace warpcipher::prg::host {

// A key of both parties (prg::generate). random: 32 bytes.
void generate_one(const Code& code, const Domain& domain, std::uint64_t point, std::uint64_t value,
                  const std::uint8_t* random, std::uint8_t* first, std::uint8_t* second);

// `code` is the generator's.
void expand(const Code& code, Generator generator, std::span<const std::uint8_t> seeds, int children,
            std::span<std::uint8_t> out);
void tree(const Code& code, Generator generator, std::span<const std::uint8_t> roots, int depth,
          std::span<std::uint8_t> out);
void evaluate(const Code& code, const PointKeys& keys, std::span<const std::uint64_t> at, bool same,
              std::span<std::uint8_t> out);
void evaluate_all(const Code& code, const PointKeys& keys, std::span<std::uint8_t> out);
void answer(const Code& code, const PointKeys& keys, std::span<const std::uint8_t> table, std::size_t record_len,
            std::span<std::uint8_t> out);

}  // namespace warpcipher::prg::host
