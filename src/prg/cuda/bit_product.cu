// SPDX-License-Identifier: Apache-2.0
// The sum over GF(2) of a table's records for up to 64 keys at once, as a product of bit matrices on tensor cores: the
// one-bit instruction counts the ones of A & B, and the parity of the count is the sum.
//
//   A: bits of the table's columns x records        B: records x keys, the shares
//
// A block of threads takes 64 bytes of each record, 512 records a step, which are copied to a ring in shared memory in
// the background. A holds 32 records of a column's bit in a word, and the table 32 bits of a record: a lane transposes
// 32 x 32 bits, and puts them where the warps that multiply read them. That is for the step after the one that is
// multiplied; of the two warps of a scheduler one transposes first and the other multiplies first, so that both pipes
// work. Records of a step have any order, if the shares have the same: lane 4 g + t multiplies records 128 t to
// 128 t + 127 of word g of the columns, in four groups 4 t + 2 c + e of 32, the half e of product c.
#include "prg/cuda/bit_product.hpp"

#include <algorithm>

#include "cipher/lut3.hpp"
#include "engine/cuda/ghash/instructions.cuh"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::prg::cuda {

extern __shared__ uint4 shared_product[];

namespace {

using namespace ::warpcipher::cuda::ghash;
using ::warpcipher::cuda::byte_permute, ::warpcipher::cuda::lane_index, ::warpcipher::cuda::warp_index,
    ::warpcipher::cuda::warp_len;

constexpr std::uint32_t threads = 256;
constexpr std::uint32_t step_records = 512, strip_len = 64, step_shares_len = step_records / 8;
constexpr std::uint32_t group_records = 32;
constexpr std::uint32_t part_len = 16;  // bytes that a lane copies
constexpr std::uint32_t parts = strip_len / part_len;
constexpr std::uint32_t rows_at_once = threads / parts;
static_assert(rows_at_once <= 4 * group_records && 4 * group_records % rows_at_once == 0,
              "what the threads copy at once lies in groups that follow each other");

// Shared memory. Groups of 32 records are 8 words further apart after each fourth, so that lanes that read the same
// record of groups 4 t + ... meet in no bank.
struct Step {
  uint4 rows[(step_records * strip_len + 4 * 32) / part_len];
};
struct Shares {
  uint4 words[most_product_keys][step_shares_len / part_len];
};
// Bits 2 q and 2 q + 1 of word 8 h + g of the columns, for 32 records: [h][q][c][e][lane 4 g + t]. Pairs, as the four
// registers of A are loaded without a move then.
struct Columns {
  uint2 bits[2][16][2][2][warp_len];
};
template <int Stages>
struct Memory {
  Columns columns[2];
  Step steps[Stages];
  Shares shares[Stages + 1];  // a step's shares are needed one step longer
};

// The bits of `a` where the mask has ones, else those of `b`: one operation, which the compiler does not find.
template <std::uint32_t Mask>
__device__ __forceinline__ std::uint32_t pick(std::uint32_t a, std::uint32_t b) {
  return lut3<0xca>(Mask, a, b);
}

template <int S, std::uint32_t Mask>
__device__ __forceinline__ void swap_bits(std::uint32_t (&x)[32]) {
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    const int i = k / S * 2 * S + k % S;
    const std::uint32_t low = x[i], high = x[i + S];
    x[i] = pick<Mask>(low, high << S);
    x[i + S] = pick<Mask>(low >> S, high);
  }
}

// 32 x 32 bits: bit i of word j becomes bit j of word i. (Unused where the kernel has no code.)
[[maybe_unused]] __device__ __forceinline__ void transpose(std::uint32_t (&x)[32]) {
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const std::uint32_t low = x[i], high = x[i + 16];
    x[i] = byte_permute(low, high, 0x5410);
    x[i + 16] = byte_permute(low, high, 0x7632);
  }
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    const int i = k / 8 * 16 + k % 8;
    const std::uint32_t low = x[i], high = x[i + 8];
    x[i] = byte_permute(low, high, 0x6240);
    x[i + 8] = byte_permute(low, high, 0x7351);
  }
  swap_bits<4, 0x0f0f0f0f>(x);
  swap_bits<2, 0x33333333>(x);
  swap_bits<1, 0x55555555>(x);
}

