// SPDX-License-Identifier: Apache-2.0
// yang2007, section 6: AES-128 decryption by blocks, a thread each, by T-tables: with integers, and only with floating
// point, as GPUs had it before 2007. There a state is sixteen floats, and XOR is arithmetic or a table.
//
// Substitutes: the paper reads bytes from textures as floats from 0 to 1 and addresses textures by floats; here
// bytes become floats from 0 to 255 when loaded and indices when looked up. Tables lie in global memory, read through
// the read-only cache, which is what textures are read through. The paper's tables of pairs, which halve its lookups,
// are not here.
//
// Timing: how many cache lines a lookup touches depends on the data. Not constant time.
#include <memory>

#include "core/error.hpp"
#include "tables.hpp"

namespace warpcipher::lab {
namespace {

#if WARPCIPHER_HAS_CUDA

constexpr unsigned rounds = 10;
constexpr std::uint32_t block_threads = 256;

__device__ const std::array<std::uint32_t, 256> global_table = aes::td0;
__device__ const std::array<std::uint8_t, 256> global_inverse_sbox = aes::inverse_sbox;

__device__ __forceinline__ std::size_t thread_number() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }

// ---- integers (section 6.2) -----------------------------------------------------------------------------------------

// Row r of a column: one table, turned; the paper's swizzles do that at no cost.
template <unsigned Row>
__device__ __forceinline__ std::uint32_t row_of(std::uint32_t column) {
  const std::uint32_t word = __ldg(&global_table[column >> (8 * Row) & 0xff]);
  return Row == 0 ? word : __funnelshift_l(word, word, 8 * Row);
}

template <unsigned Row>
__device__ __forceinline__ std::uint32_t last_row_of(std::uint32_t column) {
  return std::uint32_t{__ldg(&global_inverse_sbox[column >> (8 * Row) & 0xff])} << (8 * Row);
}

__global__ void decrypt_integer(const uint4* in, uint4* out, std::size_t count,
                                const __grid_constant__ RoundKeys keys) {
  const std::size_t index = thread_number();
  if (index >= count) return;
  const uint4 text = in[index];
  std::uint32_t s[4] = {text.x ^ keys.words[0], text.y ^ keys.words[1], text.z ^ keys.words[2], text.w ^ keys.words[3]};
#pragma unroll
  for (unsigned round = 1; round <= rounds; ++round) {
    std::uint32_t t[4];
#pragma unroll
    for (unsigned c = 0; c < 4; ++c) {
      const std::uint32_t c1 = s[(c + 3) % 4];
      const std::uint32_t c2 = s[(c + 2) % 4];
      const std::uint32_t c3 = s[(c + 1) % 4];
      t[c] = keys.words[4 * round + c] ^
             (round < rounds ? row_of<0>(s[c]) ^ row_of<1>(c1) ^ row_of<2>(c2) ^ row_of<3>(c3)
                             : last_row_of<0>(s[c]) ^ last_row_of<1>(c1) ^ last_row_of<2>(c2) ^ last_row_of<3>(c3));
    }
#pragma unroll
    for (unsigned c = 0; c < 4; ++c) s[c] = t[c];
  }
  out[index] = make_uint4(s[0], s[1], s[2], s[3]);
}

// ---- floating point only (section 6.1) ------------------------------------------------------------------------------

// How a processor without integers adds bytes in GF(2) (Table 3).
enum class Xor { arithmetic, table256, table16, hybrid };

// Tables of XOR in device memory: 256 x 256 bytes, then 16 x 16.
constexpr std::size_t table16_at = 256 * 256;
constexpr std::size_t tables_len = table16_at + 16 * 16;

// Bit by bit: 1 where the bits differ, times what the bit counts.
template <int Bits>
__device__ __forceinline__ float xor_by_arithmetic(float a, float b) {
  float sum = 0;
#pragma unroll
  for (int bit = Bits - 1; bit >= 0; --bit) {
    const auto weight = static_cast<float>(1 << bit);
    const float x = a >= weight ? weight : 0.0f;
    const float y = b >= weight ? weight : 0.0f;
    a -= x;
    b -= y;
    sum += fabsf(x - y);
  }
  return sum;
}

__device__ __forceinline__ float looked_up(const std::uint8_t* table, float row, float column, float width) {
  return static_cast<float>(__ldg(&table[static_cast<unsigned>(row * width + column)]));
}

// a and b: whole numbers from 0 to 255.
template <Xor How>
__device__ __forceinline__ float xor_of(float a, float b, const std::uint8_t* tables) {
  if constexpr (How == Xor::arithmetic) return xor_by_arithmetic<8>(a, b);
  if constexpr (How == Xor::table256) return looked_up(tables, a, b, 256.0f);
  const float a_high = floorf(a / 16.0f);
  const float b_high = floorf(b / 16.0f);
  const float a_low = a - 16.0f * a_high;
  const float b_low = b - 16.0f * b_high;
  const float high = looked_up(tables + table16_at, a_high, b_high, 16.0f);
  if constexpr (How == Xor::hybrid) return 16.0f * high + xor_by_arithmetic<4>(a_low, b_low);
  return 16.0f * high + looked_up(tables + table16_at, a_low, b_low, 16.0f);
}

__device__ __forceinline__ float byte_of(std::uint32_t word, unsigned i) {
  return static_cast<float>(word >> (8 * i) & 0xff);
}

template <Xor How>
__global__ void decrypt_float(const uint4* in, uint4* out, std::size_t count, const __grid_constant__ RoundKeys keys,
                              const std::uint8_t* tables) {
  const std::size_t index = thread_number();
  if (index >= count) return;
  const uint4 text = in[index];
  const std::uint32_t words[4] = {text.x, text.y, text.z, text.w};
  float s[4][4];
#pragma unroll
  for (unsigned c = 0; c < 4; ++c) {
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) s[c][i] = xor_of<How>(byte_of(words[c], i), byte_of(keys.words[c], i), tables);
  }
#pragma unroll 1
  for (unsigned round = 1; round <= rounds; ++round) {
    float t[4][4];
#pragma unroll
    for (unsigned c = 0; c < 4; ++c) {
      const std::uint32_t key = keys.words[4 * round + c];
      if (round < rounds) {
        std::uint32_t rows[4];
#pragma unroll
        for (unsigned r = 0; r < 4; ++r) {
          rows[r] = __ldg(&global_table[static_cast<unsigned>(s[(c + 3 * r) % 4][r])]);
        }
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
          float sum = byte_of(key, i);
#pragma unroll
          for (unsigned r = 0; r < 4; ++r) sum = xor_of<How>(sum, byte_of(rows[r], (i + 4 - r) % 4), tables);
          t[c][i] = sum;
        }
      } else {
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
          const std::uint8_t substituted = __ldg(&global_inverse_sbox[static_cast<unsigned>(s[(c + 3 * i) % 4][i])]);
          t[c][i] = xor_of<How>(byte_of(key, i), static_cast<float>(substituted), tables);
        }
      }
    }
