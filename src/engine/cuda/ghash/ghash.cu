// SPDX-License-Identifier: Apache-2.0
// GHASH in two levels. A warp hashes a chunk of a message (view.cuh):
//
//   P_k = sum of X_i H^(e-1-i) over the chunk's blocks, e its end
//
// on tensor cores (tensor.cuh, warpgroup.cuh) or by the kernel here. Then a warp or a block of threads a message sums
// P_k (H^c)^(K-1-k), c the blocks of a chunk and K the number of chunks, which is the same sum again with H^c for H,
// adds the lengths and makes or checks the tag.
//
// Here lane l of w lanes takes blocks l, l + w, ... by Horner's rule in H^w; then products join the lanes. All factors
// are powers 2^j of H or of H^c.
//
// Where messages are many and short, joining 32 lanes would cost more than hashing: four lanes take a message whole,
// its tag included, here or, with one key, on tensor cores (message_rows.cuh).
#include "engine/cuda/ghash/ghash.hpp"

#include <algorithm>
#include <bit>

#include "engine/cuda/batch/aes_batch.hpp"
#include "engine/cuda/ghash/matrices.cuh"
#include "engine/cuda/ghash/tensor.hpp"
#include "engine/cuda/ghash/view.cuh"
#include "engine/cuda/ghash/warpgroup.hpp"
#include "engine/cuda/group_run.hpp"
#include "engine/cuda/keys.hpp"
#include "engine/cuda/launch.hpp"
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
constexpr std::uint32_t few_log = 2;  // the lanes that take a short message
// Blocks a multiprocessor of the kernel for short messages: four leave a lane 64 registers, which is enough for sm_90
// (H200: 2% faster than three); for sm_100 and sm_120 80 are too few.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr std::uint32_t short_blocks = 2;
#else
constexpr std::uint32_t short_blocks = 4;
#endif
constexpr std::uint32_t few_squares = few_log + 1;
constexpr std::uint64_t few_chunk_blocks = 3;  // they cut nothing, but need H^3 beside the squares

// Joins the lanes of a warp: the sum of x P^(31-l) over them, in the first. powers[j] is P^(2^j), j below 5. Every lane
// takes part.
__device__ __forceinline__ Element join_lanes(Element x, const Element* powers) {
#pragma unroll 1
  for (std::uint32_t j = warp_log; j-- > 0;) {
    x = gf128::add(gf128::gcm_multiply(x, powers[j]), from_lane_xor(x, 1u << j));
  }
  return x;
}

// Joins lanes by a power each: the sum of x power over the warp, in all lanes. A product in place of five in a row.
__device__ __forceinline__ Element join_lanes_by(const Element& x, const Element& power) {
  Element sum = gf128::gcm_multiply(x, power);
#pragma unroll
  for (std::uint32_t distance = warp_len / 2; distance > 0; distance /= 2) {
    sum = gf128::add(sum, from_lane_xor(sum, distance));
  }
  return sum;
}

// Lane `lane`'s part of the sum of X_i P^(n-1-i) for i from 0 to n - 1, where 2^log lanes take every 2^log-th block
// each. power is P^(2^log). load(i) gives X_i.
template <class Load>
__device__ __forceinline__ Element sum_of_lane(std::uint64_t n, std::uint32_t lane, std::uint32_t log,
                                               const Element& power, Load&& load) {
  const std::uint64_t rows = (n + (std::uint64_t{1} << log) - 1) >> log;
  const std::uint64_t missing = (rows << log) - n;  // the first row is short at its front
  Element sum{};
  if (rows != 0 && lane >= missing) sum = load(lane - missing);
  for (std::uint64_t row = 1; row < rows; ++row) {
    sum = gf128::add(gf128::gcm_multiply(sum, power), load((row << log) + lane - missing));
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
    static_assert(joining_powers == joining_of_warps + warps, "a power for each warp");
    const std::uint32_t lane = lane_index();
    const Element own = sum_of_lane(chunks, threadIdx.x, block_log, powers[block_log], load);
    const Element part = list.joining != nullptr ? join_lanes_by(own, list.joining[lane]) : join_lanes(own, powers);
    if (lane == 0) of_warps[threadIdx.x / warp_len] = part;
    __syncthreads();
    Element sum{};
    if (threadIdx.x < warp_len && list.joining != nullptr) {
      sum = join_lanes_by(lane < warps ? of_warps[lane] : Element{}, list.joining[joining_of_warps + lane % warps]);
    } else if (threadIdx.x < warp_len) {
      sum = join_lanes(lane < warp_len - warps ? Element{} : of_warps[lane - (warp_len - warps)], powers + warp_log);
    }
    __syncthreads();
    return sum;
  }
}

