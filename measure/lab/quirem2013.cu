// SPDX-License-Identifier: Apache-2.0
// S. Quirem, B. K. Lee, "AES Decryption Using Warp-Synchronous Programming", 2013: AES-256 CBC decryption by four
// threads a block, a column each, against one thread a block.
//
// The message starts with its initialization vector, as in the paper. Kernels do not know how long it is: the grid is
// the paper's (section II), nearly square, and memory is as large as the grid, so that no thread branches. Columns of
// a block meet in shared memory, and each thread reads its own first:
//
//   thread 0   columns 0 3 2 1      thread 1   columns 1 0 3 2      ...      rows 0 1 2 3: InvShiftRows
//
// In 2013 a warp ran in step, and that order was enough. Since Volta it is not: __syncwarp() stands where the paper
// relied on it. A second form uses shuffles instead of shared memory.
//
// The paper does not say where its tables lie; its profile has no replays of shared memory, which tables there would
// cause. Here they are in global memory, read through the read-only cache. Round keys are a kernel parameter.
//
// Timing: how many cache lines a lookup touches depends on the data. Not constant time.
#include <algorithm>
#include <cmath>

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "tables.hpp"

namespace warpcipher::lab {
namespace {

constexpr std::size_t iv_len = 16;

Secret<RoundKeys> decryption_keys(const Setting& setting) {
  check_len("key", setting.key.size(), {32});
  check_len("iv", setting.iv.size(), {0});  // it is in front of the message
  return expand_key(setting.key, true);
}

void check_message(const Data& data) {
  if (data.in_len % 16 != 0 || data.in_len < iv_len || data.out_len != data.in_len - iv_len) {
    throw Error(Status::invalid_argument, "in is " + std::to_string(data.in_len) + " bytes and out " +
                                              std::to_string(data.out_len) +
                                              ": expected whole blocks, and an IV more in than out");
  }
}

// The paper's single-threaded CPU code.
Job one_thread(const Setting& setting) {
  return host_job([keys = decryption_keys(setting)](const Data& data) {
    check_message(data);
    for (std::size_t i = 0; i < data.out_len; i += 16) {
      std::uint8_t block[16];
      crypt_block<true>(*keys, data.in + iv_len + i, block);
      xor_bytes(data.out + i, block, data.in + i, 16);
    }
  });
}

#if WARPCIPHER_HAS_CUDA

constexpr unsigned rounds = 14;

__device__ const Tables global_tables = make_tables(aes::td0);
__device__ const std::array<std::uint8_t, 256> global_inverse_sbox = aes::inverse_sbox;

// Row `row` of a column, through the tables or, in the last round, through the inverse S-box.
template <unsigned Row, bool Last>
__device__ __forceinline__ std::uint32_t row_of(std::uint32_t column) {
  const unsigned x = column >> (8 * Row) & 0xff;
  if constexpr (Last) return std::uint32_t{__ldg(&global_inverse_sbox[x])} << (8 * Row);
  return __ldg(&global_tables[Row][x]);
}

__device__ __forceinline__ std::size_t thread_number() {
  return (std::size_t{blockIdx.y} * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
}

// Four threads a block. Exchange: exchange(own, step) returns the column `step` to the left of the thread's own.
template <bool Last, class Exchange>
__device__ __forceinline__ std::uint32_t one_round(std::uint32_t own, const Exchange& exchange, std::uint32_t key) {
  std::uint32_t sum = key ^ row_of<0, Last>(own);
  sum ^= row_of<1, Last>(exchange(own, 1));
  sum ^= row_of<2, Last>(exchange(own, 2));
  return sum ^ row_of<3, Last>(exchange(own, 3));
}

__global__ void decrypt_shared(const std::uint32_t* in, std::uint32_t* out, const __grid_constant__ RoundKeys keys) {
  auto* const columns = reinterpret_cast<std::uint32_t*>(shared_memory);
  const std::size_t index = thread_number();
  const unsigned column = threadIdx.x % 4;
  const unsigned first = threadIdx.x - column;
  const auto exchange = [&](std::uint32_t, unsigned step) { return columns[first + (column + 4 - step) % 4]; };
  std::uint32_t own = in[index + 4] ^ keys.words[column];
#pragma unroll
  for (unsigned round = 1; round < rounds; ++round) {
    columns[threadIdx.x] = own;
    __syncwarp();
    own = one_round<false>(own, exchange, keys.words[4 * round + column]);
    __syncwarp();
  }
  columns[threadIdx.x] = own;
  __syncwarp();
  out[index] = one_round<true>(own, exchange, keys.words[4 * rounds + column]) ^ in[index];
}

__global__ void decrypt_shuffle(const std::uint32_t* in, std::uint32_t* out, const __grid_constant__ RoundKeys keys) {
  const std::size_t index = thread_number();
  const unsigned column = threadIdx.x % 4;
  const unsigned first = threadIdx.x % 32 - column;
  const auto exchange = [&](std::uint32_t value, unsigned step) {
    return __shfl_sync(0xffffffffu, value, static_cast<int>(first + (column + 4 - step) % 4));
  };
  std::uint32_t own = in[index + 4] ^ keys.words[column];
#pragma unroll
  for (unsigned round = 1; round < rounds; ++round) {
    own = one_round<false>(own, exchange, keys.words[4 * round + column]);
  }
  out[index] = one_round<true>(own, exchange, keys.words[4 * rounds + column]) ^ in[index];
}

template <bool Last>
__device__ __forceinline__ uint4 one_round(const uint4& s, const std::uint32_t* key) {
  return make_uint4(row_of<0, Last>(s.x) ^ row_of<1, Last>(s.w) ^ row_of<2, Last>(s.z) ^ row_of<3, Last>(s.y) ^ key[0],
                    row_of<0, Last>(s.y) ^ row_of<1, Last>(s.x) ^ row_of<2, Last>(s.w) ^ row_of<3, Last>(s.z) ^ key[1],
                    row_of<0, Last>(s.z) ^ row_of<1, Last>(s.y) ^ row_of<2, Last>(s.x) ^ row_of<3, Last>(s.w) ^ key[2],
                    row_of<0, Last>(s.w) ^ row_of<1, Last>(s.z) ^ row_of<2, Last>(s.y) ^ row_of<3, Last>(s.x) ^ key[3]);
}

// The standard form: one thread a block.
__global__ void decrypt_thread(const std::uint32_t* in, std::uint32_t* out, const __grid_constant__ RoundKeys keys) {
  const std::size_t index = thread_number();
  const auto* const blocks = reinterpret_cast<const uint4*>(in);
  uint4 s = sum(blocks[index + 1], make_uint4(keys.words[0], keys.words[1], keys.words[2], keys.words[3]));
#pragma unroll
  for (unsigned round = 1; round < rounds; ++round) s = one_round<false>(s, keys.words + 4 * round);
  reinterpret_cast<uint4*>(out)[index] = sum(one_round<true>(s, keys.words + 4 * rounds), blocks[index]);
}

using Kernel = void (*)(const std::uint32_t* in, std::uint32_t* out, RoundKeys keys);

// Section II: the grid's width is the root of the blocks of threads that the text needs, its height the same, "and
// incremented once or twice if it is determined the grid is not yet large enough".
struct Grid {
  std::uint32_t width;
  std::uint32_t height;

  Grid(std::size_t text_len, std::size_t covered) {
    const std::size_t needed = (text_len + covered - 1) / covered;
    width = std::max(1u, static_cast<std::uint32_t>(std::sqrt(static_cast<double>(needed))));
    height = width;
    while (std::size_t{width} * height < needed) ++height;
  }
};

// A thread has Bytes of the text. Data are as long as the grid covers; the parameter `text` says how much of it is
// text. The rest is decrypted too and not used.
template <Kernel TheKernel, std::uint32_t Bytes, std::uint32_t SharedAThread>
Job make(const Setting& setting) {
  const auto threads = static_cast<std::uint32_t>(setting.parameters.take("threads", 256, 32, 1024, 32));
  const auto text_len = static_cast<std::size_t>(setting.parameters.take("text", 0, 0, std::int64_t{1} << 40));
  return kernel_job({setting, TheKernel, threads, std::size_t{threads} * SharedAThread},
                    [keys = decryption_keys(setting), text_len](const Launch& launch, const Data& data, Stream stream) {
                      check_message(data);
                      const std::size_t covered = std::size_t{launch.threads} * Bytes;
                      const Grid grid(text_len, covered);
                      check_len("out", data.out_len, {covered * grid.width * grid.height});
                      const DeviceScope scope(launch.device);
                      cudaLaunchConfig_t config{};
                      config.gridDim = dim3(grid.width, grid.height);
                      config.blockDim = dim3(launch.threads);
                      config.dynamicSmemBytes = launch.shared_len;
                      config.stream = static_cast<cudaStream_t>(stream);
                      cuda::check(
                          cudaLaunchKernelEx(&config, TheKernel, reinterpret_cast<const std::uint32_t*>(data.in),
                                             reinterpret_cast<std::uint32_t*>(data.out), *keys),
                          "start a kernel");
                    });
}

#endif

}  // namespace

std::vector<Variant> quirem2013() {
  return {
      WARPCIPHER_LAB_GPU("warp-shared", "four threads a block, columns through shared memory (section III)", false,
                         make<decrypt_shared, 4, 4>),
      WARPCIPHER_LAB_GPU("warp-shuffle", "four threads a block, columns by shuffles", false,
                         make<decrypt_shuffle, 4, 0>),
      WARPCIPHER_LAB_GPU("thread", "one thread a block (the paper's standard form)", false,
                         make<decrypt_thread, 16, 0>),
      {"cpu", "T-boxes on one CPU thread", false, false, one_thread},
  };
}

}  // namespace warpcipher::lab
