// SPDX-License-Identifier: Apache-2.0
#include "random/cuda/fill.hpp"

#include "random/cuda/kernels.hpp"

namespace warpcipher::random::cuda {

void fill(const StreamKey& key, const Distribution& distribution, std::uint64_t position, std::uint8_t* data,
          std::uint64_t count, std::uint32_t attempt, Stream stream, std::uint64_t least_lines,
          std::uint64_t piece_lines) {
  const std::uint64_t width = distribution.width();
  const std::uint64_t first = position / width, last = first + count;
  const LineRange lines{first * width / line_len, (last * width - 1) / line_len + 1};
  const ArrayFill fill{distribution, data, first, last, lines, attempt, least_lines, piece_lines};
  key.cipher == StreamCipher::chacha20 ? fill_chacha(key, fill, stream) : fill_aes(key, fill, stream);
}

}  // namespace warpcipher::random::cuda
