// SPDX-License-Identifier: Apache-2.0
// In place of the CUDA sources in a build without them.
#include "core/error.hpp"
#include "random/cuda/fill.hpp"

namespace warpcipher::random::cuda {
namespace {

[[noreturn]] void refuse() {
  throw Error(Status::engine_unavailable, "the array lies on a GPU and this build has no CUDA engine");
}

}  // namespace

void fill(const StreamKey&, const Distribution&, std::uint64_t, std::uint8_t*, std::uint64_t, std::uint32_t, Stream,
          std::uint64_t, std::uint64_t) {
  refuse();
}

void permute(const StreamKey&, std::uint64_t, std::size_t, std::uint8_t*, std::uint64_t, Stream) { refuse(); }

}  // namespace warpcipher::random::cuda
