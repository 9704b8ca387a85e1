// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/units.hpp"

#include "cipher/aes.hpp"
#include "engine/cuda/aes/cipher.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::search::cuda {
namespace {

namespace lane_table = warpcipher::cuda::lane_table;
using warpcipher::cuda::byte_permute;
using Tables = lane_table::Tables64;  // fits every GPU; large ones have room for two blocks

constexpr std::uint32_t threads = AesUnits::threads;

// Whether the key encrypts `in` to the expected block: in full, in constant time, by code that is shared with the host.
// It is slow: for few keys.
template <int KeyWords>
__device__ __noinline__ bool encrypts(const AesUnits& p, const std::uint32_t (&key)[KeyWords]) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(key);
  const auto* const in = reinterpret_cast<const std::uint8_t*>(p.in);
  std::uint32_t out[4];
  aes::encrypt_block(aes::expand_key(bytes, sizeof key), in, reinterpret_cast<std::uint8_t*>(out));
  std::uint32_t differences = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) differences |= (out[i] ^ p.expected[i]) & p.mask[i];
  return differences == 0;
}

// Entry of te0 for byte `Byte` of the word, rotated left by 8 where Table is 1.
template <std::uint32_t Byte, std::uint32_t Table>
__device__ __forceinline__ std::uint32_t look_up(std::uint32_t word, std::uint32_t lane) {
  const std::uint32_t address = byte_permute(word, lane, 0x5504u | Byte << 4);
  return *reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const char*>(lane_table::shared_tables) + address +
                                                 Table * 128u);
}

// SubWord of bytes (B0, B1, B2, B3), in that order: the S-box value is byte 1 of an entry of te0.
template <std::uint32_t B0, std::uint32_t B1, std::uint32_t B2, std::uint32_t B3>
__device__ __forceinline__ std::uint32_t sub_bytes(std::uint32_t word, std::uint32_t lane) {
  const std::uint32_t low = byte_permute(look_up<B0, 0>(word, lane), look_up<B1, 0>(word, lane), 0x5151);
  const std::uint32_t high = byte_permute(look_up<B2, 0>(word, lane), look_up<B3, 0>(word, lane), 0x5151);
  return byte_permute(low, high, 0x5410);
}

__device__ __forceinline__ std::uint32_t column(const std::uint32_t (&s)[4], int c, std::uint32_t lane) {
  const std::uint32_t rows01 = look_up<0, 0>(s[c], lane) ^ look_up<1, 1>(s[(c + 1) % 4], lane);
  const std::uint32_t rows23 = look_up<2, 0>(s[(c + 2) % 4], lane) ^ look_up<3, 1>(s[(c + 3) % 4], lane);
  return rows01 ^ byte_permute(rows23, 0, 0x1032);
}

constexpr std::uint32_t round_constant(int i) {
  std::uint32_t value = 1;
  for (; i > 1; --i) value = value << 1 ^ (value >> 7 != 0 ? 0x11bu : 0u);
  return value;
}

// All words of the schedule, FIPS 197, section 5.2.
template <int KeyWords>
__device__ __forceinline__ void expand(std::uint32_t (&w)[4 * (KeyWords + 7)], const std::uint32_t (&key)[KeyWords],
                                       std::uint32_t lane) {
#pragma unroll
  for (int i = 0; i < KeyWords; ++i) w[i] = key[i];
#pragma unroll
  for (int i = KeyWords; i < 4 * (KeyWords + 7); ++i) {
    std::uint32_t word = w[i - 1];
    if (i % KeyWords == 0) {
      word = sub_bytes<1, 2, 3, 0>(word, lane) ^ round_constant(i / KeyWords);
    } else if (KeyWords > 6 && i % KeyWords == 4) {
      word = sub_bytes<0, 1, 2, 3>(word, lane);
    }
    w[i] = w[i - KeyWords] ^ word;
  }
}