#pragma unroll
    for (unsigned c = 0; c < 4; ++c) {
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) s[c][i] = t[c][i];
    }
  }
  std::uint32_t results[4] = {};
#pragma unroll
  for (unsigned c = 0; c < 4; ++c) {
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) results[c] |= static_cast<std::uint32_t>(s[c][i]) << (8 * i);
  }
  out[index] = make_uint4(results[0], results[1], results[2], results[3]);
}

// Additions only (Table 3). Thread t starts with a = t % 256 and b = t / 256 % 256; each turn adds b to a and counts b
// up by 37. Its result is a.
template <Xor How>
__global__ void add_bytes(std::uint32_t* out, std::uint32_t xors, const std::uint8_t* tables) {
  const auto thread = static_cast<std::uint32_t>(thread_number());
  auto a = static_cast<float>(thread % 256);
  auto b = static_cast<float>(thread / 256 % 256);
#pragma unroll 4
  for (std::uint32_t i = 0; i < xors; ++i) {
    a = xor_of<How>(a, b, tables);
    b += 37.0f;
    if (b >= 256.0f) b -= 256.0f;
  }
  out[thread] = static_cast<std::uint32_t>(a);
}

// ---- their jobs -----------------------------------------------------------------------------------------------------

std::shared_ptr<const DeviceMemory> xor_tables(const Setting& setting) {
  std::vector<std::uint8_t> tables(tables_len);
  for (unsigned i = 0; i < 256 * 256; ++i) tables[i] = static_cast<std::uint8_t>(i / 256 ^ i % 256);
  for (unsigned i = 0; i < 16 * 16; ++i) tables[table16_at + i] = static_cast<std::uint8_t>(i / 16 ^ i % 16);
  return std::make_shared<const DeviceMemory>(setting.device, tables.data(), tables_len);
}

