// SPDX-License-Identifier: Apache-2.0
// ChaCha20-Poly1305 in one pass. The text of a message, except for the rest of a block at its end, is cut into chunks
// as HashView says, from the end; a block of threads takes a chunk, and its warps take segments of it in turn:
//
//   chunk | segment 7 | 6 | 5 | 4 | 3 | 2 | 1 | segment 0     segments are counted from the end of the text
//   warp        3       2   1   0   3   2   1      0          each warp by Horner's rule in r^(1024 * 4)
//
// A warp first enciphers a tile, 32 blocks, a lane a block, and multiplies the ciphertext that it has in registers
// (below). A second kernel takes each message: it joins the sums of its chunks, adds what all but the ciphertext
// contributes (AAD, the ones at 2^128, the end of the text, lengths), and settles the tag.
#include <algorithm>

#include "engine/cuda/chacha/elements.cuh"
#include "engine/cuda/chacha/instructions.cuh"
#include "engine/cuda/chacha/launches.hpp"
#include "engine/cuda/chacha/rounds.cuh"
#include "engine/cuda/ghash/choose.hpp"
#include "engine/cuda/ghash/view.cuh"
#include "engine/cuda/inputs/message_view.cuh"
#include "engine/cuda/inputs/texts.hpp"
#include "engine/cuda/runtime/intrinsics.cuh"
#include "engine/cuda/runtime/launch.hpp"
#include "engine/cuda/runtime/memory.hpp"

namespace warpcipher::cuda::chacha {

// Poly1305 as a product of matrices of bytes on tensor cores.
//
// A lane has 64 bytes of ciphertext in registers, as it has enciphered them: blocks m_0 to m_3. Those registers are an
// A fragment of the product as they are, 32 bytes of two rows for each block:
//
//             k = 0..15             k = 16..31
//   row g     word 0 of m_s         word 2              lanes l = 4 g + t, t = 0..3: 16 bytes of k are 4 bytes of each
//   row g+8   word 1                word 3              row g + 8 counts 2^32 times as much
//
// The B fragment has, for byte b of a word, the number r^e 2^(8 b), or r^e 2^(64 + 8 b) for the words 2 and 3: its
// bytes, one in each of 20 columns. So C has the sum of all products, a column a byte:
//
//   sum of the tile = sum over g of r^(16 (7 - g)) sum over columns of 2^(8 column) (C[g] + 2^32 C[g + 8])
//
// C adds up over the tiles of a segment, whose matrices have r^128 times as much as the next. Only at its end does a
// lane make a number of its columns, and multiply it.
inline constexpr std::uint32_t chunk_threads = warps_of_chunk * warp_len;

// Shared memory of a block of threads.
struct Matrices {
  static constexpr std::uint32_t fragments = tiles_of_segment * hash_blocks_of_block * warp_len;

  uint4 first[fragments];              // columns 0 to 15: what a lane takes for a block m_s of a tile
  uint2 second[fragments];             // columns 16 to 23
  std::uint32_t factors[5][warp_len];  // of the lane's number: r^(16 (7 - g)) 2^(16 t)
  Element turn;
  Element sums[warps_of_chunk];
};

// The bytes of a number, below 2^130.
struct Bytes {
  std::uint32_t words[5];

