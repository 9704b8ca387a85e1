// SPDX-License-Identifier: Apache-2.0
// Random arrays by AES-256 in counter mode, in two steps: key stream, from lane tables or by the hybrid kernel, and the
// transform of it to a distribution. Bytes are key stream and take the first step only. One kernel of AES for all
// distributions takes a quarter of the time to compile, and large arrays get the hybrid kernel's key stream.
#include <algorithm>

#include "engine/cuda/aes/cipher.cuh"
#include "engine/cuda/aes/hybrid.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "engine/cuda/runtime/launch.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"
#include "random/cuda/kernels.hpp"

namespace warpcipher::random::cuda {
namespace {

using namespace ::warpcipher::cuda::lane_table;
using ::warpcipher::cuda::tile_units, ::warpcipher::cuda::Block, ::warpcipher::cuda::byte_swap,
    ::warpcipher::cuda::current_device, ::warpcipher::cuda::Device, ::warpcipher::cuda::launch,
    ::warpcipher::cuda::LaunchConfiguration, ::warpcipher::cuda::configuration_of_lanes,
    ::warpcipher::cuda::StreamBuffer;

constexpr std::uint32_t threads = 512;  // 128 registers a lane
constexpr int rounds = 14;
constexpr std::uint64_t least_lines_of_hybrid = 3 * ::warpcipher::cuda::tile_units / 4;  // three tiles

constexpr std::uint32_t transform_threads = 256;
constexpr std::uint32_t transform_blocks = 3;  // of a multiprocessor: 80 registers a lane

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

// The smaller layout on every GPU: loads from shared memory are the bound, and they hide the rotation.
using Tables = Tables64;

// Key stream: a lane enciphers the four counters of a line, which differ only in the last byte and share most of two
// rounds.
__global__ void __launch_bounds__(threads, 1)
    key_stream_kernel(const __grid_constant__ Lines lines, const Elements elements) {
  fill_tables<Tables, false>();
  __syncthreads();
  const RoundKeys keys{lines};
  const LaneCipher<Tables, false, 0, RoundKeys> cipher(keys, rounds);
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
#pragma unroll 1
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < lines.count; i += stride) {
    const std::uint64_t n = lines.base + 4 * (lines.begin + i);
    const CommonRounds common =
        cipher.common_rounds({{lines.number[0], lines.number[1], byte_swap(static_cast<std::uint32_t>(n >> 32)),
                               byte_swap(static_cast<std::uint32_t>(n))}});
    std::uint32_t entries[4];
    Block blocks[4];
#pragma unroll
    for (std::uint32_t k = 0; k < 4; ++k) {
      entries[k] = cipher.counting_entry((static_cast<std::uint32_t>(n) & 0xff) | k);
    }
    cipher.encrypt_rest(blocks, common, entries);
    std::uint32_t words[16];
#pragma unroll
    for (int k = 0; k < 16; ++k) words[k] = blocks[k / 4].words[k % 4];
    store_line<Plain<false>>(elements, lines.begin + i, words);
  }
}

// Any block of the stream, for further words: one function that no kernel inlines, as it is for the few.
struct FurtherStream {
  static constexpr std::size_t block_len = AesStream::block_len;

  AesStream stream;

  __device__ __noinline__ void block(std::uint64_t n, std::uint32_t (&words)[4]) const { stream.block(n, words); }
};

// `key_stream` has `count` whole lines from line `begin`.
template <class F>
__global__ void __launch_bounds__(transform_threads, transform_blocks)
    transform_kernel(const __grid_constant__ FurtherStream stream, const __grid_constant__ F function,
                     const Elements elements, const uint4* key_stream, std::uint64_t begin, std::uint64_t count) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * transform_threads;
#pragma unroll 1
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * transform_threads + threadIdx.x; i < count; i += stride) {
    std::uint32_t x[16];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const uint4 words = key_stream[4 * i + k];
      x[4 * k] = words.x;
      x[4 * k + 1] = words.y;
      x[4 * k + 2] = words.z;
      x[4 * k + 3] = words.w;
    }
    std::uint32_t values[value_words<F>];
    make_values(function, stream, begin + i, x, values);
    store_line<F>(elements, begin + i, values);
  }
}