// Encryption. Whether bytes 0 and 13 of the ciphertext are as expected. They depend on column 0 after the next-to-last
// round; the compiler removes all that they do not need.
struct Forwards {
  static constexpr int blocks = 2;  // on a multiprocessor

  __device__ __forceinline__ static void fill() { lane_table::fill_tables<Tables, false>(); }

  template <int KeyWords>
  __device__ __forceinline__ static bool passes_early(const AesUnits& p, const std::uint32_t (&key)[KeyWords],
                                                      std::uint32_t lane) {
    constexpr int rounds = KeyWords + 6;
    std::uint32_t w[4 * (rounds + 1)];
    expand(w, key, lane);
    std::uint32_t s[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) s[c] = p.in[c] ^ w[c];
#pragma unroll
    for (int r = 1; r < rounds; ++r) {
      std::uint32_t next[4];
#pragma unroll
      for (int c = 0; c < 4; ++c) next[c] = column(s, c, lane) ^ w[4 * r + c];
#pragma unroll
      for (int c = 0; c < 4; ++c) s[c] = next[c];
    }
    const std::uint32_t byte0 = look_up<0, 0>(s[0], lane) >> 8 ^ w[4 * rounds] ^ p.expected[0];
    const std::uint32_t byte13 = look_up<1, 0>(s[0], lane) ^ w[4 * rounds + 3] ^ p.expected[3];
    return ((byte0 & 0xffu) | (byte13 & 0xff00u)) == 0;
  }

  template <int KeyWords>
  __device__ __forceinline__ static bool passes(const AesUnits& p, const std::uint32_t (&key)[KeyWords],
                                                std::uint32_t lane) {
    return (!p.early || passes_early(p, key, lane)) && encrypts<KeyWords>(p, key);
  }
};

__device__ __forceinline__ std::uint32_t double_bytes(std::uint32_t x) {  // xtimes of section 4.2
  return (x & 0x7f7f7f7fu) << 1 ^ (x >> 7 & 0x01010101u) * 0x1bu;
}

// InvMixColumns of a word, as MixColumns of (5, 0, 4, 0) times it.
__device__ __forceinline__ std::uint32_t inverse_mix(std::uint32_t x) {
  const std::uint32_t u = x ^ double_bytes(double_bytes(x ^ byte_permute(x, 0, 0x1032)));
  const std::uint32_t rotated = byte_permute(u, 0, 0x0321);
  const std::uint32_t both = u ^ rotated;
  return double_bytes(both) ^ rotated ^ byte_permute(both, 0, 0x1032);
}

// Decryption, for a partly known plaintext: the equivalent inverse cipher (section 5.3.5). It needs td0, and te0 for
// the schedule. It compares all known bits.
struct Backwards {
  static constexpr int blocks = 1;  // the whole schedule is in registers

  __device__ __forceinline__ static void fill() {
    for (std::uint32_t i = threadIdx.x; i < Tables::shared_len / 16; i += blockDim.x) {
      const lane_table::TableZero& source =
          i / 8 % 2 != 0 ? lane_table::decryption_table : lane_table::encryption_table;
      const std::uint32_t value = source.words[i / 16];
      lane_table::shared_tables[i] = make_uint4(value, value, value, value);
    }
  }

  __device__ __forceinline__ static std::uint32_t inverse_column(const std::uint32_t (&s)[4], int c,
                                                                 std::uint32_t lane) {
    return look_up<0, 1>(s[c], lane) ^ byte_permute(look_up<1, 1>(s[(c + 3) % 4], lane), 0, 0x2103) ^
           byte_permute(look_up<2, 1>(s[(c + 2) % 4], lane), 0, 0x1032) ^
           byte_permute(look_up<3, 1>(s[(c + 1) % 4], lane), 0, 0x0321);
  }