// Writes or checks the tag of a message whose GHASH, lengths included, is `hash`.
__device__ __forceinline__ void settle(const ChunkList& list, std::uint32_t message, const HashView& view,
                                       const Element& hash, std::uint32_t* verdicts) {
  const Block tag = to_block(hash) ^ (list.masks != nullptr ? list.masks[message] : view.mask);
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

// Lanes: 1 when no message has more than one chunk, else 32 or 512.
template <std::uint32_t Lanes>
__global__ void __launch_bounds__(Lanes <= warp_len ? threads : Lanes)
    finish(const __grid_constant__ ChunkList list, std::uint32_t* verdicts) {
  const std::uint32_t groups = gridDim.x * (blockDim.x / Lanes);
  for (std::uint32_t message = (blockIdx.x * blockDim.x + threadIdx.x) / Lanes; message < list.messages;
       message += groups) {
    const HashView& view = list.views[message];
    Element hash{};
    if constexpr (Lanes == 1) {
      if (view.chunks() != 0) hash = list.sums[list.first_chunk[message]];
    } else {
      hash = sum_of_chunks<Lanes>(list, message);
    }
    if (threadIdx.x % Lanes != 0) continue;
    const Element* const powers = list.powers_of(view.key);  // H, H^2: so neither product waits for the other
    hash = gf128::add(gf128::gcm_multiply(hash, powers[1]), gf128::gcm_multiply(view.lengths(), powers[0]));
    settle(list, message, view, hash, verdicts);
  }
}

// Short messages, four lanes each: the lengths are one more block of the row X_0 ... X_n-1, of which lane l takes
// every fourth from the end, 3 - l blocks before it; at last its sum is multiplied by H^(4-l), so that one product a
// lane joins them.
__global__ void __launch_bounds__(threads, short_blocks)
    hash_short(const __grid_constant__ ChunkList list, std::uint32_t* verdicts) {
  constexpr std::uint32_t lanes = 1u << few_log;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x / lanes;
  const std::uint32_t lane = lane_index() % lanes;
  std::uint64_t first = (std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x - lane_index()) / lanes;  // of the warp
  for (; first < list.messages; first += stride) {
    const std::uint64_t own = first + lane_index() / lanes;
    const bool is_there = own < list.messages;
    const auto message = static_cast<std::uint32_t>(is_there ? own : first);
    const HashView& view = list.views[message];
    const Element* const powers = list.powers_of(view.key);  // H, H^2, H^4, H^3
    const std::uint64_t text_blocks = view.blocks();
    const Chunk text{view, 0, text_blocks};
    const auto load = [&](std::uint64_t i) { return i == text_blocks ? view.lengths() : to_element(text.load(i)); };
    const std::uint64_t missing = lanes - 1 - text_blocks % lanes;  // the first row is short at its front
    Element sum = lane < missing ? Element{} : load(lane - missing);
    const Element power = powers[few_log];
    for (std::uint64_t i = lanes + lane - missing; i <= text_blocks; i += lanes) {
      sum = gf128::add(gf128::gcm_multiply(sum, power), load(i));
    }
    sum = gf128::gcm_multiply(sum, powers[lane < 2 ? 2 + lane : 3 - lane]);
    sum = gf128::add(sum, from_lane_xor(sum, 2));
    sum = gf128::add(sum, from_lane_xor(sum, 1));
    if (is_there && lane == 0) settle(list, message, view, sum, verdicts);
  }
}

// The powers that ChunkList tells of, of key H.
WARPCIPHER_HD inline void fill_powers(Element* powers, Element hash_key, std::uint32_t squares, std::uint32_t chunk_squares,
                               std::uint64_t chunk_blocks) {
  Element power = hash_key;
  for (std::uint32_t j = 0; j < squares + chunk_squares; ++j) {
    if (j == squares) power = gf128::gcm_power(hash_key, chunk_blocks);
    powers[j] = power;
    power = gf128::gcm_square(power);
  }
}

// The powers that ChunkList::joining tells of. power: H^c.
void fill_joining(Element* joining, Element power) {
  Element next = gf128::gcm_one;
  for (std::uint32_t l = warp_len; l-- > 0;) {
    joining[l] = next;
    next = gf128::gcm_multiply(next, power);
  }
  const Element of_warp = next;
  next = gf128::gcm_one;
  for (std::uint32_t w = joining_powers; w-- > joining_of_warps;) {
    joining[w] = next;
    next = gf128::gcm_multiply(next, of_warp);
  }
}

// fill_powers() for all keys, a lane each.
__global__ void __launch_bounds__(threads)
    fill_powers_of_keys(Element* powers, const Element* hash_keys, std::uint32_t keys, std::uint32_t squares,
                        std::uint32_t chunk_squares, std::uint64_t chunk_blocks) {
  for (std::uint32_t key = blockIdx.x * blockDim.x + threadIdx.x; key < keys; key += gridDim.x * blockDim.x) {
    fill_powers(powers + std::size_t{squares + chunk_squares} * key, hash_keys[key], squares, chunk_squares,
                chunk_blocks);
  }
}

// PowerTable, and the powers of H^c behind it, for all keys, a lane each.
__global__ void __launch_bounds__(threads)
    fill_tables_of_keys(Element* powers, const Element* hash_keys, std::uint32_t keys, std::uint32_t chunk_squares,
                        std::uint64_t chunk_blocks) {
  for (std::uint32_t key = blockIdx.x * blockDim.x + threadIdx.x; key < keys; key += gridDim.x * blockDim.x) {
    Element* const table = powers + std::size_t{PowerTable::len + chunk_squares} * key;
    table[0] = hash_keys[key];
    PowerTable::fill(table);
    if (chunk_squares == 0) continue;
    Element power = gf128::gcm_power(table[0], chunk_blocks);
    for (std::uint32_t j = 0; j < chunk_squares; ++j) {
      table[PowerTable::len + j] = power;
      power = gf128::gcm_square(power);
    }
  }
}

// A chunk's blocks where `blocks` are to be so many chunks of such multiples.
std::uint64_t even_chunk(std::uint64_t blocks, std::uint64_t wanted, std::uint64_t multiple) {
  const std::uint64_t even = (blocks + wanted - 1) / wanted;
  return std::max(least_tensor_chunk, (even + multiple - 1) / multiple * multiple);
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
      std::uint64_t{tensor_warps(run.device, form)} * (run.group.messages.size() == 1 ? 1 : tensor_chunks_of_warp);
  const std::uint64_t multiple = form == Form::tensor_warpgroups ? warpgroup_chunk_multiple : tensor_chunk_multiple;
  return even_chunk(total_blocks, wanted, multiple);
}

// Which powers of a key a form reads: ChunkList says what they are.
struct Powers {
  std::uint32_t squares;  // or what a PowerTable has
  std::uint32_t chunk_squares;
  std::uint64_t chunk_blocks;
  bool in_table = false;

  std::uint32_t of_key() const { return squares + chunk_squares; }
};

Powers powers_for(Form form, std::uint64_t most_blocks, std::uint64_t chunk_blocks) {
  if (form == Form::few_lanes) return {few_squares, 1, few_chunk_blocks};
  if (form == Form::tensor_rows) return {tensor_squares, 0, chunk_blocks};
  const std::uint32_t chunk_squares = most_blocks > chunk_blocks ? 2 * warp_log : 0;
  if (form == Form::tensor_many_keys) return {PowerTable::len, chunk_squares, chunk_blocks, true};
  return {form == Form::scalar ? warp_log + 1 : tensor_squares, chunk_squares, chunk_blocks};
}

bool needs_wide_finish(std::uint64_t most_blocks, std::uint64_t chunk_blocks) {
  return most_blocks > chunks_for_wide_finish * chunk_blocks;
}

bool has_chunks(Form form) { return form != Form::few_lanes && form != Form::tensor_rows; }

LaunchShape shape_for(const Device& device, std::uint64_t warps) {
  return shape_of_lanes(device, warps * warp_len, threads, 8);
}

void launch_short(const Device& device, Stream stream, const ChunkList& list, std::uint32_t* verdicts) {
  constexpr std::uint64_t messages_of_warp = warp_len >> few_log;
  launch(&hash_short, shape_for(device, (list.messages + messages_of_warp - 1) / messages_of_warp), stream, list,
         verdicts);
}

// The powers of all keys, made on the device.
void launch_powers(const Device& device, Stream stream, Element* powers, const Element* hash_keys, std::uint32_t keys,
                   const Powers& wanted) {
  if (wanted.in_table) {
    return launch(&fill_tables_of_keys, shape_for(device, (keys + warp_len - 1) / warp_len), stream, powers, hash_keys,
                  keys, wanted.chunk_squares, wanted.chunk_blocks);
  }
  launch(&fill_powers_of_keys, shape_for(device, (keys + warp_len - 1) / warp_len), stream, powers, hash_keys, keys,
         wanted.squares, wanted.chunk_squares, wanted.chunk_blocks);
}

// All of a group, from the list to tags or verdicts.
void hash_group(const Device& device, Stream stream, Form form, const ChunkList& list, std::uint64_t most_blocks,
                std::uint64_t chunk_blocks, std::uint32_t* verdicts) {
  if (form == Form::few_lanes) return launch_short(device, stream, list, verdicts);
  if (form == Form::tensor_rows) return hash_rows(device, stream, list, verdicts);
  if (list.chunks != 0 && form == Form::scalar) launch(&hash_chunks, shape_for(device, list.chunks), stream, list);
  if (list.chunks != 0 && form != Form::scalar) hash_on_tensor_cores(device, stream, form, list);
  if (needs_wide_finish(most_blocks, chunk_blocks)) {
    launch(&finish<1u << block_log>,
           {std::min(list.messages, device.multiprocessors), 1u << block_log, warp_len * sizeof(Element)}, stream, list,
           verdicts);
  } else if (most_blocks > chunk_blocks) {
    launch(&finish<warp_len>, shape_for(device, list.messages), stream, list, verdicts);
  } else {
    launch(&finish<1>, shape_for(device, (list.messages + warp_len - 1) / warp_len), stream, list, verdicts);
  }
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

void authenticate(const GroupRun& run, const AesBatch* batch, std::uint32_t* verdicts) {
  const std::size_t count = run.group.messages.size();
  const std::uint32_t keys = batch != nullptr ? batch->keys() : 1;
  std::size_t aad_len = 0;
  std::uint64_t total_blocks = 0;
  std::uint64_t most_blocks = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Message& message = run.message(i);
    aad_len += message.aad_len;
    const std::uint64_t blocks = view_for(message).blocks();
    total_blocks += blocks;
    most_blocks = std::max(most_blocks, blocks);
  }
  const Form form = choose_form(run.device, {count, keys, total_blocks, most_blocks});
  const Powers wanted = powers_for(form, most_blocks, has_chunks(form) ? blocks_of_chunk(run, form, total_blocks) : 1);
  const std::uint64_t chunk_blocks = wanted.chunk_blocks;
  const bool powers_on_host = batch == nullptr || (!batch->keys_of_host().empty() && !wanted.in_table);
  const bool joins_at_once = batch == nullptr && has_chunks(form) && needs_wide_finish(most_blocks, chunk_blocks);

  Upload upload;
  const auto views = upload.reserve<HashView>(count);
  const auto first_chunk = upload.reserve<std::uint64_t>(count + 1);
  const auto powers_of_host = upload.reserve<Element>(powers_on_host ? wanted.of_key() * keys : 0);
  const auto joining = upload.reserve<Element>(joins_at_once ? joining_powers : 0);
  const auto aad = upload.reserve<std::uint8_t>(aad_len);
  const auto powers_of_batch = upload.reserve_on_device<Element>(powers_on_host ? 0 : wanted.of_key() * keys);
  const auto sums = upload.reserve_on_device<Element>(has_chunks(form) ? total_blocks / chunk_blocks + count : 0);
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
    if (batch != nullptr) view.key = batch->key_of(i);
    upload.host(first_chunk)[i] = chunks;
    chunks += view.chunks();
  }
  upload.host(first_chunk)[count] = chunks;
  if (batch == nullptr) {
    const AesKeyState& key = aes_key_state(*run.message(0).key);
    std::uint8_t block[16];
    first_counter(run.message(0), block);
    aes::encrypt_block(key.schedule, block, block);
    upload.host(views)->mask = cuda::to_block(block, 16);
    secure_wipe(block, sizeof block);
    fill_powers(upload.host(powers_of_host), key.hash_key, wanted.squares, wanted.chunk_squares, chunk_blocks);
    if (joins_at_once) fill_joining(upload.host(joining), upload.host(powers_of_host)[wanted.squares]);
  }
  for (std::uint32_t k = 0; batch != nullptr && powers_on_host && k < keys; ++k) {
    fill_powers(upload.host(powers_of_host) + std::size_t{wanted.of_key()} * k,
                aes_key_state(*batch->keys_of_host()[k]).hash_key, wanted.squares, wanted.chunk_squares, chunk_blocks);
  }
  upload.send();
  const auto powers = powers_on_host ? powers_of_host : powers_of_batch;
  if (!powers_on_host) {
    launch_powers(run.device, run.stream, upload.device(powers), batch->hash_keys(), keys, wanted);
  }
  const ChunkList list{upload.device(views),
                       batch != nullptr ? batch->masks() : nullptr,
                       upload.device(first_chunk),
                       static_cast<std::uint32_t>(count),
                       wanted.of_key(),
                       wanted.squares,
                       upload.device(powers),
                       upload.device(sums),
                       chunks,
                       total_blocks,
                       joins_at_once ? upload.device(joining) : nullptr};
  hash_group(run.device, run.stream, form, list, most_blocks, chunk_blocks, verdicts);
}

