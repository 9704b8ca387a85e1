// SPDX-License-Identifier: Apache-2.0
// R. Macha Billava, "AES Acceleration with GPU", 2022: a byte a thread, with Galois products computed, against naive
// code of one CPU thread. AES-128 in ECB and CTR; AES-256, future work there, is here too.
//
// As in the paper, each thread computes one element of the state: 16 threads a cipher block, 2 cipher blocks a warp.
// S-box, round keys, text, result, the amounts of ShiftRows and the matrix of MixColumns lie in shared memory, copied
// there by all threads of the block. The paper's grid covers the text once; so does this one.
//
// Substitutes: the paper relies on a warp that runs in step; since Volta that takes __syncwarp(). The paper says
// neither how it counts nor where carries go: here each thread adds the block's number to the 128-bit counter.
//
// Timing: S-box lookups in shared memory (and in the CPU's cache) collide according to the data. Not constant time.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "cipher/aes_reference.hpp"
#include "cipher/aes_tables.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/host_device.hpp"
#include "core/wipe.hpp"
#include "gpu.cuh"
#include "lab.hpp"

namespace warpcipher::lab {
namespace {

// ---- MixColumns (section 3.1) ---------------------------------------------------------------------------------------

// The product in GF(2^8) with 1, 2 or 3.
WARPCIPHER_HD constexpr unsigned galois_product(unsigned factor, unsigned x) {
  const unsigned doubled = (x << 1 ^ 0x1bu * (x >> 7)) & 0xff;
  return (factor & 2 ? doubled : 0) ^ (factor & 1 ? x : 0);
}

// Element i of the matrix, column by column. The first column is 2 1 1 3; each further one is turned down by a row.
WARPCIPHER_HD constexpr std::uint8_t matrix_element(unsigned i) {
  const unsigned turned = (i % 4 + 4 - i / 4) % 4;
  return turned == 0 ? 2 : turned == 3 ? 3 : 1;
}

// ---- key expansion (sections 3.1 and 3.2) ---------------------------------------------------------------------------

void expand_plain(const std::uint8_t* key, std::size_t key_len, std::uint8_t* round_keys) {
  const aes::reference::Schedule schedule = aes::reference::expand_key(key, key_len);
  std::memcpy(round_keys, schedule.bytes, 16 * (static_cast<std::size_t>(schedule.rounds) + 1));
}

#ifdef _OPENMP
// The bytes of position `column` in the `count` words from word `first` on. Word w depends on bytes of other positions
// only where w is the first of a round: there of the word before, which every section has finished.
void expand_column(std::uint8_t* round_keys, std::size_t key_words, std::size_t first, std::size_t count,
                   std::size_t column, std::uint8_t round_constant) {
  for (std::size_t w = first; w < first + count; ++w) {
    std::uint8_t temp = round_keys[4 * (w - 1) + column];
    if (w % key_words == 0) {
      temp = aes::sbox[round_keys[4 * (w - 1) + (column + 1) % 4]];
      if (column == 0) temp = static_cast<std::uint8_t>(temp ^ round_constant);
    } else if (key_words == 8 && w % 8 == 4) {
      temp = aes::sbox[temp];
    }
    round_keys[4 * w + column] = static_cast<std::uint8_t>(round_keys[4 * (w - key_words) + column] ^ temp);
  }
}

// A section for each of the four columns, and a barrier after each round.
void expand_openmp(const std::uint8_t* key, std::size_t key_len, std::uint8_t* round_keys) {
  const std::size_t key_words = key_len / 4;
  const std::size_t words = 4 * (key_words + 7);
  std::memcpy(round_keys, key, key_len);
#pragma omp parallel num_threads(4)
  {
    std::uint8_t round_constant = 1;
    for (std::size_t first = key_words; first < words; first += key_words) {
      const std::size_t count = std::min(key_words, words - first);
#pragma omp sections
      {
#pragma omp section
        expand_column(round_keys, key_words, first, count, 0, round_constant);
#pragma omp section
        expand_column(round_keys, key_words, first, count, 1, round_constant);
#pragma omp section
        expand_column(round_keys, key_words, first, count, 2, round_constant);
#pragma omp section
        expand_column(round_keys, key_words, first, count, 3, round_constant);
      }
      round_constant = aes::multiply(round_constant, 2);
    }
  }
}
#endif

using Expansion = void (*)(const std::uint8_t* key, std::size_t key_len, std::uint8_t* round_keys);

// out: the round keys.
template <Expansion Expand>
Job key_expansion(const Setting& setting) {
  check_len("key", setting.key.size(), {16, 32});
  check_len("iv", setting.iv.size(), {0});
  return host_job([key = std::make_shared<const SecretBytes>(setting.key)](const Data& data) {
    check_len("out", data.out_len, {key->size() == 16 ? std::size_t{176} : std::size_t{240}});
    Expand(key->data(), key->size(), data.out);
  });
}

// ---- the naive cipher (section 3.1) ---------------------------------------------------------------------------------

// The key of both ciphers. An iv makes it CTR.
struct KernelKey {
  std::uint8_t round_keys[240];
  std::uint8_t counter[16];
  int rounds;
  bool ctr;
};

Secret<KernelKey> key_of(const Setting& setting) {
  check_len("key", setting.key.size(), {16, 32});
  check_len("iv", setting.iv.size(), {0, 16});
  Secret<KernelKey> key;
  expand_plain(setting.key.data(), setting.key.size(), key->round_keys);
  key->rounds = static_cast<int>(setting.key.size() / 4) + 6;
  key->ctr = !setting.iv.empty();
  if (key->ctr) std::memcpy(key->counter, setting.iv.data(), 16);
  return key;
}

// The steps on one state, column by column; the same products as the kernel's.
void add_round_key(std::uint8_t* state, const std::uint8_t* round_key) { xor_bytes(state, state, round_key, 16); }

void substitute_bytes(std::uint8_t* state) {
  for (int i = 0; i < 16; ++i) state[i] = aes::sbox[state[i]];
}

void shift_rows(std::uint8_t* state) {
  std::uint8_t old[16];
  std::memcpy(old, state, 16);
  for (unsigned i = 0; i < 16; ++i) state[i] = old[(i + 4 * (i % 4)) % 16];
}

void mix_columns(std::uint8_t* state) {
  for (unsigned column = 0; column < 16; column += 4) {
    std::uint8_t mixed[4];
    for (unsigned row = 0; row < 4; ++row) {
      unsigned sum = 0;
      for (unsigned k = 0; k < 4; ++k) sum ^= galois_product(matrix_element(4 * k + row), state[column + k]);
      mixed[row] = static_cast<std::uint8_t>(sum);
    }
    std::memcpy(state + column, mixed, 4);
  }
}

void encrypt_block(const KernelKey& key, std::uint8_t* state) {
  add_round_key(state, key.round_keys);
  for (int round = 1; round <= key.rounds; ++round) {
    substitute_bytes(state);
    shift_rows(state);
    if (round < key.rounds) mix_columns(state);
    add_round_key(state, key.round_keys + 16 * round);
  }
}

// One block after the other, a function for each step.
Job naive(const Setting& setting) {
  return host_job([key = key_of(setting)](const Data& data) {
    check_blocks(data);
    std::uint8_t counter[16];
    std::memcpy(counter, key->counter, 16);
    for (std::size_t i = 0; i < data.in_len; i += 16) {
      std::uint8_t state[16];
      std::memcpy(state, key->ctr ? counter : data.in + i, 16);
      encrypt_block(*key, state);
      if (key->ctr) {
        xor_bytes(state, state, data.in + i, 16);
        add_be128(counter, 1);
      }
      std::memcpy(data.out + i, state, 16);
    }
  });
}

// ---- the kernel (section 3.3) ---------------------------------------------------------------------------------------

#if WARPCIPHER_HAS_CUDA

__device__ const std::array<std::uint8_t, 256> global_sbox = aes::sbox;

// Offsets in shared memory. Text and result follow, a byte a thread each.
constexpr unsigned sbox_at = 0;
constexpr unsigned round_keys_at = sbox_at + 256;
constexpr unsigned galois_at = round_keys_at + 240;
constexpr unsigned shift_at = galois_at + 16;
constexpr unsigned text_at = shift_at + 16;

constexpr std::size_t shared_len(std::uint32_t threads) { return text_at + 2 * threads; }

// Byte `place` of counter + block.
__device__ inline std::uint8_t counter_byte(const std::uint8_t* counter, std::uint64_t block, unsigned place) {
  const std::uint64_t before = load_be64(counter + 8);
  const std::uint64_t low = before + block;
  const std::uint64_t high = load_be64(counter) + (low < before ? 1 : 0);
  return static_cast<std::uint8_t>((place < 8 ? high : low) >> (56 - 8 * (place % 8)));
}

__global__ void encrypt(const std::uint8_t* in, std::uint8_t* out, std::size_t len,
                        const __grid_constant__ KernelKey key) {
  auto* const shared = reinterpret_cast<std::uint8_t*>(shared_memory);
  std::uint8_t* const text = shared + text_at;
  std::uint8_t* const result = text + blockDim.x;
  const unsigned thread = threadIdx.x;
  const std::size_t index = std::size_t{blockIdx.x} * blockDim.x + thread;
  const bool active = index < len;  // the text may end inside the block; its threads still take part in each step

  for (unsigned i = thread; i < 256; i += blockDim.x) shared[sbox_at + i] = global_sbox[i];
  for (unsigned i = thread; i < 16 * (static_cast<unsigned>(key.rounds) + 1); i += blockDim.x) {
    shared[round_keys_at + i] = key.round_keys[i];
  }
  if (thread < 16) {
    shared[galois_at + thread] = matrix_element(thread);
    shared[shift_at + thread] = static_cast<std::uint8_t>(thread % 4);
  }
  const std::uint8_t plain = active ? in[index] : std::uint8_t{0};
  const unsigned row = thread % 4;
  const unsigned column = thread / 4 % 4;
  text[thread] = key.ctr ? counter_byte(key.counter, index / 16, thread % 16) : plain;
  __syncthreads();

  const unsigned block = thread / 16 * 16;  // where this cipher block starts
  const unsigned shift = shared[shift_at + thread % 16];
  text[thread] ^= shared[round_keys_at + thread % 16];
  __syncwarp();
  for (int round = 1; round <= key.rounds; ++round) {
    // SubBytes and ShiftRows: the element comes from the same row, `shift` columns on.
    const std::uint8_t substituted = shared[sbox_at + text[block + (column + shift) % 4 * 4 + row]];
    result[thread] = substituted;
    __syncwarp();
    unsigned element = substituted;
    if (round < key.rounds) {
      element = 0;
      for (unsigned k = 0; k < 4; ++k) {
        element ^= galois_product(shared[galois_at + 4 * k + row], result[block + 4 * column + k]);
      }
    }
    text[thread] = static_cast<std::uint8_t>(element ^ shared[round_keys_at + 16 * round + thread % 16]);
    __syncwarp();
  }
  if (active) out[index] = key.ctr ? text[thread] ^ plain : text[thread];
}

Job parallel(const Setting& setting) {
  const auto threads = static_cast<std::uint32_t>(setting.parameters.take("threads", 512, 32, 1024, 32));
  return kernel_job({setting, encrypt, threads, shared_len(threads)},
                    [key = key_of(setting)](const Launch& launch, const Data& data, Stream stream) {
                      check_blocks(data);
                      launch(encrypt, data.in_len, stream, data.in, data.out, data.in_len, *key);
                    });
}

#endif

}  // namespace

std::vector<Variant> billava2022() {
  constexpr std::string_view sections = "key expansion, each column an OpenMP section (section 3.2)";
  return {
      {"naive", "one CPU thread, a function for each step (section 3.1)", false, false, naive},
      WARPCIPHER_LAB_GPU("kernel", "a byte a thread, Galois products computed (section 3.3)", false, parallel),
      {"key-plain", "key expansion by one CPU thread (section 3.1)", false, false, key_expansion<expand_plain>},
#ifdef _OPENMP
      {"key-openmp", sections, false, false, key_expansion<expand_openmp>},
#else
      {"key-openmp", sections, false, false, {}, "this build has no OpenMP"},
#endif
  };
}

}  // namespace warpcipher::lab