  // Bytes n, n - 1, n - 2, n - 3, from the lowest; zeros outside.
  __device__ __forceinline__ std::uint32_t window(std::uint32_t n) const {
    const std::uint32_t word = n / 4, shift = n % 4;
    const std::uint32_t below = word == 0 || word > 5 ? 0 : words[word - 1];
    const std::uint32_t here = word > 4 ? 0 : words[word];
    return byte_permute(below, here, (4 + shift) | (3 + shift) << 4 | (2 + shift) << 8 | (1 + shift) << 12);
  }
};

__device__ __forceinline__ Bytes to_bytes(const Element& x) {
  std::uint32_t limbs[5];
  std::uint32_t carry = 0;
#pragma unroll
  for (int i = 0; i < 5; ++i) limbs[i] = x.limbs[i];
#pragma unroll
  for (int round = 0; round < 2; ++round) {
#pragma unroll
    for (int i = 0; i < 5; ++i) {
      limbs[i] += carry;
      carry = limbs[i] >> 26;
      limbs[i] &= limb_mask;
    }
    carry *= 5;
  }
  limbs[0] += carry;  // 0: after the first round at most limb 0 and those that its carry meets were not below 2^26
  return {{limbs[0] | limbs[1] << 26, limbs[1] >> 6 | limbs[2] << 20, limbs[2] >> 12 | limbs[3] << 14,
           limbs[3] >> 18 | limbs[4] << 8, limbs[4] >> 24}};
}

// By all threads of a block; barriers before and after are the caller's.
__device__ __forceinline__ void make_matrices(Matrices& matrices, const Factors& factors, std::uint32_t message) {
  constexpr std::uint32_t blocks_of_group = 4 * hash_blocks_of_block;  // of the lanes 4 g to 4 g + 3
#pragma unroll 1
  for (std::uint32_t n = threadIdx.x; n < tiles_of_segment * blocks_of_group; n += chunk_threads) {
    const std::uint32_t tile = n / blocks_of_group, block = n % blocks_of_group;
    const std::uint32_t t = block / hash_blocks_of_block, s = block % hash_blocks_of_block;
    const Element power = multiply(load_factor(factors, message, Factors::blocks + blocks_of_group - 1 - block),
                                   load_factor(factors, message, Factors::tiles + tiles_of_segment - 1 - tile));
    const Bytes low = to_bytes(power);
    const Bytes high = to_bytes(multiply(power, two_to_64()));
#pragma unroll
    for (std::uint32_t g = 0; g < 8; ++g) {
      const std::uint32_t at = (tile * hash_blocks_of_block + s) * warp_len + 4 * g + t;
      matrices.first[at] = make_uint4(low.window(g), high.window(g), low.window(8 + g), high.window(8 + g));
      matrices.second[at] = make_uint2(low.window(16 + g), high.window(16 + g));
    }
  }
  if (threadIdx.x < warp_len) {
    const std::uint32_t g = threadIdx.x / 4, t = threadIdx.x % 4;
    const Element shift{{t == 0 ? 1u : t == 1 ? 1u << 16 : 0u, t == 2 ? 1u << 6 : t == 3 ? 1u << 22 : 0u, 0, 0, 0}};
    const Element factor = multiply(load_factor(factors, message, Factors::rows + 7 - g), shift);
#pragma unroll
    for (int i = 0; i < 5; ++i) matrices.factors[i][threadIdx.x] = factor.limbs[i];
    if (threadIdx.x == 0) matrices.turn = load_factor(factors, message, Factors::turn);
  }
}

// The columns of a lane: C, for columns 0 to 7, 8 to 15, 16 to 23.
struct Columns {
  std::int32_t counts[3][4] = {};

  __device__ __forceinline__ void add(const Matrices& matrices, std::uint32_t tile, const Text64& text) {
    const uint4* const of_first = matrices.first + tile * hash_blocks_of_block * warp_len + lane_index();
    const uint2* const of_second = matrices.second + tile * hash_blocks_of_block * warp_len + lane_index();
#pragma unroll
    for (std::uint32_t s = 0; s < hash_blocks_of_block; ++s) {
      const uint4 first = of_first[s * warp_len];
      const uint2 second = of_second[s * warp_len];
      multiply_bytes(counts[0], text.quarters[s], first.x, first.y);
      multiply_bytes(counts[1], text.quarters[s], first.z, first.w);
      multiply_bytes(counts[2], text.quarters[s], second.x, second.y);
    }
  }