std::uint64_t chunk_blocks_for(const Device& device, std::uint64_t blocks) {
  const Form form = has_warpgroup_products(device) ? Form::tensor_warpgroups : Form::tensor_one_key;
  return even_chunk(blocks, tensor_chunks_of_warp * tensor_warps(device, form), warpgroup_chunk_multiple);
}

void authenticate(const Device& device, Stream stream, const DeviceBatch& batch, std::uint32_t* verdicts) {
  const Form form = choose_form(device, {batch.messages, batch.keys, batch.blocks, batch.most_blocks});
  const Powers wanted = powers_for(form, batch.most_blocks, batch.chunk_blocks);
  const StreamBuffer powers(sizeof(Element) * wanted.of_key() * batch.keys, stream);
  launch_powers(device, stream, reinterpret_cast<Element*>(powers.data()), batch.hash_keys, batch.keys, wanted);
  const StreamBuffer sums(has_chunks(form) ? batch.chunks * sizeof(Element) : 0, stream);
  const ChunkList list{batch.views,
                       batch.masks,
                       batch.first_chunk,
                       batch.messages,
                       wanted.of_key(),
                       wanted.squares,
                       reinterpret_cast<const Element*>(powers.data()),
                       reinterpret_cast<Element*>(sums.data()),
                       batch.chunks,
                       batch.blocks};
  hash_group(device, stream, form, list, batch.most_blocks, batch.chunk_blocks, verdicts);
}

}  // namespace warpcipher::cuda::ghash
