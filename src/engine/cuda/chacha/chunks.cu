// SPDX-License-Identifier: Apache-2.0
// ChaCha20-Poly1305 in one pass. The text of a message, but for the rest of a block at its end, is cut into chunks
// as HashView says, from the end; a block of threads takes a chunk, and its warps take segments of it in turn:
//
//   chunk | segment 7 | 6 | 5 | 4 | 3 | 2 | 1 | segment 0     segments are counted from the end of the text
//   warp        3       2   1   0   3   2   1      0          each warp by Horner's rule in r^(1024 * 4)
//
// A warp first enciphers a tile, 32 blocks, a lane a block, and multiplies the ciphertext that it has in registers
// (matrices.cuh). A second kernel takes each message: it joins the sums of its chunks, adds what all but the ciphertext
// contributes (AAD, the ones at 2^128, the end of the text, lengths), and settles the tag.
#include <algorithm>

#include "engine/cuda/chacha/finish.cuh"
#include "engine/cuda/chacha/launches.hpp"
#include "engine/cuda/chacha/matrices.cuh"
#include "engine/cuda/chacha/rounds.cuh"
#include "engine/cuda/ghash/view.cuh"
#include "engine/cuda/inputs/message_view.cuh"
#include "engine/cuda/inputs/texts.hpp"
#include "engine/cuda/runtime/launch.hpp"
#include "engine/cuda/runtime/memory.hpp"

