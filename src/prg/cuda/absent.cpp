// SPDX-License-Identifier: Apache-2.0
// In place of the CUDA sources in a build without them.
#include "core/error.hpp"
#include "prg/cuda/launches.hpp"

namespace warpcipher::prg::cuda {
namespace {

[[noreturn]] void refuse() {
  throw Error(Status::engine_unavailable, "the array lies on a GPU and this build has no CUDA engine");
}

}  // namespace

void expand(Generator, std::span<const std::uint8_t>, int, std::span<std::uint8_t>, Stream) { refuse(); }
void tree(Generator, std::span<const std::uint8_t>, int, std::span<std::uint8_t>, Stream) { refuse(); }
void evaluate(const PointKeys&, std::span<const std::uint64_t>, bool, std::span<std::uint8_t>, Stream) { refuse(); }
void evaluate_all(const PointKeys&, std::span<std::uint8_t>, Stream) { refuse(); }
void answer(const PointKeys&, std::span<const std::uint8_t>, std::size_t, std::span<std::uint8_t>, Stream) { refuse(); }

}  // namespace warpcipher::prg::cuda
