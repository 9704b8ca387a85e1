// SPDX-License-Identifier: Apache-2.0
// What a lane derives from the key and the nonce of a message.
#pragma once

#include "engine/cuda/chacha/inputs.hpp"
#include "engine/cuda/chacha/rounds.cuh"
#include "engine/cuda/chacha/text.cuh"

namespace warpcipher::cuda::chacha {

__device__ __forceinline__ Block load_key(const std::uint8_t* p) {
  return reinterpret_cast<std::uintptr_t>(p) % 16 == 0 ? load_aligned(p) : load_bytes(p, 16);
}

// All twenty rounds, without the addition of the first words at the end.
__device__ __forceinline__ void run_rounds(std::uint32_t (&x)[16]) {
#pragma unroll 1
  for (int i = 0; i < ciphers::double_rounds; ++i) double_round(x);
}

// The second to the last row of the matrix of a message. XChaCha20: of the derived key.
struct Rows {
  std::uint32_t key[8];
  Block last;  // the number of the first block, and the nonce

  __device__ __forceinline__ void fill(std::uint32_t (&x)[16]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = first_row(i);
#pragma unroll
    for (int i = 0; i < 8; ++i) x[4 + i] = key[i];
#pragma unroll
    for (int i = 0; i < 4; ++i) x[12 + i] = last.words[i];
  }

  // Gives the parts of a KeyStream to store(number, part), 16 bytes each.
  template <class Store>
  __device__ __forceinline__ void store_stream(Store&& store) const {
    std::uint32_t x[16];
    fill(x);
    round_of_columns(x);
    store(0, make_uint4(key[0], key[1], key[2], key[3]));
    store(1, make_uint4(key[4], key[5], key[6], key[7]));
    store(2, to_vector(last));
#pragma unroll
    for (int c = 1; c < 4; ++c) store(2 + c, make_uint4(x[c], x[4 + c], x[8 + c], x[12 + c]));
  }
};

__device__ __forceinline__ Rows derive_rows(const KeySource& source, std::uint64_t message) {
  const MessageView& view = source.views[message];
  const std::uint8_t* const bytes = global(source.keys) + std::uint64_t{32} * view.key;
  const Block start = view.start, low = load_key(bytes), high = load_key(bytes + 16);
  Rows rows;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    rows.key[w] = low.words[w];
    rows.key[4 + w] = high.words[w];
  }
  rows.last = start;
  if (source.form == NonceForm::nonce) rows.last = {{1, start.words[0], start.words[1], start.words[2]}};
  if (source.form == NonceForm::extended) {
    std::uint32_t x[16];
    rows.fill(x);
    run_rounds(x);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      rows.key[w] = x[w];
      rows.key[4 + w] = x[12 + w];
    }
    const Block rest = source.hash_views[message].mask;
    rows.last = {{1, 0, rest.words[0], rest.words[1]}};
  }
  return rows;
}

}  // namespace warpcipher::cuda::chacha
