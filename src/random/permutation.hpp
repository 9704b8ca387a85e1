// SPDX-License-Identifier: Apache-2.0
// Permutations: 0 to n - 1 in the order of random words.
#pragma once

#include <cstddef>
#include <cstdint>

#include "random/stream.hpp"

namespace warpcipher::random {

// count: 1 to 2^32. item_len: 4 or 8. by_definition: words and order without threads and without vectors.
void permute_host(const StreamKey& key, std::uint64_t position, std::size_t item_len, std::uint8_t* data,
                  std::uint64_t count, bool by_definition);

}  // namespace warpcipher::random