Lines make_lines(const AesStream& stream, const LineRange& range, std::uint32_t attempt) {
  Lines lines{};
  lines.begin = range.begin;
  lines.count = range.end - range.begin;
  lines.base = domain::of_attempt(attempt);
  lines.number[0] = byte_swap32(static_cast<std::uint32_t>(stream.number >> 32));
  lines.number[1] = byte_swap32(static_cast<std::uint32_t>(stream.number));
  for (int i = 0; i < 4 * (rounds + 1); ++i) lines.keys[i] = byte_swap32(stream.schedule.words[i]);
  return lines;
}

void start_key_stream(const Device& device, Stream stream, const Lines& lines, const Elements& elements) {
  const std::uint64_t wanted = (lines.count + threads - 1) / threads;
  const LaunchConfiguration configuration{
      wanted < device.multiprocessors ? static_cast<std::uint32_t>(wanted) : device.multiprocessors, threads,
      Tables::shared_len};
  launch(&key_stream_kernel, configuration, stream, lines, elements);
}

// The whole lines between the first and the last by the hybrid kernel, which also works by logic. False where it cannot
// have them.
bool make_by_hybrid(const Device& device, const Lines& lines, const Elements& elements, std::uint64_t least_of_hybrid,
                    Stream stream) {
  const std::uint64_t begin = lines.begin + 1, end = lines.begin + lines.count - 1;
  if (!has_hybrid(device) || lines.count < least_of_hybrid || lines.count < 2 + least_lines_of_hybrid) return false;
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
    start_key_stream(device, stream, *one, elements);
  }
  return true;
}

// Bytes [elements.first, elements.last) of the stream, which those lines have.
void make_key_stream(const Device& device, const Lines& lines, const Elements& elements, std::uint64_t least_of_hybrid,
                     Stream stream) {
  if (!make_by_hybrid(device, lines, elements, least_of_hybrid, stream)) {
    start_key_stream(device, stream, lines, elements);
  }
}

template <class F>
void transform(const Device& device, const ArrayFill& fill, const FurtherStream& of_key, const F& function,
               const Elements& elements, Stream stream) {
  const std::uint64_t most = std::min(fill.lines.end - fill.lines.begin, fill.most_of_piece);
  const StreamBuffer key_stream(most * line_len, stream);
  for (std::uint64_t begin = fill.lines.begin; begin < fill.lines.end; begin += most) {
    const LineRange piece{begin, std::min(begin + most, fill.lines.end)};
    const std::uint64_t count = piece.end - piece.begin;
    const Secret<Lines> lines(make_lines(of_key.stream, piece, fill.attempt));
    make_key_stream(device, *lines, {key_stream.data(), piece.begin * line_len, piece.end * line_len},
                    fill.least_of_hybrid, stream);
    launch(&transform_kernel<F>, configuration_of_lanes(device, count, transform_threads, transform_blocks), stream,
           of_key, function, elements, reinterpret_cast<const uint4*>(key_stream.data()), begin, count);
  }
}

}  // namespace

void fill_aes(const StreamKey& key, const ArrayFill& fill, Stream stream) {
  const Device& device = current_device();
  const Secret<FurtherStream> of_key(FurtherStream{key.aes()});
  visit_on_device(fill, [&](const auto& function, const Elements& elements) {
    if constexpr (std::is_same_v<std::decay_t<decltype(function)>, Plain<false>>) {
      const Secret<Lines> lines(make_lines(of_key->stream, fill.lines, fill.attempt));
      make_key_stream(device, *lines, elements, fill.least_of_hybrid, stream);
    } else {
      transform(device, fill, *of_key, function, elements, stream);
    }
  });
}

}  // namespace warpcipher::random::cuda