namespace warpcipher::cuda::chacha {

// Dynamic: Matrices.
extern __shared__ uint4 shared_matrices[];

namespace {

constexpr std::uint32_t blocks_of_multiprocessor = 5;
constexpr std::uint32_t finish_threads = 128;
constexpr std::uint32_t warp_log = 5;
constexpr std::uint64_t least_messages_by_lanes = 4096;
constexpr std::uint64_t most_aad_blocks_by_lanes = 1024;

struct Work {
  Batch batch;
  Tags tags;
  Factors factors;
  Element* sums;  // of chunks
  TextPieces pieces;
};

constexpr bool encrypts(Pass pass) { return pass == Pass::encrypt || pass == Pass::gather; }

// Block `block` of the text of a message.
__device__ __forceinline__ const std::uint8_t* in_pieces(const TextPieces& pieces, std::uint64_t number,
                                                         std::uint64_t block) {
  const auto index = static_cast<std::uint32_t>(block);
  const PiecePlace& place = pieces.places[index / pieces.piece_blocks];
  return global(place.first) + static_cast<std::int64_t>(number) * place.step +
         block_len * (index % pieces.piece_blocks);
}

// Enciphers the text of a lane, and hashes the ciphertext.
template <Pass P>
__device__ __forceinline__ void run_text(const Matrices& matrices, std::uint32_t tile, const std::uint32_t (&x)[16],
                                         Text64& text, Columns& columns) {
  if constexpr (!encrypts(P)) columns.add(matrices, tile, text);
  if constexpr (P != Pass::hash) add_key_stream(text, x);
  if constexpr (encrypts(P)) columns.add(matrices, tile, text);
}

// A segment from block `first` of a message, whose text is aligned and all there.
template <Pass P>
__device__ __forceinline__ void run_whole_segment(const Matrices& matrices, const MessageView& view,
                                                  const KeyStream& stream, const TextPieces& pieces,
                                                  std::uint64_t number, std::uint64_t first, Columns& columns) {
  first += lane_index();
  const std::uint8_t* in = global(view.in) + first * block_len;
  std::uint8_t* out = global(view.out) + first * block_len;
  std::uint32_t counter = stream.counter + static_cast<std::uint32_t>(first);
#pragma unroll(P == Pass::hash ? 2 : 1)  // without the cipher it waits for memory
  for (std::uint32_t tile = 0; tile < tiles_of_segment; ++tile) {
    if constexpr (P == Pass::gather) in = in_pieces(pieces, number, first + warp_len * tile);
    Text64 text = load_text(in, block_len, true);
    std::uint32_t x[16];
    make_key_stream<1>(&stream, counter, x);
    run_text<P>(matrices, tile, x, text, columns);
    if constexpr (P != Pass::hash) store_text(out, block_len, true, text);
    in += warp_len * block_len;
    out += warp_len * block_len;
    counter += warp_len;
  }
}

// Any segment. `first` is negative where the message begins inside of it. Aligned: the text is. (GCC, which compiles
// for the emulated GPU, would load it as such before it asks.)
template <Pass P, bool Aligned>
__device__ __forceinline__ void run_any_segment(const Matrices& matrices, const MessageView& view,
                                                const KeyStream& stream, const TextPieces& pieces, std::uint64_t number,
                                                std::int64_t first, Columns& columns) {
#pragma unroll 1
  for (std::uint32_t tile = 0; tile < tiles_of_segment; ++tile) {
    if (first + std::int64_t{warp_len} * (tile + 1) <= 0) continue;
    const std::int64_t block = first + std::int64_t{warp_len} * tile + lane_index();
    const std::uint64_t offset = static_cast<std::uint64_t>(block) * block_len;
    Text64 text{};
    if constexpr (P == Pass::gather) {
      if (block >= 0)
        text = load_text(in_pieces(pieces, number, static_cast<std::uint64_t>(block)), block_len, Aligned);
    } else {
      if (block >= 0) text = load_text(global(view.in) + offset, block_len, Aligned);
    }
    std::uint32_t x[16];
    make_key_stream<1>(&stream, stream.counter + static_cast<std::uint32_t>(block), x);
    if (block < 0) {
#pragma unroll
      for (std::uint32_t& word : x) word = 0;
    }
    run_text<P>(matrices, tile, x, text, columns);
    if (P != Pass::hash && block >= 0) store_text(global(view.out) + offset, block_len, Aligned, text);
  }
}

template <Pass P>
__global__ void __launch_bounds__(chunk_threads, blocks_of_multiprocessor)
    run_chunks_kernel(const __grid_constant__ Work work) {
  auto& matrices = *reinterpret_cast<Matrices*>(shared_matrices);
  const std::uint32_t warp = warp_index();
  for (std::uint64_t number = blockIdx.x; number < work.tags.chunks; number += gridDim.x) {
    const std::uint32_t message = find_message(work.tags.first_chunk, work.batch.messages, work.tags.chunks, number);
    const MessageView& view = work.batch.views[message];
    const KeyStream& stream = work.batch.streams[message];
    const std::uint64_t blocks = view.in_len / block_len;  // whole ones
    const std::uint64_t all = (blocks + blocks_of_segment - 1) / blocks_of_segment;
    const std::uint64_t segments = work.tags.chunk_blocks / hash_blocks_of_segment;
    const std::uint64_t begin = (work.tags.first_chunk[message + 1] - 1 - number) * segments;
    const std::uint64_t end = begin + segments < all ? begin + segments : all;
    __syncthreads();  // the matrices and sums before have been read
    if (begin < end) make_matrices(matrices, work.factors, message);
    __syncthreads();
    Element sum{};
    if (begin + warp < end) {
      const bool aligned = are_aligned(view.in, view.out);
      const std::uint64_t block_number = P == Pass::gather ? work.pieces.blocks[message] : 0;
      std::uint64_t segment = begin + warp + (end - 1 - begin - warp) / warps_of_chunk * warps_of_chunk;
#pragma unroll 1
      for (;; segment -= warps_of_chunk) {
        const auto first = static_cast<std::int64_t>(blocks - (segment + 1) * blocks_of_segment);  // negative: none yet
        Columns columns;
        if (first >= 0 && aligned) {
          run_whole_segment<P>(matrices, view, stream, work.pieces, block_number, static_cast<std::uint64_t>(first),
                               columns);
        } else if (aligned) {
          run_any_segment<P, true>(matrices, view, stream, work.pieces, block_number, first, columns);
        } else {
          run_any_segment<P, false>(matrices, view, stream, work.pieces, block_number, first, columns);
        }
        Element factor;
#pragma unroll
        for (int i = 0; i < 5; ++i) factor.limbs[i] = matrices.factors[i][lane_index()];
        sum = multiply_add(columns.number(), factor, sum, matrices.turn);
        if (segment < begin + warps_of_chunk) break;
      }
      sum = multiply(sum, load_factor(work.factors, message, Factors::warps + warp));
    }
    sum = sum_of_lanes(sum, warp_log);
    if (lane_index() == 0) matrices.sums[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      Product all_warps{};
      for (std::uint32_t w = 0; w < warps_of_chunk; ++w) {
        for (int i = 0; i < 5; ++i) all_warps.limbs[i] += matrices.sums[w].limbs[i];
      }
      work.sums[number] = poly1305::reduce(all_warps);
    }
  }
  __syncthreads();  // the matrices are of powers of r
  for (std::uint32_t i = threadIdx.x; i < sizeof(Matrices) / sizeof(uint4); i += chunk_threads) shared_matrices[i] = {};
}

// r^n, and 1 + r + ... + r^(n-1). n is not secret.
struct Series {
  Element power = one();
  Element sum{};