// Keys: 8 for each of Tiles.
template <int Tiles, int Stages>
class Work {
 public:
  __device__ __forceinline__ explicit Work(const BitProduct& product)
      : product_(product),
        memory_(*reinterpret_cast<Memory<Stages>*>(shared_product)),
        strip_(blockIdx.x % product.strips * strip_len),
        column_(strip_ + part_len * (threadIdx.x % parts)),
        row_(threadIdx.x / parts),
        slices_(gridDim.x / product.strips),
        step_(blockIdx.x / product.strips),
        from_(product.table + (std::uint64_t{step_} * step_records + row_) * product.record_len + column_),
        steps_(static_cast<std::uint32_t>((product.records + step_records - 1) / step_records)),
        whole_steps_(column_ < product.record_len ? static_cast<std::uint32_t>(product.records / step_records) : 0) {}

  __device__ __forceinline__ void run() {
    const std::uint32_t count = step_ < steps_ ? (steps_ - step_ + slices_ - 1) / slices_ : 0;
    for (std::uint32_t n = 0; n + 1 < Stages; ++n) fetch(n);
#pragma unroll 1
    for (std::uint32_t n = 0; n <= count; ++n) {
      wait_for_copy_groups<Stages - 2>();
      __syncthreads();
      fetch(n + Stages - 1);
      const bool first = warp_index() < 4;
      if (first && n < count) make_columns(n);
      if (n != 0) multiply(n - 1);
      if (!first && n < count) make_columns(n);
    }
    wait_for_copy_groups<0>();
    __syncthreads();
    add_sums();
  }

 private:
  // Where the record of a step begins.
  static __device__ __forceinline__ std::uint32_t row_at(std::uint32_t record) {
    return record * strip_len + record / (4 * group_records) * 32;
  }

  // Step number n of the block. Everything past the end of records, columns or keys is zero.
  __device__ __forceinline__ void fetch(std::uint32_t n) {
    const std::uint64_t stride = rows_at_once * product_.record_len;
    if (step_ < steps_) {
      const std::uint8_t* from = from_;
      const SharedAddress to =
          shared_address(memory_.steps[n % Stages].rows) + row_at(row_) + part_len * (threadIdx.x % parts);
      if (step_ < whole_steps_) {
#pragma unroll
        for (std::uint32_t i = 0; i < step_records; i += rows_at_once, from += stride) {
          copy_in_background(to + row_at(i), reinterpret_cast<const uint4*>(from));
        }
      } else {
        const std::uint64_t left = product_.records - std::uint64_t{step_} * step_records;
#pragma unroll 1
        for (std::uint32_t i = 0; i < step_records; i += rows_at_once, from += stride) {
          copy(to + row_at(i), from, row_ + i < left && column_ < product_.record_len);
        }
      }
      if (row_ < 8 * Tiles) {
        const std::uint64_t at = std::uint64_t{step_} * step_shares_len + part_len * (threadIdx.x % parts);
        copy(shared_address(&memory_.shares[n % (Stages + 1)].words[row_][threadIdx.x % parts]),
             product_.shares + product_.share_stride * row_ + at, row_ < product_.keys && at < product_.share_stride);
      }
    }
    end_copy_group();
    step_ += slices_;
    from_ += slices_ * (step_records / rows_at_once) * stride;
  }

  static __device__ __forceinline__ void copy(SharedAddress to, const std::uint8_t* from, bool is_there) {
    if (is_there) {
      copy_in_background(to, reinterpret_cast<const uint4*>(from));
    } else {
      store_shared(to, make_uint4(0, 0, 0, 0));
    }
  }

  __device__ __forceinline__ void make_columns(std::uint32_t n) {
    const std::uint32_t half = warp_index() / 4, c = warp_index() / 2 % 2, e = warp_index() % 2;
    const std::uint32_t g = lane_index() / 4, t = lane_index() % 4;
    const auto* const rows = reinterpret_cast<const std::uint8_t*>(memory_.steps[n % Stages].rows) +
                             row_at(group_records * (4 * t + 2 * c + e)) + 4 * (8 * half + g);
    std::uint32_t x[32];
#pragma unroll
    for (std::uint32_t i = 0; i < 32; ++i) x[i] = *reinterpret_cast<const std::uint32_t*>(rows + strip_len * i);
    transpose(x);
    Columns& to = memory_.columns[n % 2];
#pragma unroll
    for (std::uint32_t q = 0; q < 16; ++q) to.bits[half][q][c][e][lane_index()] = make_uint2(x[2 * q], x[2 * q + 1]);
  }

