// SPDX-License-Identifier: Apache-2.0
// The same in device memory, on the current device. Nothing waits; scratch memory is taken in stream order, and wiped.
#pragma once

#include "prg/prg.hpp"

namespace warpcipher::prg::cuda {

void expand(Generator generator, std::span<const std::uint8_t> seeds, int children, std::span<std::uint8_t> out,
            Stream stream);
void tree(Generator generator, std::span<const std::uint8_t> roots, int depth, std::span<std::uint8_t> out,
          Stream stream);
// at: in host memory.
void evaluate(const PointKeys& keys, std::span<const std::uint64_t> at, bool same, std::span<std::uint8_t> out,
              Stream stream);
void evaluate_all(const PointKeys& keys, std::span<std::uint8_t> out, Stream stream);
void answer(const PointKeys& keys, std::span<const std::uint8_t> table, std::size_t record_len,
            std::span<std::uint8_t> out, Stream stream);

}  // namespace warpcipher::prg::cuda
