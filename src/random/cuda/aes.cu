// SPDX-License-Identifier: Apache-2.0
// Random arrays by AES-256 in counter mode, from lane tables (engine/cuda/lane_table/table_layout.hpp): a lane
// enciphers the four counters of a line, which differ in the last byte alone and share most of two rounds.
#include <algorithm>

#include "engine/cuda/lane_table/cipher.cuh"
#include "engine/cuda/lane_table/hybrid.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "engine/cuda/runtime/launch.hpp"
#include "random/cuda/kernels.hpp"

namespace warpcipher::random::cuda {
namespace {

using namespace ::warpcipher::cuda::lane_table;
using ::warpcipher::cuda::tile_units, ::warpcipher::cuda::Block, ::warpcipher::cuda::byte_swap,
    ::warpcipher::cuda::current_device, ::warpcipher::cuda::Device, ::warpcipher::cuda::launch,
    ::warpcipher::cuda::LaunchConfiguration;

constexpr std::uint32_t threads = 512;  // 128 registers a lane
constexpr int rounds = 14;
constexpr std::uint64_t least_lines_of_hybrid = 3 * ::warpcipher::cuda::tile_units / 4;  // three tiles

struct Lines {
  std::uint64_t begin, count;
  std::uint64_t base;                    // the number of the first block of the attempt
  std::uint32_t number[2];               // of the stream, as a counter block has it
  std::uint32_t keys[4 * (rounds + 1)];  // as a block has them
};

struct RoundKeys {
  static constexpr bool in_registers = false;
  const Lines& lines;

  __device__ __forceinline__ Block round(std::uint32_t r) const {
    const std::uint32_t* const words = lines.keys + 4 * r;
    return {{words[0], words[1], words[2], words[3]}};
  }
};

// Any block of the stream, for further words.
template <class Cipher>
struct LaneStream {
  static constexpr std::size_t block_len = AesStream::block_len;

  const Cipher& cipher;
  const Lines& lines;

  __device__ __forceinline__ Block counter(std::uint64_t n) const {
    return {{lines.number[0], lines.number[1], byte_swap(static_cast<std::uint32_t>(n >> 32)),
             byte_swap(static_cast<std::uint32_t>(n))}};
  }

  __device__ void block(std::uint64_t n, std::uint32_t (&words)[4]) const {
    Block blocks[1] = {counter(n)};
    cipher(blocks);
    for (int i = 0; i < 4; ++i) words[i] = blocks[0].words[i];
  }
};

// The smaller layout on every GPU: loads from shared memory are the bound, and they hide the rotation.
using Tables = Tables64;

template <class F>
__global__ void __launch_bounds__(threads, 1)
    fill_kernel(const __grid_constant__ Lines lines, const __grid_constant__ F function, const Elements elements) {
  using Cipher = LaneCipher<Tables, false, 0, RoundKeys>;
  fill_tables<Tables, false>();
  __syncthreads();
  const RoundKeys keys{lines};
  const Cipher cipher(keys, rounds);
  const LaneStream<Cipher> stream{cipher, lines};
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
#pragma unroll 1
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < lines.count; i += stride) {
    const std::uint64_t n = lines.base + 4 * (lines.begin + i);
    const CommonRounds common = cipher.common_rounds(stream.counter(n));
    std::uint32_t entries[4];
    Block blocks[4];
#pragma unroll
    for (std::uint32_t k = 0; k < 4; ++k) {
      entries[k] = cipher.counting_entry((static_cast<std::uint32_t>(n) & 0xff) | k);
    }
    cipher.encrypt_rest(blocks, common, entries);
    std::uint32_t x[16];
#pragma unroll
    for (int k = 0; k < 16; ++k) x[k] = blocks[k / 4].words[k % 4];
    std::uint32_t values[value_words<F>];
    make_values(function, stream, lines.begin + i, x, values);
    store_line<F>(elements, lines.begin + i, values);
  }
}

template <class F>
void start(const Device& device, Stream stream, const Lines& lines, const F& function, const Elements& elements) {
  const std::uint64_t wanted = (lines.count + threads - 1) / threads;
  const LaunchConfiguration configuration{
      wanted < device.multiprocessors ? static_cast<std::uint32_t>(wanted) : device.multiprocessors, threads,
      Tables::shared_len};
  launch(&fill_kernel<F>, configuration, stream, lines, function, elements);
}

Lines make_lines(const AesStream& stream, const ArrayFill& fill) {
  Lines lines{};
  lines.begin = fill.lines.begin;
  lines.count = fill.lines.end - fill.lines.begin;
  lines.base = domain::of_attempt(fill.attempt);
  lines.number[0] = byte_swap32(static_cast<std::uint32_t>(stream.number >> 32));
  lines.number[1] = byte_swap32(static_cast<std::uint32_t>(stream.number));
  for (int i = 0; i < 4 * (rounds + 1); ++i) lines.keys[i] = byte_swap32(stream.schedule.words[i]);
  return lines;
}

// Bytes of many lines: the whole lines between the first and the last by the hybrid kernel, which also works by logic.
// False where it cannot have them.
bool fill_by_hybrid(const Device& device, const ArrayFill& fill, const Lines& lines, const Elements& elements,
                    Stream stream) {
  const std::uint64_t begin = fill.lines.begin + 1, end = fill.lines.end - 1;
  if (!has_hybrid(device) || lines.count < fill.least_of_hybrid || lines.count < 2 + least_lines_of_hybrid)
    return false;
  std::uint8_t* const out = elements.data + (begin * line_len - elements.first);
  if (reinterpret_cast<std::uintptr_t>(out) % 16 != 0) return false;
  Secret<SingleSource> source;
  const std::uint64_t n = lines.base + 4 * begin, len = (end - begin) * line_len;
  source->view.in = source->view.out = out;
  source->view.in_len = source->view.out_len = len;
  source->view.units = len / 16;
  source->view.start = {{lines.number[0], lines.number[1], byte_swap32(static_cast<std::uint32_t>(n >> 32)),
                         byte_swap32(static_cast<std::uint32_t>(n))}};
  source->tiles = (source->view.units + tile_units - 1) / tile_units;
  source->rounds = rounds;
  std::copy_n(lines.keys, 4 * (rounds + 1), source->schedule);
  run_hybrid_key_stream(device, stream, *source);
  for (const std::uint64_t line : {begin - 1, end}) {
    Secret<Lines> one(lines);
    one->begin = line;
    one->count = 1;
    start(device, stream, *one, Plain<false>{}, elements);
  }
  return true;
}

}  // namespace

void fill_aes(const StreamKey& key, const ArrayFill& fill, Stream stream) {
  const Device& device = current_device();
  const Secret<AesStream> of_key(key.aes());
  const Secret<Lines> lines(make_lines(*of_key, fill));
  visit_on_device(fill, [&](const auto& function, const Elements& elements) {
    if constexpr (std::is_same_v<std::decay_t<decltype(function)>, Plain<false>>) {
      if (fill_by_hybrid(device, fill, *lines, elements, stream)) return;
    }
    start(device, stream, *lines, function, elements);
  });
}

}  // namespace warpcipher::random::cuda