  // Warp 4 h + b: byte b of words 8 h to 8 h + 7, two bits for each of four m-tiles.
  __device__ __forceinline__ void multiply(std::uint32_t n) {
    const Columns& from = memory_.columns[n % 2];
    const auto& shares = memory_.shares[n % (Stages + 1)].words;
    uint4 a[4][2];
#pragma unroll
    for (std::uint32_t m = 0; m < 4; ++m) {
#pragma unroll
      for (std::uint32_t c = 0; c < 2; ++c) {
        const auto& halves = from.bits[warp_index() / 4][warp_index() % 4 * 4 + m][c];
        const uint2 low = halves[0][lane_index()], high = halves[1][lane_index()];
        a[m][c] = make_uint4(low.x, low.y, high.x, high.y);
      }
    }
    // Two tiles at a time, so that no product waits for the one before it.
#pragma unroll
    for (std::uint32_t j = 0; j < Tiles; j += 2) {
      uint4 b[2];
#pragma unroll
      for (std::uint32_t i = 0; i < 2; ++i) b[i] = shares[8 * (j + i) + lane_index() / 4][lane_index() % 4];
#pragma unroll
      for (std::uint32_t m = 0; m < 8; ++m) count_ones(counts_[m / 2][j + m % 2], a[m / 2][0], b[m % 2].x, b[m % 2].y);
#pragma unroll
      for (std::uint32_t m = 0; m < 8; ++m) count_ones(counts_[m / 2][j + m % 2], a[m / 2][1], b[m % 2].z, b[m % 2].w);
    }
  }

  // Of the lane's counts, register 2 r + i is row g + 8 r, column 2 t + i: bit r of the tile, key 2 t + i of the tile.
  __device__ __forceinline__ void add_sums() {
    auto* const bytes = reinterpret_cast<std::uint8_t*>(memory_.columns);  // of 64 bytes for each key
    const std::uint32_t word = warp_index() / 4 * 8 + lane_index() / 4;
#pragma unroll
    for (std::uint32_t j = 0; j < Tiles; ++j) {
#pragma unroll
      for (std::uint32_t i = 0; i < 2; ++i) {
        std::uint32_t byte = 0;
#pragma unroll
        for (std::uint32_t m = 0; m < 4; ++m) {
          byte |= (counts_[m][j][i] & 1) << (2 * m) | (counts_[m][j][2 + i] & 1) << (2 * m + 1);
        }
        bytes[strip_len * (8 * j + lane_index() % 4 * 2 + i) + 4 * word + warp_index() % 4] =
            static_cast<std::uint8_t>(byte);
      }
    }
    __syncthreads();
    const auto* const words = reinterpret_cast<const std::uint32_t*>(bytes);
    for (std::uint32_t i = threadIdx.x; i < product_.keys * (strip_len / 4); i += threads) {
      const std::uint64_t column = strip_ + i % (strip_len / 4) * 4, key = i / (strip_len / 4);
      if (column < product_.record_len) {
        atomicXor(reinterpret_cast<std::uint32_t*>(product_.out + key * product_.record_len + column), words[i]);
      }
    }
  }

  const BitProduct& product_;
  Memory<Stages>& memory_;
  const std::uint64_t strip_, column_;  // the first byte of a record for the block, and for the lane that copies it
  const std::uint32_t row_, slices_;
  // The step that is fetched next, and where the lane begins.
  std::uint32_t step_;
  const std::uint8_t* from_;
  const std::uint32_t steps_, whole_steps_;
  std::int32_t counts_[4][Tiles][4] = {};
};

template <int Tiles, int Stages>
__global__ void __launch_bounds__(threads, 1) product_kernel(const __grid_constant__ BitProduct product) {
#if !defined(__CUDA_ARCH__) || (__CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 1000)
  Work<Tiles, Stages>(product).run();
#endif
}

constexpr int many_stages = 4, few_stages = 2;

}  // namespace

bool has_bit_product(const ::warpcipher::cuda::Device& device, std::size_t record_len) {
  return (device.major == 8 || device.major == 9) && device.shared_len >= sizeof(Memory<few_stages>) &&
         record_len % part_len == 0;
}

void add_bit_product(const ::warpcipher::cuda::Device& device, BitProduct product, Stream stream) {
  product.strips = static_cast<std::uint32_t>((product.record_len + strip_len - 1) / strip_len);
  const std::uint64_t steps = (product.records + step_records - 1) / step_records;
  const std::uint64_t slices = std::clamp<std::uint64_t>(device.multiprocessors / product.strips, 1, steps);
  const bool many = device.shared_len >= sizeof(Memory<many_stages>), few_keys = product.keys <= 16;
  const auto kernel = many ? (few_keys ? &product_kernel<2, many_stages> : &product_kernel<8, many_stages>)
                           : (few_keys ? &product_kernel<2, few_stages> : &product_kernel<8, few_stages>);
  ::warpcipher::cuda::launch(kernel,
                             {static_cast<std::uint32_t>(slices * product.strips), threads,
                              many ? sizeof(Memory<many_stages>) : sizeof(Memory<few_stages>)},
                             stream, product);
}

}  // namespace warpcipher::prg::cuda
