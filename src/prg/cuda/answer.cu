// SPDX-License-Identifier: Apache-2.0
// The sum of a table's records, each times its share, for some keys at a time. Shares are made first, a piece of keys
// at a time. Bits are summed on tensor cores where they can be (bit_product.hpp). Otherwise each thread sums some words
// of every so many records for `keys_at_once` keys, in registers, and further kernels add these sums. Blocks of the
// other keys of a piece read the same records at the same time, so the table comes from memory about once.
#include <algorithm>

#include "engine/cuda/runtime/device.hpp"
#include "engine/cuda/runtime/intrinsics.cuh"
#include "engine/cuda/runtime/launch.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"
#include "prg/cuda/bit_product.hpp"
#include "prg/cuda/launches.hpp"
#include "prg/cuda/walk.hpp"

namespace warpcipher::prg::cuda {
namespace {

using ::warpcipher::cuda::current_device, ::warpcipher::cuda::Device, ::warpcipher::cuda::launch,
    ::warpcipher::cuda::LaunchConfiguration, ::warpcipher::cuda::StreamBuffer, ::warpcipher::cuda::Upload;

constexpr std::uint32_t threads = 256;
constexpr std::uint32_t keys_at_once = 16;
constexpr std::uint64_t records_at_once = 32;  // whose bits are a word
constexpr std::uint64_t most_shares_len = std::uint64_t{1} << 28;

struct Sums {
  const std::uint8_t* table;
  std::uint64_t records, columns;  // columns: words of a record
  const std::uint8_t* shares;
  std::uint64_t share_stride;  // bytes from key to key
  std::uint32_t keys;
  std::uint32_t width;    // threads for the columns of a record, a power of two
  std::uint64_t slices;   // of the records; a thread takes every `slices`th 32 of them
  std::uint8_t* partial;  // slices, keys, columns
};

// Word: std::uint8_t (bits only), std::uint32_t or std::uint64_t; Count of them are a column.
template <class Word, int Count>
struct alignas(sizeof(Word) * Count) Column {
  Word words[Count];
};

template <class Word, int Count, bool Bits>
__global__ void __launch_bounds__(threads) sum_kernel(const __grid_constant__ Sums sums) {
  using Part = Column<Word, Count>;
  const std::uint32_t groups = (sums.keys + keys_at_once - 1) / keys_at_once;
  const std::uint32_t first_key = blockIdx.x % groups * keys_at_once;
  const std::uint64_t block = blockIdx.x / groups;
  const std::uint64_t column_blocks = (sums.columns + sums.width - 1) / sums.width;
  const std::uint64_t column = block % column_blocks * sums.width + threadIdx.x % sums.width;
  const std::uint64_t slice = block / column_blocks * (threads / sums.width) + threadIdx.x / sums.width;
  if (column >= sums.columns || slice >= sums.slices) return;
  Part total[keys_at_once] = {};
  const auto* const table = reinterpret_cast<const Part*>(sums.table) + column;
#pragma unroll 1
  for (std::uint64_t begin = slice * records_at_once; begin < sums.records; begin += sums.slices * records_at_once) {
    const std::uint64_t left = sums.records - begin;
    const auto count = static_cast<std::uint32_t>(left < records_at_once ? left : records_at_once);
    std::uint32_t bits[keys_at_once];
#pragma unroll
    for (std::uint32_t k = 0; Bits && k < keys_at_once; ++k) {
      const std::uint32_t key = first_key + k < sums.keys ? first_key + k : first_key;
      bits[k] = *reinterpret_cast<const std::uint32_t*>(sums.shares + sums.share_stride * key + begin / 8);
    }
#pragma unroll 1
    for (std::uint32_t i = 0; i < count; ++i) {
      const Part part = table[(begin + i) * sums.columns];
#pragma unroll
      for (std::uint32_t k = 0; k < keys_at_once; ++k) {
        if constexpr (Bits) {
          const auto mask = static_cast<Word>(0u - (bits[k] & 1));
          bits[k] >>= 1;
#pragma unroll
          for (int w = 0; w < Count; ++w)
            total[k].words[w] = static_cast<Word>(total[k].words[w] ^ (part.words[w] & mask));
        } else {
          const std::uint32_t key = first_key + k < sums.keys ? first_key + k : first_key;
          const Word share = reinterpret_cast<const Word*>(sums.shares + sums.share_stride * key)[begin + i];
#pragma unroll
          for (int w = 0; w < Count; ++w) total[k].words[w] += part.words[w] * share;
        }
      }
    }
  }
#pragma unroll
  for (std::uint32_t k = 0; k < keys_at_once; ++k) {
    if (first_key + k < sums.keys) {
      reinterpret_cast<Part*>(sums.partial)[(slice * sums.keys + first_key + k) * sums.columns + column] = total[k];
    }
  }
}

// Adds each `together` slices.
template <class Word, bool Bits>
__global__ void __launch_bounds__(threads) join_kernel(const std::uint8_t* partial, std::uint64_t slices,
                                                       std::uint64_t together, std::uint64_t words, std::uint8_t* out) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * threads, made = (slices + together - 1) / together;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * threads + threadIdx.x; i < words * made; i += stride) {
    const std::uint64_t first = i / words * together, left = slices - first;
    Word total = 0;
    for (std::uint64_t s = first; s < first + (left < together ? left : together); ++s) {
      const Word one = reinterpret_cast<const Word*>(partial)[s * words + i % words];
      total = static_cast<Word>(Bits ? total ^ one : total + one);
    }
    reinterpret_cast<Word*>(out)[i] = total;
  }
}

