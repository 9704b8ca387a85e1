// SPDX-License-Identifier: Apache-2.0
#include "cipher/des.hpp"
#include "engine/cuda/aes/serial.cuh"
#include "engine/cuda/des/launches.hpp"
#include "engine/cuda/inputs/keys.hpp"
#include "engine/cuda/runtime/block.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::lane_table {

// DES by lane tables, for the serial modes: there a lane has only one block at a time, so bitslicing would waste its
// work. Each S-box and the permutation P after it are one table of 64 words; as in table_layout.hpp every lane has its
// own copy in its own bank, so the time depends on nothing secret. Four planes of 16 KiB, with two S-boxes each:
//
//   row x    bytes 0..127: S1[x] for lanes 0 to 31    bytes 128..255: S2[x] for lanes 0 to 31       (plane 0)
//            S3, S4 (plane 1); S5, S6 (plane 2); S7, S8 (plane 3)
//
// The expansion E gives S-box s (from 1) the six bits that start at bit 4 s - 4 of R, the bit before its own four. R
// rotated left by 29 has those of S1, S3, S5, S7 as the low six bits of bytes 3, 2, 1, 0; rotated left by 1, those of
// S2, S4, S6, S8.
struct DesTables {
  static constexpr std::uint32_t shared_len = 65536;
};

struct DesBoxes {
  std::uint32_t words[8][64];
};

// boxes.words[s][x] = P(S_s+1(x) in its place).
constexpr DesBoxes make_des_boxes() {
  DesBoxes boxes{};
  for (std::uint32_t s = 0; s < 8; ++s) {
    for (std::uint32_t x = 0; x < 64; ++x) {
      const std::uint32_t four = des::sboxes[s][(x >> 4 & 2) | (x & 1)][x >> 1 & 15];
      const std::uint32_t substituted = four << (28 - 4 * s);
      std::uint32_t permuted = 0;
      for (const std::uint8_t bit : des::round_permutation) permuted = permuted << 1 | (substituted >> (32 - bit) & 1u);
      boxes.words[s][x] = permuted;
    }
  }
  return boxes;
}

extern __shared__ uint4 shared_tables[];

static __device__ const DesBoxes des_boxes = make_des_boxes();

__device__ __forceinline__ void fill_des_tables() {
  for (std::uint32_t i = threadIdx.x; i < DesTables::shared_len / 16; i += blockDim.x) {
    const std::uint32_t plane = i / 1024;
    const std::uint32_t row = i / 16 % 64;
    const std::uint32_t value = des_boxes.words[2 * plane + i / 8 % 2][row];
    shared_tables[i] = make_uint4(value, value, value, value);
  }
}

// Exchanges the bits of `a` under `mask << shift` with the bits of `b` under `mask`.
__device__ __forceinline__ void exchange_bits(std::uint32_t& a, std::uint32_t& b, std::uint32_t shift,
                                              std::uint32_t mask) {
  const std::uint32_t difference = ((a >> shift) ^ b) & mask;
  b ^= difference;
  a ^= difference << shift;
}

// Key: `uint2 round(int r) const` gives the subkey of round r of all passes: x the bits of S1, S3, S5, S7 as the low
// six of bytes 3, 2, 1, 0; y the bits of S2, S4, S6, S8.
template <class Key>
struct SerialDes {
  static constexpr std::uint32_t block_len = 8;

  Key key;
  std::uint32_t rounds;  // 16 or 48