  // The inverse S-box value, in each byte: the sum of an entry's bytes, as 0e + 09 + 0d + 0b = 01.
  template <std::uint32_t Byte>
  __device__ __forceinline__ static std::uint32_t inverse_sbox(std::uint32_t word, std::uint32_t lane) {
    const std::uint32_t entry = look_up<Byte, 1>(word, lane);
    const std::uint32_t pairs = entry ^ byte_permute(entry, 0, 0x1032);
    return pairs ^ byte_permute(pairs, 0, 0x0321);
  }

  template <int KeyWords>
  __device__ __forceinline__ static bool passes(const AesUnits& p, const std::uint32_t (&key)[KeyWords],
                                                std::uint32_t lane) {
    constexpr int rounds = KeyWords + 6;
    std::uint32_t w[4 * (rounds + 1)];
    expand(w, key, lane);
    std::uint32_t s[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) s[c] = p.in[c] ^ w[4 * rounds + c];
#pragma unroll
    for (int r = rounds - 1; r > 0; --r) {
      std::uint32_t next[4];
#pragma unroll
      for (int c = 0; c < 4; ++c) next[c] = inverse_column(s, c, lane) ^ inverse_mix(w[4 * r + c]);
#pragma unroll
      for (int c = 0; c < 4; ++c) s[c] = next[c];
    }
    std::uint32_t differences = 0;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const std::uint32_t low =
          byte_permute(inverse_sbox<0>(s[c], lane), inverse_sbox<1>(s[(c + 3) % 4], lane), 0x5140);
      const std::uint32_t high =
          byte_permute(inverse_sbox<2>(s[(c + 2) % 4], lane), inverse_sbox<3>(s[(c + 1) % 4], lane), 0x5140);
      differences |= (byte_permute(low, high, 0x5410) ^ w[c] ^ p.expected[c]) & p.mask[c];
    }
    return differences == 0;
  }
};

template <class Direction, int KeyWords>
__global__ void __launch_bounds__(threads, Direction::blocks) search_kernel(const __grid_constant__ AesUnits p) {
  Direction::fill();
  __syncthreads();
  const std::uint32_t lane = 4 * warpcipher::cuda::lane_index();
  const std::uint32_t unit = blockIdx.x * threads + threadIdx.x;
  if (unit >= p.units) return;
  std::uint32_t key[KeyWords];
#pragma unroll
  for (int i = 0; i < KeyWords; ++i) {
    key[i] = reinterpret_cast<const std::uint32_t*>(p.keys)[std::size_t{unit} * KeyWords + static_cast<std::size_t>(i)];
  }
  const std::uint32_t turns = 1u << p.loops;
#pragma unroll 1
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    if (Direction::passes(p, key, lane)) {
      const std::uint32_t place = atomicAdd(p.hits, 1u);
      if (place < p.capacity) {
        reinterpret_cast<uint4*>(p.hits)[1 + place] = make_uint4(unit, turn ^ turn >> 1, 1, 0);
      }
    }
    const std::uint32_t next = turn + 1;
    if (next < turns) {
      std::uint32_t bit = 0;  // that the Gray code changes next
      while ((next >> bit & 1u) == 0) ++bit;
#pragma unroll
      for (int i = 0; i < KeyWords; ++i) key[i] ^= p.toggles[bit][i];
    }
  }
}

template <class Direction>
auto kernel_of(std::size_t key_len) {
  return key_len == 16   ? &search_kernel<Direction, 4>
         : key_len == 24 ? &search_kernel<Direction, 6>
                         : &search_kernel<Direction, 8>;
}

}  // namespace

void launch_aes_units(const AesUnits& p, std::size_t key_len, bool decrypt, Stream stream) {
  const auto kernel = decrypt ? kernel_of<Backwards>(key_len) : kernel_of<Forwards>(key_len);
  warpcipher::cuda::launch(kernel, {(p.units + threads - 1) / threads, threads, Tables::shared_len}, stream, p);
}

}  // namespace warpcipher::search::cuda
