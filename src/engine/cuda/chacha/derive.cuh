// SPDX-License-Identifier: Apache-2.0
// Derived by a lane from the key and the nonce of a message.
#pragma once

#include "engine/cuda/chacha/rounds.cuh"
#include "engine/cuda/inputs/message_view.hpp"

namespace warpcipher::cuda::chacha {

// All twenty rounds, without the addition of the first words at the end.
__device__ __forceinline__ void run_rounds(std::uint32_t (&x)[16]) {
#pragma unroll 1
  for (int i = 0; i < ciphers::double_rounds; ++i) double_round(x);
}

__device__ __forceinline__ void fill(std::uint32_t (&x)[16], const std::uint32_t (&key)[8], const Block& last) {
#pragma unroll
  for (int i = 0; i < 4; ++i) x[i] = first_row(i);
#pragma unroll
  for (int i = 0; i < 8; ++i) x[4 + i] = key[i];
#pragma unroll
  for (int i = 0; i < 4; ++i) x[12 + i] = last.words[i];
}

__device__ __forceinline__ Block load_key(const std::uint8_t* p) {
  return reinterpret_cast<std::uintptr_t>(p) % 16 == 0 ? load_aligned(p) : load_bytes(p, 16);
}

struct Derived {
  std::uint32_t key[8];
  Block last;  // the first counter and the nonce

  // rest: of an extended nonce, and of a part of a message.
  __device__ __forceinline__ Derived(const std::uint8_t* keys, const MessageView& view, NonceForm form,
                                     const HashView* rest, bool is_part = false) {
    const std::uint8_t* const bytes = global(keys) + std::uint64_t{32} * view.key;
    const Block start = view.start, low = load_key(bytes), high = load_key(bytes + 16);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      key[w] = low.words[w];
      key[4 + w] = high.words[w];
    }
    const std::uint32_t counter = is_part ? 1 + rest->mask.words[3] : 1;  // of an AEAD's text
    last = start;
    if (form == NonceForm::nonce) last = {{counter, start.words[0], start.words[1], start.words[2]}};
    if (form != NonceForm::extended) return;
    std::uint32_t x[16];
    fill(x, key, start);
    run_rounds(x);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      key[w] = x[w];
      key[4 + w] = x[12 + w];
    }
    const Block mask = rest->mask;
    last = {{counter, 0, mask.words[0], mask.words[1]}};
  }

  // A KeyStream, as vectors of 16 bytes.
  template <class Store>
  __device__ __forceinline__ void store_stream(Store&& store) const {
    std::uint32_t x[16];
    fill(x, key, last);
    round_of_columns(x);
    store(0, make_uint4(key[0], key[1], key[2], key[3]));
    store(1, make_uint4(key[4], key[5], key[6], key[7]));
    store(2, to_vector(last));
#pragma unroll
    for (int c = 1; c < 4; ++c) store(2 + c, make_uint4(x[c], x[4 + c], x[8 + c], x[12 + c]));
  }

  // The halves of the one-time key (RFC 8439, section 2.6).
  __device__ __forceinline__ void one_time_key(Block& r, Block& s) const {
    std::uint32_t x[16];
    Block first = last;
    first.words[0] = 0;
    fill(x, key, first);
    run_rounds(x);
    r = {{x[0] + first_row(0), x[1] + first_row(1), x[2] + first_row(2), x[3] + first_row(3)}};
    s = {{x[4] + key[0], x[5] + key[1], x[6] + key[2], x[7] + key[3]}};
  }
};

}  // namespace warpcipher::cuda::chacha