  // Encrypts words[0] and words[1], loaded little-endian; the other words of the result are zeros.
  __device__ __forceinline__ Block operator()(const Block& block) const {
    const std::uint32_t lane = 4 * lane_index();
    std::uint32_t left = byte_swap(block.words[0]);
    std::uint32_t right = byte_swap(block.words[1]);
    exchange_bits(left, right, 4, 0x0f0f0f0fu);  // IP: a transposition of the 8 x 8 bits, in five exchanges
    exchange_bits(left, right, 16, 0x0000ffffu);
    exchange_bits(right, left, 2, 0x33333333u);
    exchange_bits(right, left, 8, 0x00ff00ffu);
    exchange_bits(left, right, 1, 0x55555555u);
    uint2 first = key.round(0);
    uint2 second = key.round(1);
#pragma unroll 1
    for (std::uint32_t pass = 0; pass < rounds; pass += 16) {
#pragma unroll 2  // so that subkeys need not be moved between registers
      for (std::uint32_t r = 0; r < 16; r += 2) {
        const uint2 this_round = first;
        const uint2 next_round = second;
        if (r + 2 < 16 || pass + 16 < rounds) {  // two rounds ahead: with many keys, subkeys are in the L2 cache
          first = key.round(pass + r + 2);
          second = key.round(pass + r + 3);
        }
        left ^= substitute(right, this_round, lane);
        right ^= substitute(left, next_round, lane);
      }
      const std::uint32_t half = left;  // the halves are exchanged after the last round of a pass
      left = right;
      right = half;
    }
    exchange_bits(left, right, 1, 0x55555555u);  // IP's inverse
    exchange_bits(right, left, 8, 0x00ff00ffu);
    exchange_bits(right, left, 2, 0x33333333u);
    exchange_bits(left, right, 16, 0x0000ffffu);
    exchange_bits(left, right, 4, 0x0f0f0f0fu);
    return {{byte_swap(left), byte_swap(right), 0, 0}};
  }

 private:
  template <std::uint32_t Byte, std::uint32_t Box>
  static __device__ __forceinline__ std::uint32_t look_up(std::uint32_t word, std::uint32_t lane) {
    const std::uint32_t address = byte_permute(word, lane, 0x5504u | Byte << 4);
    return *reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const char*>(shared_tables) + address +
                                                   (Box / 2 * 16384u + Box % 2 * 128u));
  }

  static __device__ __forceinline__ std::uint32_t substitute(std::uint32_t right, const uint2& subkey,
                                                             std::uint32_t lane) {
    const std::uint32_t odd = (rotate_left(right, 29) ^ subkey.x) & 0x3f3f3f3fu;  // S1, S3, S5, S7
    const std::uint32_t even = (rotate_left(right, 1) ^ subkey.y) & 0x3f3f3f3fu;  // S2, S4, S6, S8
    return look_up<3, 0>(odd, lane) ^ look_up<3, 1>(even, lane) ^ look_up<2, 2>(odd, lane) ^ look_up<2, 3>(even, lane) ^
           look_up<1, 4>(odd, lane) ^ look_up<1, 5>(even, lane) ^ look_up<0, 6>(odd, lane) ^ look_up<0, 7>(even, lane);
  }
};

namespace {

struct LaneKey {
  const uint2* words;
  __device__ __forceinline__ uint2 round(std::uint32_t r) const { return __ldg(words + warp_len * r); }
};

struct SerialParameters {
  const MessageView* views;
  const std::uint32_t* order;
  const uint2* subkeys;
  std::uint32_t messages;
  std::uint32_t rounds;
  bool one_key;
  Feedback feedback;
};

__global__ void __launch_bounds__(block_threads, 1) serial_des_kernel(const __grid_constant__ SerialParameters batch) {
  fill_des_tables();
  __syncthreads();
  for_each_group(batch.messages, [&](std::uint32_t first) {
    const std::uint32_t own = first + lane_index();
    if (own >= batch.messages) return;
    const LaneKey key{batch.subkeys + (batch.one_key ? 0 : std::size_t{first} * batch.rounds + lane_index())};
    const MessageView& view = batch.views[batch.order != nullptr ? batch.order[own] : own];
    run_message(SerialDes<LaneKey>{key, batch.rounds}, batch.feedback, view, 0, view.start);
  });
}

}  // namespace

void run_serial_batch(const Device& device, Stream stream, Mode mode, const SerialDesBatch& batch) {
  LaunchConfiguration configuration = serial_configuration(device, batch.messages, block_threads / warp_len);
  configuration.shared_len = DesTables::shared_len;
  const DesSchedules& schedules = batch.schedules;
  launch(&serial_des_kernel, configuration, stream,
         SerialParameters{batch.views, batch.order, schedules.subkeys(), batch.messages, schedules.rounds(),
                          schedules.of_one_key(), feedback_of(mode)});
}

}  // namespace warpcipher::cuda::lane_table