template <class Word, int Count, bool Bits>
void run_sums(const Device& device, Sums sums, std::size_t record_len, std::uint8_t* out, Stream stream) {
  sums.columns = record_len / (sizeof(Word) * Count);
  sums.width = 1;
  while (sums.width < 32 && sums.width < sums.columns) sums.width *= 2;
  const std::uint64_t column_blocks = (sums.columns + sums.width - 1) / sums.width;
  const std::uint64_t groups = (sums.keys + keys_at_once - 1) / keys_at_once;
  const std::uint32_t of_block = threads / sums.width;
  // About four blocks a multiprocessor, and no slice without records.
  const std::uint64_t wanted = std::max<std::uint64_t>(1, 4 * device.multiprocessors / (groups * column_blocks));
  const std::uint64_t most = (sums.records + records_at_once - 1) / records_at_once;
  sums.slices = std::min(wanted * of_block, most);
  const std::uint64_t slice_blocks = (sums.slices + of_block - 1) / of_block;
  const StreamBuffer partial(sums.slices * sums.keys * record_len, stream);
  sums.partial = partial.data();
  launch(&sum_kernel<Word, Count, Bits>,
         LaunchConfiguration{static_cast<std::uint32_t>(groups * column_blocks * slice_blocks), threads}, stream, sums);
  const std::uint64_t words = sums.keys * record_len / sizeof(Word);
  constexpr std::uint64_t together = 64;
  const std::uint64_t joined = (sums.slices + together - 1) / together;
  const StreamBuffer some(joined * sums.keys * record_len, stream);
  launch(&join_kernel<Word, Bits>, ::warpcipher::cuda::configuration_of_lanes(device, words * joined, threads, 8),
         stream, partial.data(), sums.slices, together, words, some.data());
  launch(&join_kernel<Word, Bits>, ::warpcipher::cuda::configuration_of_lanes(device, words, threads, 8), stream,
         some.data(), joined, joined, words, out);
}

}  // namespace

void answer(const PointKeys& keys, std::span<const std::uint8_t> table, std::size_t record_len,
            std::span<std::uint8_t> out, Stream stream) {
  const Device& device = current_device();
  const Domain& domain = keys.domain;
  const bool by_product = domain.group == Group::gf2 && has_bit_product(device, record_len);
  if (table.empty() || by_product) {
    ::warpcipher::cuda::check(cudaMemsetAsync(out.data(), 0, out.size(), ::warpcipher::cuda::native(stream)),
                              "clear an answer");
  }
  if (table.empty()) return;
  const std::uint64_t stride = std::uint64_t{block_len * domain.blocks()} << domain.depth();
  const std::uint64_t step = std::clamp<std::uint64_t>(most_shares_len / stride, 1, 1024);
  for (std::uint64_t first = 0; first < keys.count(); first += step) {
    const std::uint64_t count = std::min(step, keys.count() - first);
    const std::span<const std::uint8_t> records =
        keys.records.subspan(first * domain.record_len(), count * domain.record_len());
    Upload upload;
    const auto sent = upload.reserve<uint4>(records.size() / sizeof(uint4));
    upload.allocate(stream);
    std::copy(records.begin(), records.end(), reinterpret_cast<std::uint8_t*>(upload.host(sent)));
    upload.send();
    const StreamBuffer shares(count * stride, stream);
    evaluate_blocks({domain, keys.party, reinterpret_cast<const std::uint8_t*>(upload.device(sent)), count},
                    shares.data(), stream);
    Sums sums{};
    sums.table = table.data();
    sums.records = table.size() / record_len;
    sums.shares = shares.data();
    sums.share_stride = stride;
    sums.keys = static_cast<std::uint32_t>(count);
    std::uint8_t* const to = out.data() + first * record_len;
    if (by_product) {
      for (std::uint64_t k = 0; k < count; k += most_product_keys) {
        add_bit_product(
            device,
            {table.data(), sums.records, record_len, shares.data() + stride * k, stride,
             static_cast<std::uint32_t>(std::min<std::uint64_t>(most_product_keys, count - k)), to + record_len * k, 0},
            stream);
      }
    } else if (domain.group == Group::gf2) {
      record_len % 16 == 0  ? run_sums<std::uint32_t, 4, true>(device, sums, record_len, to, stream)
      : record_len % 4 == 0 ? run_sums<std::uint32_t, 1, true>(device, sums, record_len, to, stream)
                            : run_sums<std::uint8_t, 1, true>(device, sums, record_len, to, stream);
    } else if (domain.group == Group::u32) {
      record_len % 16 == 0 ? run_sums<std::uint32_t, 4, false>(device, sums, record_len, to, stream)
                           : run_sums<std::uint32_t, 1, false>(device, sums, record_len, to, stream);
    } else {
      record_len % 16 == 0 ? run_sums<std::uint64_t, 2, false>(device, sums, record_len, to, stream)
                           : run_sums<std::uint64_t, 1, false>(device, sums, record_len, to, stream);
    }
  }
}

}  // namespace warpcipher::prg::cuda
