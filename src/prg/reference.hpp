// SPDX-License-Identifier: Apache-2.0
// The definition: each leaf by itself, from its root.
#pragma once

#include "prg/prg.hpp"

namespace warpcipher::prg::reference {

void tree(Generator generator, std::span<const std::uint8_t> roots, int depth, std::span<std::uint8_t> out);
void evaluate_all(const PointKeys& keys, std::span<std::uint8_t> out);
void answer(const PointKeys& keys, std::span<const std::uint8_t> table, std::size_t record_len,
            std::span<std::uint8_t> out);

}  // namespace warpcipher::prg::reference
