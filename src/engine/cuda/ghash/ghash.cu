// SPDX-License-Identifier: Apache-2.0
// GHASH in two levels. A warp hashes a chunk of a message (view.cuh):
//
//   P_k = sum of X_i H^(e-1-i) over the chunk's blocks, e its end
//
// on tensor cores (tensor.cuh) or by the kernel here. Then a warp or a block of threads a message sums P_k
// (H^c)^(K-1-k), c the blocks of a chunk and K the number of chunks, which is the same sum again with H^c for H, adds
// the lengths and makes or checks the tag.
//
// Here lane l of w lanes takes blocks l, l + w, ... by Horner's rule in H^w; then products join the lanes. All factors
// are powers 2^j of H or of H^c, which the host makes.
#include "engine/cuda/ghash/ghash.hpp"

#include <algorithm>
#include <bit>

#include "engine/cuda/ghash/tensor.hpp"
#include "engine/cuda/ghash/view.cuh"
#include "engine/cuda/keys.hpp"
#include "engine/cuda/lane_table/blocks.hpp"
#include "engine/cuda/memory.hpp"

namespace warpcipher::cuda::ghash {

// Dynamic: a sum for each warp of a block.
extern __shared__ uint4 shared_memory[];

namespace {

using gf128::Element;

constexpr std::uint32_t warp_log = 5;
constexpr std::uint32_t block_log = 9;                // more threads would leave a lane too few registers for a product
constexpr std::uint32_t least_chunk_log = 8;          // scalar: below 256 blocks, joining lanes costs more than hashing
constexpr std::uint64_t wanted_chunks = 8192;         // scalar: some for every warp of the largest GPUs
constexpr std::uint64_t least_tensor_chunk = 512;     // blocks
constexpr std::uint64_t tensor_chunks_of_warp = 4;    // of a batch, so that warps end together
constexpr std::uint64_t tensor_chunk_multiple = 64;   // blocks of a step
constexpr std::uint64_t chunks_for_wide_finish = 64;  // of one message
constexpr std::uint32_t threads = 256;

// Joins the lanes of a warp: the sum of x P^(31-l) over lanes l, in lane 0. powers[j] is P^(2^j), j from 0 to 4.
__device__ __forceinline__ Element join_lanes(Element x, const Element* powers) {
#pragma unroll 1
  for (std::uint32_t j = warp_log; j-- > 0;) {
    x = gf128::add(gf128::gcm_multiply(x, powers[j]), from_lane_xor(x, 1u << j));
  }
  return x;
}

// Lane `lane`'s part of the sum of X_i P^(n-1-i) for i from 0 to n - 1, where 2^log lanes take every 2^log-th block
// each. power is P^(2^log). load(i) gives X_i.
template <class Load>
__device__ __forceinline__ Element sum_of_lane(std::uint64_t n, std::uint32_t lane, std::uint32_t log,
                                               const Element& power, Load&& load) {
  const std::uint64_t rows = (n + (std::uint64_t{1} << log) - 1) >> log;
  const std::uint64_t missing = (rows << log) - n;  // the first row is short at its front
  Element sum{};
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t i = (row << log) + lane;
    const Element x = i < missing ? Element{} : load(i - missing);
    sum = gf128::add(gf128::gcm_multiply(sum, power), x);
  }
  return sum;
}

__global__ void __launch_bounds__(threads) hash_chunks(const __grid_constant__ ChunkList list) {
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (blockDim.x / warp_len);
  for (std::uint64_t number = blockIdx.x + std::uint64_t{gridDim.x} * (threadIdx.x / warp_len); number < list.chunks;
       number += warps) {
    const Chunk chunk = find_chunk(list, number);
    const Element* const powers = list.powers_of(chunk.view.key);
    const Element part = sum_of_lane(chunk.blocks, lane_index(), warp_log, powers[warp_log],
                                     [&](std::uint64_t i) { return to_element(chunk.load(i)); });
    const Element sum = join_lanes(part, powers);
    if (lane_index() == 0) list.sums[number] = sum;
  }
}

// The hash of a message's chunks, in lane 0. Lanes: 32, a warp, or 512, a block.
template <std::uint32_t Lanes>
__device__ __forceinline__ Element sum_of_chunks(const ChunkList& list, std::uint32_t message) {
  const HashView& view = list.views[message];
  const Element* const sums = list.sums + list.first_chunk[message];
  const Element* const powers = list.powers_of(view.key) + list.chunk_powers;
  const std::uint64_t chunks = view.chunks();
  if (chunks <= 1) return chunks == 0 ? Element{} : sums[0];
  const auto load = [&](std::uint64_t i) { return sums[i]; };
  if constexpr (Lanes == warp_len) {
    return join_lanes(sum_of_lane(chunks, lane_index(), warp_log, powers[warp_log], load), powers);
  } else {
    constexpr std::uint32_t warps = Lanes / warp_len;
    static_assert(Lanes == 1u << block_log && warps <= warp_len, "the lanes of one warp join the sums of all");
    auto* const of_warps = reinterpret_cast<Element*>(shared_memory);
    const Element part = join_lanes(sum_of_lane(chunks, threadIdx.x, block_log, powers[block_log], load), powers);
    if (lane_index() == 0) of_warps[threadIdx.x / warp_len] = part;
    __syncthreads();
    Element sum{};
    if (threadIdx.x < warp_len) {
      const std::uint32_t lane = lane_index();
      sum = join_lanes(lane < warp_len - warps ? Element{} : of_warps[lane - (warp_len - warps)], powers + warp_log);
    }
    __syncthreads();
    return sum;
  }
}

template <std::uint32_t Lanes>
__global__ void __launch_bounds__(Lanes == warp_len ? threads : Lanes)
    finish(const __grid_constant__ ChunkList list, std::uint32_t* verdicts) {
  const std::uint32_t groups = gridDim.x * (blockDim.x / Lanes);
  for (std::uint32_t message = (blockIdx.x * blockDim.x + threadIdx.x) / Lanes; message < list.messages;
       message += groups) {
    const HashView& view = list.views[message];
    Element hash = sum_of_chunks<Lanes>(list, message);
    if (threadIdx.x % Lanes != 0) continue;
    const Element hash_key = list.powers_of(view.key)[0];
    hash = gf128::gcm_multiply(hash, hash_key);
    hash = gf128::add(hash, {8 * view.aad_len, 8 * view.text_len});
    const Block tag = to_block(gf128::gcm_multiply(hash, hash_key)) ^ view.mask;
    if (verdicts == nullptr) {
      store_bytes(global(view.tag), view.tag_len, tag);
    } else {
      const Block difference = tag ^ load_bytes(global(view.tag), view.tag_len);
      std::uint32_t bits = 0;
#pragma unroll
      for (std::uint32_t i = 0; i < 16; ++i) bits |= i < view.tag_len ? get_byte(difference, i) : 0;
      verdicts[message] = bits == 0 ? 1 : 0;
    }
  }
}

std::uint32_t ceil_log2(std::uint64_t x) { return x <= 1 ? 0 : static_cast<std::uint32_t>(std::bit_width(x - 1)); }

HashView view_for(const Message& message) {
  HashView view{};
  view.text = message.direction == Direction::encrypt ? message.out : message.in;
  view.tag = message.tag;
  view.aad_len = message.aad_len;
  view.text_len = message.in_len;
  view.tag_len = static_cast<std::uint32_t>(message.tag_len);
  return view;
}

// Scalar: a power of two, for some chunks a warp. Tensor: one message is shared out evenly, a batch in smaller pieces.
std::uint64_t blocks_of_chunk(const GroupRun& run, Form form, std::uint64_t total_blocks) {
  if (form == Form::scalar) {
    return std::uint64_t{1} << std::max(least_chunk_log, ceil_log2(total_blocks / wanted_chunks));
  }
  const std::uint64_t wanted =
      std::uint64_t{tensor_warps(run.device)} * (run.group.messages.size() == 1 ? 1 : tensor_chunks_of_warp);
  const std::uint64_t even = (total_blocks + wanted - 1) / wanted;
  return std::max(least_tensor_chunk,
                  (even + tensor_chunk_multiple - 1) / tensor_chunk_multiple * tensor_chunk_multiple);
}

// squares[j] = a^(2^j), j below count.
void fill_squares(Element* squares, std::uint32_t count, Element a) {
  for (std::uint32_t j = 0; j < count; ++j) {
    squares[j] = a;
    a = gf128::gcm_multiply(a, a);
  }
}

LaunchShape shape_for(const Device& device, std::uint64_t warps) {
  const std::uint64_t wanted = (warps + threads / warp_len - 1) / (threads / warp_len);
  const std::uint64_t most = 8 * std::uint64_t{device.multiprocessors};
  return {static_cast<std::uint32_t>(wanted < most ? wanted : most), threads};
}

}  // namespace