Job by_integers(const Setting& setting) {
  return kernel_job({setting, decrypt_integer, block_threads, 0},
                    [keys = ecb_keys<true>(setting)](const Launch& launch, const Data& data, Stream stream) {
                      check_blocks(data);
                      const std::size_t count = data.in_len / 16;
                      launch(decrypt_integer, count, stream, reinterpret_cast<const uint4*>(data.in),
                             reinterpret_cast<uint4*>(data.out), count, *keys);
                    });
}

template <Xor How>
Job by_floats(const Setting& setting) {
  return kernel_job({setting, decrypt_float<How>, block_threads, 0},
                    [keys = ecb_keys<true>(setting), tables = xor_tables(setting)](const Launch& launch,
                                                                                   const Data& data, Stream stream) {
                      check_blocks(data);
                      const std::size_t count = data.in_len / 16;
                      launch(decrypt_float<How>, count, stream, reinterpret_cast<const uint4*>(data.in),
                             reinterpret_cast<uint4*>(data.out), count, *keys, tables->as<const std::uint8_t>());
                    });
}

template <Xor How>
Job xors(const Setting& setting) {
  check_len("key", setting.key.size(), {0});
  check_len("iv", setting.iv.size(), {0});
  const auto turns = static_cast<std::uint32_t>(setting.parameters.take("xors", 1024, 1, 1 << 30));
  return kernel_job({setting, add_bytes<How>, block_threads, 0},
                    [turns, tables = xor_tables(setting)](const Launch& launch, const Data& data, Stream stream) {
                      launch(add_bytes<How>, whole_blocks_of_words(data, block_threads), stream,
                             reinterpret_cast<std::uint32_t*>(data.out), turns, tables->as<const std::uint8_t>());
                    });
}

#endif

}  // namespace

std::vector<Variant> yang2007_blocks() {
  return {
      WARPCIPHER_LAB_GPU("block-integer", "AES-128 ECB decryption by T-table (section 6.2)", false, by_integers),
      WARPCIPHER_LAB_GPU("block-alu", "the same in floating point, XOR by arithmetic (section 6.1)", false,
                         by_floats<Xor::arithmetic>),
      WARPCIPHER_LAB_GPU("block-256", "XOR by a table of 256 x 256", false, by_floats<Xor::table256>),
      WARPCIPHER_LAB_GPU("block-16", "XOR by a table of 16 x 16, half by half", false, by_floats<Xor::table16>),
      WARPCIPHER_LAB_GPU("block-hybrid", "XOR half by table, half by arithmetic", false, by_floats<Xor::hybrid>),
      WARPCIPHER_LAB_GPU("xor-alu", "Table 3: XOR in floating point, by arithmetic", true, xors<Xor::arithmetic>),
      WARPCIPHER_LAB_GPU("xor-256", "Table 3: by a table of 256 x 256", false, xors<Xor::table256>),
      WARPCIPHER_LAB_GPU("xor-16", "Table 3: by a table of 16 x 16", false, xors<Xor::table16>),
      WARPCIPHER_LAB_GPU("xor-hybrid", "Table 3: half by table, half by arithmetic", false, xors<Xor::hybrid>),
      {"block-cpu", "T-tables on one CPU thread (section 6)", false, false, one_thread_ecb<true>},
  };
}

}  // namespace warpcipher::lab