  __device__ __forceinline__ Series(const Element& r, std::uint64_t n) {
#pragma unroll 1
    for (int bit = 63 - __clzll(static_cast<long long>(n)); bit >= 0; --bit) {
      sum = multiply_add(sum, power, sum);
      power = multiply(power, power);
      if ((n >> bit & 1) == 0) continue;
      sum = multiply_add(sum, r, one());
      power = multiply(power, r);
    }
  }
};

// The rest of a block at the end of a text: enciphers it, and goes on with the hash.
template <bool Encrypting>
__device__ __forceinline__ Element run_end(const MessageView& view, const KeyStream& stream, const Element& r,
                                           Element hash) {
  const std::uint64_t whole = view.in_len / block_len * block_len;
  const auto len = static_cast<std::uint32_t>(view.in_len - whole);
  Text64 text = load_text(global(view.in) + whole, len, false);
  Text64 other = text;
  std::uint32_t x[16];
  make_key_stream<1>(&stream, stream.counter + static_cast<std::uint32_t>(view.in_len / block_len), x);
  add_key_stream(other, x);
  store_text(global(view.out) + whole, len, false, other);
  if constexpr (Encrypting) text = other;
#pragma unroll
  for (std::uint32_t i = 0; i < hash_blocks_of_block; ++i) {
    if (16 * i >= len) break;
    Block block = to_block(text.quarters[i]);
#pragma unroll
    for (std::uint32_t b = 0; b < 16; ++b) {
      if (16 * i + b >= len) set_byte(block, b, 0);
    }
    hash = multiply(poly1305::add(hash, to_element(block, 1)), r);
  }
  return hash;
}

// A warp a message, or a lane.
template <bool Encrypting, bool ByWarp>
__global__ void __launch_bounds__(finish_threads) finish_kernel(const __grid_constant__ Work work) {
  constexpr std::uint32_t log = ByWarp ? warp_log : 0;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * finish_threads >> log;
  const std::uint32_t lane = ByWarp ? lane_index() : 0;
  for (std::uint64_t i = (std::uint64_t{blockIdx.x} * finish_threads + threadIdx.x) >> log; i < work.batch.messages;
       i += stride) {
    const auto message = static_cast<std::uint32_t>(i);
    const HashView& hash_view = work.tags.views[message];
    const MessageView& view = work.batch.views[message];
    const Element r = load_factor(work.factors, message, Factors::blocks + 1);
    const Element turn = load_factor(work.factors, message, Factors::turn);
    const auto load = [&](std::uint64_t k) {
      return to_element(ghash::load_block(hash_view.aad, hash_view.aad_len, k), 1);
    };
    const Element* const sums = work.sums + work.tags.first_chunk[message];
    const std::uint64_t chunks = work.tags.first_chunk[message + 1] - work.tags.first_chunk[message];
    Element aad{}, text{};
    if constexpr (ByWarp) {
      aad = sum_by_lanes(hash_view.aad_blocks(), lane, log, make_lane_powers(r, lane, log), load);
      if (chunks > 1) {
        const LanePowers powers = make_lane_powers(power(turn, work.tags.chunk_blocks / chunk_multiple), lane, log);
        text = sum_by_lanes(chunks - 1, lane, log, powers, [&](std::uint64_t k) { return sums[k]; });
      }
      if (chunks != 0) text = poly1305::add(text, sums[chunks - 1]);
      if (lane != 0) continue;
    } else {
#pragma unroll 1
      for (std::uint64_t k = 0; k < hash_view.aad_blocks(); ++k) aad = multiply(poly1305::add(aad, load(k)), r);
      if (chunks != 0) text = sums[0];
      if (chunks > 1) {
        const Element step = power(turn, work.tags.chunk_blocks / chunk_multiple);
#pragma unroll 1
        for (std::uint64_t k = 1; k < chunks; ++k) text = multiply_add(text, step, sums[k]);
      }
    }
    const Series series(r, view.in_len / block_len * hash_blocks_of_block);
    Element hash = multiply_add(aad, series.power, multiply_add(series.sum, two_to_128(), text), r);
    if (view.in_len % block_len != 0) hash = run_end<Encrypting>(view, work.batch.streams[message], r, hash);
    if (work.tags.are_sums) {
      store_sum(work.tags, message, hash);
      continue;
    }
    settle(work.tags, message, multiply(poly1305::add(hash, lengths_of(hash_view)), r));
  }
}

// Whether a lane takes a message at the end: if there are enough of them, with few chunks and little AAD each.
bool finishes_by_lanes(const Work& work) {
  const std::uint64_t messages = work.batch.messages;
  return messages >= least_messages_by_lanes && work.tags.chunks <= 2 * messages &&
         work.tags.most_blocks <= hash_blocks_of_block * work.batch.most_units + most_aad_blocks_by_lanes;
}

template <Pass P>
void run(const Device& device, Stream stream, const Work& work) {
  constexpr bool encrypting = encrypts(P);  // of hash and gather there is no end of a text
  if (work.tags.chunks != 0) {
    const std::uint64_t most = std::uint64_t{blocks_of_multiprocessor} * device.multiprocessors;
    launch(&run_chunks_kernel<P>,
           {static_cast<std::uint32_t>(std::min(work.tags.chunks, most)), chunk_threads, sizeof(Matrices)}, stream,
           work);
  }
  if (finishes_by_lanes(work)) {
    launch(&finish_kernel<encrypting, false>, configuration_of_lanes(device, work.batch.messages, finish_threads, 16),
           stream, work);
  } else {
    launch(&finish_kernel<encrypting, true>,
           configuration_of_lanes(device, std::uint64_t{work.batch.messages} * warp_len, finish_threads, 16), stream,
           work);
  }
}

}  // namespace

std::uint64_t chunk_blocks_for(const Device& device, std::uint64_t blocks) {
  const std::uint64_t wanted = std::uint64_t{device.multiprocessors} * blocks_of_multiprocessor;
  const std::uint64_t even = (blocks + wanted - 1) / wanted;
  return std::max<std::uint64_t>(1, (even + chunk_multiple - 1) / chunk_multiple) * chunk_multiple;
}

void run_chunks(const Device& device, Stream stream, const Batch& batch, const Tags& tags, Pass pass,
                const TextPieces& pieces) {
  Upload memory;
  const auto powers = memory.reserve_on_device<std::uint32_t>(Factors::words_for(batch.messages));
  const auto sums = memory.reserve_on_device<Element>(tags.chunks);
  memory.allocate(stream);
  const Factors factors{memory.device(powers), batch.messages};
  make_factors(device, stream, tags.r, factors);
  const Work work{batch, tags, factors, memory.device(sums), pieces};
  switch (pass) {
    case Pass::encrypt:
      return run<Pass::encrypt>(device, stream, work);
    case Pass::hash:
      return run<Pass::hash>(device, stream, work);
    case Pass::gather:
      return run<Pass::gather>(device, stream, work);
    case Pass::decrypt:
      run<Pass::decrypt>(device, stream, work);
  }
  if (tags.verdicts == nullptr) return;
  wipe_forged(device, stream, {batch.views, batch.first_tile, batch.tiles, batch.messages}, block_len, tags.verdicts);
}

}  // namespace warpcipher::cuda::chacha
