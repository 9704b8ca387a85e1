// SPDX-License-Identifier: Apache-2.0
// Prepares the inputs of GHASH's kernels, and launches the kernels in order.
#include <algorithm>
#include <bit>
#include <optional>

#include "engine/cuda/ghash/choose.hpp"
#include "engine/cuda/ghash/ghash.hpp"
#include "engine/cuda/ghash/launches.hpp"
#include "engine/cuda/ghash/matrices.cuh"
#include "engine/cuda/ghash/view.cuh"
#include "engine/cuda/inputs/keys.hpp"
#include "engine/cuda/inputs/order.hpp"
#include "engine/cuda/runtime/launch.hpp"
#include "engine/cuda/runtime/memory.hpp"

namespace warpcipher::cuda::ghash {

namespace {

using gf128::Element;

constexpr std::uint32_t least_chunk_log = 8;         // scalar: 256 blocks; for fewer, joining lanes is slower
constexpr std::uint64_t wanted_chunks = 8192;        // scalar: several for every warp of the largest GPUs
constexpr std::uint64_t least_tensor_chunk = 512;    // blocks
constexpr std::uint64_t tensor_chunks_of_warp = 4;   // of a batch, so that warps end together
constexpr std::uint64_t tensor_chunk_multiple = 64;  // blocks of a step
constexpr std::uint64_t start_of_chunk = 400;        // blocks

bool has_chunks(GhashAlgorithm algorithm) {
  return algorithm != GhashAlgorithm::few_lanes && algorithm != GhashAlgorithm::tensor_rows;
}

std::uint32_t ceil_log2(std::uint64_t x) { return x <= 1 ? 0 : static_cast<std::uint32_t>(std::bit_width(x - 1)); }

Turns turns_of(const Device& device, GhashAlgorithm algorithm) {
  return {tensor_warps(device, algorithm), start_of_chunk, tensor_chunks_of_warp,
          algorithm == GhashAlgorithm::tensor_warpgroups ? warpgroup_chunk_multiple : tensor_chunk_multiple,
          least_tensor_chunk};
}

Powers powers_for(GhashAlgorithm algorithm, std::uint64_t most_blocks, std::uint64_t chunk_blocks) {
  if (algorithm == GhashAlgorithm::few_lanes) return {short_squares, 1, short_chunk_blocks};
  if (algorithm == GhashAlgorithm::tensor_rows) return {tensor_squares, 0, chunk_blocks};
  const std::uint32_t chunk_squares = most_blocks > chunk_blocks ? chunk_squares_of_finish : 0;
  if (algorithm == GhashAlgorithm::tensor_many_keys) return {PowerTable::len, chunk_squares, chunk_blocks, true};
  return {algorithm == GhashAlgorithm::scalar ? scalar_squares : tensor_squares, chunk_squares, chunk_blocks};
}

// Whether there is a single message, whose chunks a block of threads joins.
bool joins_at_once(GhashAlgorithm algorithm, const Work& work, std::uint64_t chunk_blocks) {
  return has_chunks(algorithm) && work.messages == 1 && needs_wide_finish(work.most_blocks, chunk_blocks);
}

// Runs the kernels, from the list to tags or verdicts.
void run_kernels(const Device& device, Stream stream, GhashAlgorithm algorithm, const ChunkList& list,
                 std::uint64_t most_blocks, std::uint64_t chunk_blocks, std::uint32_t* verdicts) {
  if (algorithm == GhashAlgorithm::few_lanes) return hash_short(device, stream, list, verdicts);
  if (algorithm == GhashAlgorithm::tensor_rows) return hash_rows(device, stream, list, verdicts);
  if (list.chunks != 0 && algorithm == GhashAlgorithm::scalar) hash_chunks(device, stream, list);
  if (list.chunks != 0 && algorithm != GhashAlgorithm::scalar) hash_on_tensor_cores(device, stream, algorithm, list);
  finish_tags(device, stream, list, most_blocks, chunk_blocks, verdicts);
}

}  // namespace

HashView hash_view_of(const Message& message) {
  HashView view{};
  // GCM hashes the ciphertext, GCM-SIV the plaintext.
  const bool hashes_output =
      (message.direction == Direction::encrypt) != (message.algorithm().mode.id == Mode::gcm_siv);
  view.text = hashes_output ? message.out : message.in;
  view.tag = message.tag;
  view.aad_len = message.aad_len;
  view.text_len = message.in_len;
  view.tag_len = static_cast<std::uint32_t>(message.tag_len);
  return view;
}

// Scalar: a power of two, for several chunks for each warp.
std::uint64_t chunk_blocks_for(const Device& device, GhashAlgorithm algorithm, const Work& work) {
  if (!has_chunks(algorithm)) return 1;
  if (algorithm == GhashAlgorithm::scalar) {
    return std::uint64_t{1} << std::max(least_chunk_log, ceil_log2(work.blocks / wanted_chunks));
  }
  Turns turns = turns_of(device, algorithm);
  if (work.messages == 1) turns.wanted = 1;
  return even_chunk(turns, work.blocks, work.messages);
}

std::uint64_t estimate_chunk_blocks(const Device& device, std::uint64_t blocks, std::uint64_t messages) {
  Turns turns = turns_of(
      device, has_warpgroup_products(device) ? GhashAlgorithm::tensor_warpgroups : GhashAlgorithm::tensor_one_key);
  turns.multiple = warpgroup_chunk_multiple;
  return even_chunk(turns, blocks, messages);
}

std::size_t powers_of_host(GhashAlgorithm algorithm, const Work& work, std::uint64_t chunk_blocks) {
  const Powers wanted = powers_for(algorithm, work.most_blocks, chunk_blocks);
  if (wanted.in_table) return 0;
  return wanted.of_key() * work.keys + (joins_at_once(algorithm, work, chunk_blocks) ? joining_powers : 0);
}

void fill_powers_of_host(Element* powers, HashBatch& batch, const Element* on_device) {
  const Powers wanted = powers_for(batch.algorithm, batch.work.most_blocks, batch.chunk_blocks);
  batch.powers = on_device;
  for (const Key* key : batch.keys_of_host) {
    fill_powers(powers, aes_key_state(*key).hash_key, wanted);
    powers += wanted.of_key();
    on_device += wanted.of_key();
  }
  if (!joins_at_once(batch.algorithm, batch.work, batch.chunk_blocks)) return;
  fill_joining(powers, *(powers - wanted.chunk_squares));
  batch.joining = on_device;
}

void authenticate(const Device& device, Stream stream, const HashBatch& batch, std::uint32_t* verdicts) {
  const GhashAlgorithm algorithm = batch.algorithm;
  const bool has_rows_apart = batch.in_rows.messages != 0 && algorithm != GhashAlgorithm::tensor_rows;
  Powers wanted = powers_for(algorithm, batch.work.most_blocks, batch.chunk_blocks);
  if (has_rows_apart) wanted.squares = std::max(wanted.squares, tensor_squares);
  const std::size_t keys = batch.work.keys;
  const bool on_host = batch.only_hash_key != nullptr || !batch.keys_of_host.empty();
  const bool powers_on_host = on_host && !wanted.in_table;
  Upload upload;
  const Element* powers = batch.powers;
  Element* sums = batch.sums;
  if (powers == nullptr) {
    const auto of_host = upload.reserve<Element>(powers_on_host ? wanted.of_key() * keys : 0);
    const auto of_device = upload.reserve_on_device<Element>(powers_on_host ? 0 : wanted.of_key() * keys);
    const auto of_chunks = upload.reserve_on_device<Element>(has_chunks(algorithm) ? batch.chunks : 0);
    upload.allocate(stream);
    for (std::size_t k = 0; powers_on_host && k < keys; ++k) {
      const bool is_only = batch.only_hash_key != nullptr;
      fill_powers(upload.host(of_host) + wanted.of_key() * k,
                  is_only ? *batch.only_hash_key : aes_key_state(*batch.keys_of_host[k]).hash_key, wanted);
    }
    upload.send();
    powers = upload.device(powers_on_host ? of_host : of_device);
    sums = upload.device(of_chunks);
    if (!powers_on_host) {
      fill_powers_of_keys(device, stream, upload.device(of_device), batch.hash_keys, static_cast<std::uint32_t>(keys),
                          wanted);
    }
  }
  const auto messages = static_cast<std::uint32_t>(batch.work.messages);
  ChunkList list{batch.views, batch.masks, batch.first_chunk, messages,      wanted.of_key(), wanted.squares,
                 powers,      sums,        batch.chunks,      batch.joining, batch.polyvals,  batch.is_aligned};
  std::optional<LengthOrder> order;
  const bool are_alike = batch.work.blocks == batch.work.most_blocks * batch.work.messages;
  if (batch.in_rows.messages != 0 && !are_alike) order.emplace(device, stream, batch.views, messages);
  if (has_rows_apart) {
    ChunkList rows = list;
    rows.messages = static_cast<std::uint32_t>(batch.in_rows.messages);
    rows.order = order->get() + (messages - rows.messages);  // the longest come first
    hash_rows(device, stream, rows, verdicts);
    list.least_chunked = batch.in_rows.least_chunked;
  } else if (order) {
    list.order = order->get();
  }
  run_kernels(device, stream, algorithm, list, batch.work.most_blocks, batch.chunk_blocks, verdicts);
}

Work work_of(const Message& message) {
  const std::uint64_t blocks = hash_view_of(message).blocks();
  return {1, 1, blocks, blocks};
}

void authenticate_one(const Device& device, Stream stream, GhashAlgorithm algorithm, const Message& message,
                      const Block& mask, std::uint32_t* verdicts) {
  HashView view = hash_view_of(message);
  view.mask = mask;
  const Work work = work_of(message);
  const Powers wanted = powers_for(algorithm, work.most_blocks, chunk_blocks_for(device, algorithm, work));
  view.chunk_blocks = wanted.chunk_blocks;
  const bool is_joined = joins_at_once(algorithm, work, wanted.chunk_blocks);
  Upload upload;
  const auto views = upload.reserve<HashView>(1);
  const auto first_chunk = upload.reserve<std::uint64_t>(2);
  const auto powers = upload.reserve<Element>(wanted.of_key());
  const auto joining = upload.reserve<Element>(is_joined ? joining_powers : 0);
  const auto aad = upload.reserve<std::uint8_t>(message.aad_len);
  const auto sums = upload.reserve_on_device<Element>(has_chunks(algorithm) ? view.chunks() : 0);
  upload.allocate(stream);
  view.aad = upload.device(aad);
  *upload.host(views) = view;
  upload.host(first_chunk)[0] = 0;
  upload.host(first_chunk)[1] = view.chunks();
  std::copy_n(message.aad, message.aad_len, upload.host(aad));
  fill_powers(upload.host(powers), aes_key_state(*message.key).hash_key, wanted);
  if (is_joined) fill_joining(upload.host(joining), upload.host(powers)[wanted.squares]);
  upload.send();
  const ChunkList list{upload.device(views),
                       nullptr,
                       upload.device(first_chunk),
                       1,
                       wanted.of_key(),
                       wanted.squares,
                       upload.device(powers),
                       upload.device(sums),
                       view.chunks(),
                       is_joined ? upload.device(joining) : nullptr,
                       nullptr,
                       reinterpret_cast<std::uintptr_t>(view.text) % 16 == 0};
  run_kernels(device, stream, algorithm, list, work.most_blocks, wanted.chunk_blocks, verdicts);
}

namespace {

using gf128::Element;

constexpr std::uint32_t threads = 256;

WARPCIPHER_HD inline void fill_squares(Element* powers, Element hash_key, std::uint32_t squares, std::uint32_t chunk_squares,
                                std::uint64_t chunk_blocks) {
  Element power = hash_key;
  for (std::uint32_t j = 0; j < squares + chunk_squares; ++j) {
    if (j == squares) power = gf128::gcm_power(hash_key, chunk_blocks);
    powers[j] = power;
    power = gf128::gcm_square(power);
  }
}

// The powers of all keys, one key in each lane.
__global__ void __launch_bounds__(threads)
    fill_squares_of_keys(Element* powers, const Element* hash_keys, std::uint32_t keys, std::uint32_t squares,
                         std::uint32_t chunk_squares, std::uint64_t chunk_blocks) {
  for (std::uint32_t key = blockIdx.x * blockDim.x + threadIdx.x; key < keys; key += gridDim.x * blockDim.x) {
    fill_squares(powers + std::size_t{squares + chunk_squares} * key, hash_keys[key], squares, chunk_squares,
                 chunk_blocks);
  }
}

// A PowerTable and, after it, the powers of H^c, for all keys, one key in each lane.
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

}  // namespace

void fill_powers(Element* powers, Element hash_key, const Powers& wanted) {
  fill_squares(powers, hash_key, wanted.squares, wanted.chunk_squares, wanted.chunk_blocks);
}

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

void fill_powers_of_keys(const Device& device, Stream stream, Element* powers, const Element* hash_keys,
                         std::uint32_t keys, const Powers& wanted) {
  const LaunchConfiguration configuration = configuration_of_lanes(device, keys, threads, 8);
  if (wanted.in_table) {
    return launch(&fill_tables_of_keys, configuration, stream, powers, hash_keys, keys, wanted.chunk_squares,
                  wanted.chunk_blocks);
  }
  launch(&fill_squares_of_keys, configuration, stream, powers, hash_keys, keys, wanted.squares, wanted.chunk_squares,
         wanted.chunk_blocks);
}

}  // namespace warpcipher::cuda::ghash
