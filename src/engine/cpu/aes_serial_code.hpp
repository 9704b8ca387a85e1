// SPDX-License-Identifier: Apache-2.0
// Serial modes of AES: a block of each of up to eight messages at a time. All of it is in an unnamed namespace, for the
// reason that cipher/simd/128.hpp gives.
#pragma once

#include "engine/cpu/aes_rounds.hpp"
#include "engine/cpu/lanes.hpp"

namespace warpcipher::cpu {
namespace {

inline __m128i load_aligned(const std::uint8_t* p) { return _mm_load_si128(reinterpret_cast<const __m128i*>(p)); }

// Added to E(x) to make the next x of a lane: the first round key, and in CBC the next text or in CFB this one.
// The last round adds it with its own key, so that a block waits for nothing but the rounds of the one before: one
// message of CBC gains 4%.
template <SerialMode Mode>
__m128i next_of(const SerialLanes& state, std::size_t l, std::size_t at) {
  const __m128i key = load_aligned(state.round_keys[0][l]);
  if constexpr (Mode == SerialMode::ofb) return key;
  return _mm_xor_si128(key, load_block(state.in[l] + (Mode == SerialMode::cbc ? at + 16 : at)));
}

template <SerialMode Mode, std::size_t Lanes>
void run_lanes(int rounds, SerialLanes& state, std::size_t blocks) {
  __m128i x[Lanes];
  for (std::size_t l = 0; l < Lanes; ++l) {
    x[l] = _mm_xor_si128(load_aligned(state.chain[l]), load_aligned(state.round_keys[0][l]));
    if (Mode == SerialMode::cbc) x[l] = _mm_xor_si128(x[l], load_block(state.in[l]));
  }
  const auto run_rounds = [&] {
    for (int r = 1; r < rounds; ++r) {
      for (std::size_t l = 0; l < Lanes; ++l) x[l] = _mm_aesenc_si128(x[l], load_aligned(state.round_keys[r][l]));
    }
  };
  const std::size_t last = 16 * (blocks - 1);
  for (std::size_t at = 0; at < last; at += 16) {
    run_rounds();
    for (std::size_t l = 0; l < Lanes; ++l) {
      const __m128i next = next_of<Mode>(state, l, at);
      x[l] = _mm_aesenclast_si128(x[l], _mm_xor_si128(load_aligned(state.round_keys[rounds][l]), next));
      __m128i made = _mm_xor_si128(x[l], Mode == SerialMode::cbc ? next : load_aligned(state.round_keys[0][l]));
      if (Mode == SerialMode::ofb) made = _mm_xor_si128(made, load_block(state.in[l] + at));
      store_block(state.out[l] + at, made);
    }
  }
  run_rounds();
  for (std::size_t l = 0; l < Lanes; ++l) {
    x[l] = _mm_aesenclast_si128(x[l], load_aligned(state.round_keys[rounds][l]));
    const __m128i made = Mode == SerialMode::cbc ? x[l] : _mm_xor_si128(x[l], load_block(state.in[l] + last));
    store_block(state.chain[l], Mode == SerialMode::ofb ? x[l] : made);
    store_block(state.out[l] + last, made);
  }
}

using Run = void (*)(int, SerialLanes&, std::size_t);

template <SerialMode Mode>
constexpr Run runs[SerialLanes::most] = {run_lanes<Mode, 1>, run_lanes<Mode, 2>, run_lanes<Mode, 3>,
                                         run_lanes<Mode, 4>, run_lanes<Mode, 5>, run_lanes<Mode, 6>,
                                         run_lanes<Mode, 7>, run_lanes<Mode, 8>};

void run(SerialMode mode, int rounds, SerialLanes& state, std::size_t lanes, std::size_t blocks) {
  switch (mode) {
    case SerialMode::cbc: return runs<SerialMode::cbc>[lanes - 1](rounds, state, blocks);
    case SerialMode::cfb: return runs<SerialMode::cfb>[lanes - 1](rounds, state, blocks);
    case SerialMode::ofb: return runs<SerialMode::ofb>[lanes - 1](rounds, state, blocks);
  }
}

// One message, its round keys in registers: nothing but the rounds lies between two blocks.
template <SerialMode Mode, int Rounds>
void run_one(SerialLanes& state, std::uint8_t* out, std::size_t blocks) {
  const std::uint8_t* in = state.in[0];
  __m128i keys[Rounds + 1];
  for (int r = 0; r <= Rounds; ++r) keys[r] = load_aligned(state.round_keys[r][0]);
  __m128i x = _mm_xor_si128(load_aligned(state.chain[0]), keys[0]), made;
  if (Mode == SerialMode::cbc) x = _mm_xor_si128(x, load_block(in));
  const auto run_rounds = [&] {
#pragma GCC unroll 13
    for (int r = 1; r < Rounds; ++r) x = _mm_aesenc_si128(x, keys[r]);
  };
  for (; blocks > 1; --blocks, in += 16, out += 16) {
    run_rounds();
    // See next_of().
    __m128i next = keys[0];
    if (Mode != SerialMode::ofb) next = _mm_xor_si128(next, load_block(Mode == SerialMode::cbc ? in + 16 : in));
    x = _mm_aesenclast_si128(x, _mm_xor_si128(keys[Rounds], next));
    made = _mm_xor_si128(x, Mode == SerialMode::cbc ? next : keys[0]);
    if (Mode == SerialMode::ofb) made = _mm_xor_si128(made, load_block(in));
    store_block(out, made);
  }
  run_rounds();
  x = _mm_aesenclast_si128(x, keys[Rounds]);
  made = Mode == SerialMode::cbc ? x : _mm_xor_si128(x, load_block(in));
  store_block(state.chain[0], Mode == SerialMode::ofb ? x : made);
  store_block(out, made);
  forget(keys, sizeof keys);
}

template <SerialMode Mode>
void run_one(int rounds, SerialLanes& state, std::uint8_t* out, std::size_t blocks) {
  if (rounds == 10) return run_one<Mode, 10>(state, out, blocks);
  if (rounds == 12) return run_one<Mode, 12>(state, out, blocks);
  run_one<Mode, 14>(state, out, blocks);
}

void run_alone(SerialMode mode, int rounds, SerialLanes& state, std::uint8_t* out, std::size_t blocks) {
  switch (mode) {
    case SerialMode::cbc: return run_one<SerialMode::cbc>(rounds, state, out, blocks);
    case SerialMode::cfb: return run_one<SerialMode::cfb>(rounds, state, out, blocks);
    case SerialMode::ofb: return run_one<SerialMode::ofb>(rounds, state, out, blocks);
  }
}

void expand_serial_key(const std::uint8_t* key, std::size_t key_len, std::uint8_t (&round_keys)[15][16]) {
  expand_aes_key(key, key_len / 4, round_keys);
}

constexpr SerialCode serial_aes{expand_serial_key, run, run_alone};

}  // namespace
}  // namespace warpcipher::cpu