  // The number, except for the lane's factor. A count is below 128 * 8 * 255^2 < 2^26, so two columns are below 2^35.
  // Their bit 0 is bit 0, 32, 64, 96, 128 and 160 of the number; 2^130 = 5.
  __device__ __forceinline__ Element number() const {
    static_assert(tiles_of_segment <= 8, "more tiles have larger counts");
    std::uint64_t pairs[6];
#pragma unroll
    for (int i = 0; i < 6; ++i) {
      const std::int32_t(&c)[4] = counts[i / 2];
      const auto low = static_cast<std::uint32_t>(c[i % 2 * 2]), high = static_cast<std::uint32_t>(c[i % 2 * 2 + 1]);
      pairs[i] = low + (std::uint64_t{high} << 8);
    }
    const std::uint64_t at_52 = pairs[2] << 12, at_26 = pairs[1] << 6, at_78 = pairs[3] << 18, at_104 = pairs[4] << 24;
    Product sum;
    sum.limbs[0] = (pairs[0] & limb_mask) + 5 * (at_104 >> 26);
    sum.limbs[1] = (pairs[0] >> 26) + (at_26 & limb_mask) + 5 * (pairs[5] << 4);
    sum.limbs[2] = (at_26 >> 26) + (at_52 & limb_mask);
    sum.limbs[3] = (at_52 >> 26) + (at_78 & limb_mask);
    sum.limbs[4] = (at_78 >> 26) + (at_104 & limb_mask);
    return poly1305::reduce(sum);
  }
};

// The end of a tag.

// The last block: both lengths, in bytes.
__device__ __forceinline__ Element lengths_of(const HashView& view) {
  return to_element({{static_cast<std::uint32_t>(view.aad_len), static_cast<std::uint32_t>(view.aad_len >> 32),
                      static_cast<std::uint32_t>(view.text_len), static_cast<std::uint32_t>(view.text_len >> 32)}},
                    1);
}

// Writes the tag, or compares it with the given one in constant time.
__device__ __forceinline__ void settle(const Tags& tags, std::uint32_t message, const Element& hash) {
  const Block s = tags.s[message];
  Block tag;
  poly1305::store_tag(hash, reinterpret_cast<const std::uint8_t*>(s.words), reinterpret_cast<std::uint8_t*>(tag.words));
  std::uint8_t* const given = global(tags.views[message].tag);
  if (tags.verdicts == nullptr) return store_bytes(given, 16, tag);
  const Block difference = tag ^ load_bytes(given, 16);
  tags.verdicts[message] =
      (difference.words[0] | difference.words[1] | difference.words[2] | difference.words[3]) == 0 ? 1 : 0;
}

// Writes a message part's share of the hash.
__device__ __forceinline__ void store_sum(const Tags& tags, std::uint32_t message, const Element& hash) {
  auto* const sum = reinterpret_cast<std::uint32_t*>(global(tags.views[message].tag));
#pragma unroll
  for (int i = 0; i < 5; ++i) sum[i] = hash.limbs[i];
}

// Dynamic: Matrices.
extern __shared__ uint4 shared_matrices[];

namespace {

constexpr std::uint32_t blocks_of_multiprocessor = 5;
constexpr std::uint64_t start_of_chunk = 2000;  // blocks of Poly1305: the matrices
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
constexpr bool has_pieces(Pass pass) { return pass == Pass::gather || pass == Pass::scatter; }

// Block `block` of the text of a message.
__device__ __forceinline__ std::uint8_t* in_pieces(const TextPieces& pieces, std::uint64_t number,
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
    if constexpr (P == Pass::scatter) out = in_pieces(pieces, number, first + warp_len * tile);
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
    if constexpr (P == Pass::scatter) {
      if (block >= 0)
        store_text(in_pieces(pieces, number, static_cast<std::uint64_t>(block)), block_len, Aligned, text);
    } else if (P != Pass::hash && block >= 0) {
      store_text(global(view.out) + offset, block_len, Aligned, text);
    }
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
      const std::uint64_t block_number = has_pieces(P) ? work.pieces.blocks[message] : 0;
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

// The rest of a block at the end of a text: enciphers it, and continues with the hash.
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
  constexpr bool encrypting = encrypts(P);  // hash and pieces have no end of a text
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

std::uint64_t chunk_blocks_for(const Device& device, std::uint64_t blocks, std::uint64_t messages) {
  const std::uint64_t workers = std::uint64_t{device.multiprocessors} * blocks_of_multiprocessor;
  return ghash::even_chunk({workers, start_of_chunk, 1, chunk_multiple, chunk_multiple}, blocks, messages);
}

void run_chunks(const Device& device, Stream stream, const Batch& batch, const Tags& tags, Pass pass,
                const TextPieces& pieces) {
  Upload memory;
  const bool are_made = tags.factors != nullptr;
  const auto powers = memory.reserve_on_device<std::uint32_t>(are_made ? 0 : Factors::words_for(batch.messages));
  const auto sums = memory.reserve_on_device<Element>(are_made ? 0 : tags.chunks);
  memory.allocate(stream);
  const Factors factors{are_made ? tags.factors : memory.device(powers), batch.messages};
  if (!are_made) make_factors(device, stream, tags.r, factors);
  const Work work{batch, tags, factors, are_made ? tags.sums : memory.device(sums), pieces};
  switch (pass) {
    case Pass::encrypt: return run<Pass::encrypt>(device, stream, work);
    case Pass::hash: return run<Pass::hash>(device, stream, work);
    case Pass::gather: return run<Pass::gather>(device, stream, work);
    case Pass::scatter: return run<Pass::scatter>(device, stream, work);
    case Pass::decrypt: run<Pass::decrypt>(device, stream, work);
  }
  if (tags.verdicts == nullptr) return;
  wipe_forged(device, stream, {batch.views, batch.first_tile, batch.tiles, batch.messages}, block_len, tags.verdicts);
}

}  // namespace warpcipher::cuda::chacha
