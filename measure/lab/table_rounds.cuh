// SPDX-License-Identifier: Apache-2.0
// A column of AES by T-boxes, wherever they lie, and counter blocks as such columns. Boxes: at<R>(x) is T-box R at
// byte x.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace warpcipher::lab {

// Four T-boxes, one behind the other in `words`, or one and rotations.
template <class Words, unsigned Count>
struct Boxes {
  Words words;

  template <unsigned R>
  __device__ __forceinline__ std::uint32_t at(std::uint32_t x) const {
    const std::uint32_t word = words[(Count == 4 ? 256 * R : 0) + x];
    return Count == 4 || R == 0 ? word : __funnelshift_l(word, word, 8 * R);
  }
};

// Of a round but the last: row r of the column comes from c<r>.
template <class Boxes>
__device__ __forceinline__ std::uint32_t middle_column(const Boxes& boxes, std::uint32_t c0, std::uint32_t c1,
                                                       std::uint32_t c2, std::uint32_t c3, std::uint32_t key) {
  return boxes.template at<0>(c0 & 0xff) ^ boxes.template at<1>(c1 >> 8 & 0xff) ^
         boxes.template at<2>(c2 >> 16 & 0xff) ^ boxes.template at<3>(c3 >> 24) ^ key;
}

// Of the last round of encryption. A T-box holds the S-box too: T2, T3, T0 and T1 in bytes 0 to 3.
template <class Boxes>
__device__ __forceinline__ std::uint32_t last_column(const Boxes& boxes, std::uint32_t c0, std::uint32_t c1,
                                                     std::uint32_t c2, std::uint32_t c3, std::uint32_t key) {
  return (boxes.template at<2>(c0 & 0xff) & 0xffu) ^ (boxes.template at<3>(c1 >> 8 & 0xff) & 0xff00u) ^
         (boxes.template at<0>(c2 >> 16 & 0xff) & 0xff0000u) ^ (boxes.template at<1>(c3 >> 24) & 0xff000000u) ^ key;
}

// A block of AES-128 by one thread. Keys: keys(i) is word i of the round keys.
template <class Boxes, class Keys>
__device__ __forceinline__ uint4 encrypt_state(const Boxes& boxes, const Keys& keys, const uint4& text) {
  constexpr unsigned rounds = 10;
  std::uint32_t s[4] = {text.x ^ keys(0), text.y ^ keys(1), text.z ^ keys(2), text.w ^ keys(3)};
#pragma unroll
  for (unsigned round = 1; round <= rounds; ++round) {
    std::uint32_t t[4];
#pragma unroll
    for (unsigned c = 0; c < 4; ++c) {
      const std::uint32_t key = keys(4 * round + c);
      t[c] = round < rounds ? middle_column(boxes, s[c], s[(c + 1) % 4], s[(c + 2) % 4], s[(c + 3) % 4], key)
                            : last_column(boxes, s[c], s[(c + 1) % 4], s[(c + 2) % 4], s[(c + 3) % 4], key);
    }
#pragma unroll
    for (unsigned c = 0; c < 4; ++c) s[c] = t[c];
  }
  return make_uint4(s[0], s[1], s[2], s[3]);
}

// The block `distance` blocks after `counter`: a big-endian number of 128 bits that wraps. Both are columns in
// the layout of cipher/aes_tables.hpp.
__device__ __forceinline__ uint4 counter_behind(const std::uint32_t (&counter)[4], std::uint64_t distance) {
  const auto swap = [](std::uint32_t x) { return __byte_perm(x, 0, 0x0123); };
  const std::uint64_t before = std::uint64_t{swap(counter[2])} << 32 | swap(counter[3]);
  const std::uint64_t low = before + distance;
  const std::uint64_t high =
      (std::uint64_t{swap(counter[0])} << 32 | swap(counter[1])) + (low < before ? std::uint64_t{1} : 0);
  return make_uint4(swap(static_cast<std::uint32_t>(high >> 32)), swap(static_cast<std::uint32_t>(high)),
                    swap(static_cast<std::uint32_t>(low >> 32)), swap(static_cast<std::uint32_t>(low)));
}

__device__ __forceinline__ uint4 sum(const uint4& a, const uint4& b) {
  return make_uint4(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w);
}

}  // namespace warpcipher::lab