void first_counter(const Message& message, std::uint8_t (&counter)[16]) {
  if (message.iv_len == 12) {
    std::copy_n(message.iv, 12, counter);
    store_be32(counter + 12, 1);
    return;
  }
  const Element hash_key = aes_key_state(*message.key).hash_key;
  Element hash = gf128::ghash({}, hash_key, message.iv, message.iv_len / 16);
  if (message.iv_len % 16 != 0) {
    std::uint8_t last[16] = {};
    std::copy_n(message.iv + message.iv_len / 16 * 16, message.iv_len % 16, last);
    hash = gf128::ghash(hash, hash_key, last, 1);
  }
  hash = gf128::gcm_multiply(gf128::add(hash, {0, 8 * std::uint64_t{message.iv_len}}), hash_key);
  gf128::store(counter, hash);
}

void authenticate(const GroupRun& run, std::uint32_t* verdicts) {
  const std::size_t count = run.group.messages.size();
  KeyList keys;
  std::size_t aad_len = 0;
  std::uint64_t total_blocks = 0;
  std::uint64_t most_blocks = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Message& message = run.message(i);
    keys.number(*message.key);
    aad_len += message.aad_len;
    const std::uint64_t blocks = view_for(message).blocks();
    total_blocks += blocks;
    most_blocks = std::max(most_blocks, blocks);
  }
  const Form form = choose_form(run.device, keys.keys().size(), total_blocks);
  const std::uint64_t chunk_blocks = blocks_of_chunk(run, form, total_blocks);
  const std::uint32_t squares = form == Form::scalar ? warp_log + 1 : tensor_squares;
  const std::uint32_t chunk_squares = most_blocks > chunk_blocks ? 2 * warp_log : 0;
  const std::uint32_t powers_of_key = squares + chunk_squares;

  Upload upload;
  const auto views = upload.reserve<HashView>(count);
  const auto first_chunk = upload.reserve<std::uint64_t>(count + 1);
  const auto powers = upload.reserve<Element>(powers_of_key * keys.keys().size());
  const auto aad = upload.reserve<std::uint8_t>(aad_len);
  const bool device_masks = keys.keys().size() == 1 && count >= lane_table::blocks_worth_a_launch;
  const auto masks = upload.reserve<Block>(device_masks ? count : 0);
  upload.allocate(run.stream);
  std::uint64_t chunks = 0;
  std::size_t aad_offset = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Message& message = run.message(i);
    HashView& view = upload.host(views)[i];
    view = view_for(message);
    view.aad = upload.device(aad) + aad_offset;
    std::copy_n(message.aad, message.aad_len, upload.host(aad) + aad_offset);
    aad_offset += message.aad_len;
    view.chunk_blocks = chunk_blocks;
    view.key = keys.number(*message.key);
    std::uint8_t block[16];
    first_counter(message, block);
    if (device_masks) {
      upload.host(masks)[i] = cuda::to_block(block, 16);
    } else {
      aes::encrypt_block(aes_key_state(*message.key).schedule, block, block);
      view.mask = cuda::to_block(block, 16);
    }
    secure_wipe(block, sizeof block);
    upload.host(first_chunk)[i] = chunks;
    chunks += view.chunks();
  }
  upload.host(first_chunk)[count] = chunks;
  for (std::size_t k = 0; k < keys.keys().size(); ++k) {
    const Element& hash_key = aes_key_state(*keys.keys()[k]).hash_key;
    Element* const square = upload.host(powers) + powers_of_key * k;
    fill_squares(square, squares, hash_key);
    if (chunk_squares != 0) fill_squares(square + squares, chunk_squares, gf128::gcm_power(hash_key, chunk_blocks));
  }
  upload.send();
  if (device_masks) {
    lane_table::encrypt_blocks(run.device, run.stream, aes_key_state(*keys.keys()[0]).encryption_words,
                               run.group.algorithm->cipher.key_len, upload.device(masks), count,
                               &upload.device(views)->mask, sizeof(HashView));
  }

  const StreamBuffer sums(chunks * sizeof(Element), run.stream);
  const ChunkList list{upload.device(views),
                       upload.device(first_chunk),
                       static_cast<std::uint32_t>(count),
                       powers_of_key,
                       squares,
                       upload.device(powers),
                       reinterpret_cast<Element*>(sums.data()),
                       chunks,
                       total_blocks};
  if (chunks != 0 && form == Form::scalar) launch(&hash_chunks, shape_for(run.device, chunks), run.stream, list);
  if (chunks != 0 && form != Form::scalar) hash_on_tensor_cores(run.device, run.stream, form, list);
  if (most_blocks > chunks_for_wide_finish * chunk_blocks) {
    const auto blocks = static_cast<std::uint32_t>(std::min<std::size_t>(count, run.device.multiprocessors));
    launch(&finish<1u << block_log>, {blocks, 1u << block_log, warp_len * sizeof(Element)}, run.stream, list, verdicts);
  } else {
    launch(&finish<warp_len>, shape_for(run.device, count), run.stream, list, verdicts);
  }
}

}  // namespace warpcipher::cuda::ghash
