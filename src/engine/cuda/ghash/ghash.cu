// SPDX-License-Identifier: Apache-2.0
// GHASH in two levels. AAD and ciphertext of a message, each padded with zeros to blocks, are one row of n blocks X_0 ...
// X_n-1, cut from the back into chunks of c blocks (only the first is short). A warp hashes a chunk:
//
//   P_k = sum of X_i H^(e-1-i) over the chunk's blocks, e its end
//
// and then one warp a message sums P_k (H^c)^(K-1-k), which is the same sum again with H^c for H, adds the lengths and
// makes or checks the tag. Inside a warp, lane l takes blocks l, l + 32, ... by Horner's rule in H^32; five products
// join the lanes. All factors are H^(2^j), so a table of squares is all that a key needs.
#include "engine/cuda/ghash/ghash.hpp"

#include <algorithm>
#include <bit>

#include "cipher/gf128.hpp"
#include "engine/cuda/block.cuh"
#include "engine/cuda/keys.hpp"
#include "engine/cuda/memory.hpp"
#include "engine/cuda/message_view.cuh"

namespace warpcipher::cuda::ghash {
namespace {

using gf128::Element;

constexpr std::uint32_t warp_log = 5;
constexpr std::uint32_t least_chunk_log = 8;    // 256 blocks: below that, joining lanes costs more than hashing
constexpr std::uint64_t wanted_chunks = 8192;   // of a group: some for every warp of the largest GPUs
constexpr std::uint32_t threads = 256;

struct HashView {
  const std::uint8_t* aad;   // device memory
  const std::uint8_t* text;  // ciphertext
  std::uint8_t* tag;
  std::uint64_t aad_len;
  std::uint64_t text_len;
  std::uint64_t chunk_blocks;
  std::uint32_t chunk_log;  // H^chunk_blocks is power number chunk_log, unless there is just one chunk
  std::uint32_t tag_len;
  std::uint32_t key;
  Block mask;  // E(J0)

  WARPCIPHER_HD std::uint64_t aad_blocks() const { return (aad_len + 15) / 16; }
  WARPCIPHER_HD std::uint64_t blocks() const { return aad_blocks() + (text_len + 15) / 16; }
  WARPCIPHER_HD std::uint64_t chunks() const { return (blocks() + chunk_blocks - 1) / chunk_blocks; }
};

__device__ __forceinline__ Element to_element(const Block& block) {
  return {std::uint64_t{byte_swap(block.words[0])} << 32 | byte_swap(block.words[1]),
          std::uint64_t{byte_swap(block.words[2])} << 32 | byte_swap(block.words[3])};
}

__device__ __forceinline__ Block to_block(const Element& element) {
  return {{byte_swap(static_cast<std::uint32_t>(element.high >> 32)), byte_swap(static_cast<std::uint32_t>(element.high)),
           byte_swap(static_cast<std::uint32_t>(element.low >> 32)), byte_swap(static_cast<std::uint32_t>(element.low))}};
}

// Block `i` of text of `len` bytes, zeros behind its end.
__device__ __forceinline__ Block load_block(const std::uint8_t* text, std::uint64_t len, std::uint64_t i) {
  const std::uint8_t* p = text + 16 * i;
  const std::uint64_t left = len - 16 * i;
  if (left >= 16 && (reinterpret_cast<std::uintptr_t>(p) & 15) == 0) return load_aligned(p);
  return load_bytes(p, left < 16 ? static_cast<std::uint32_t>(left) : 16);
}

// The sum of X_i P^(n-1-i) for i from 0 to n - 1, in lane 0. powers[j] is P^(2^j), j from 0 to 5. load(i) gives X_i.
template <class Load>
__device__ __forceinline__ Element sum_of_powers(std::uint64_t n, const Element* powers, Load&& load) {
  const std::uint64_t rows = (n + warp_len - 1) / warp_len;
  const std::uint64_t missing = rows * warp_len - n;  // the first row is short at its front
  const Element step = powers[warp_log];
  Element sum{};
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t i = row * warp_len + lane_index();
    const Element x = i < missing ? Element{} : load(i - missing);
    sum = gf128::add(gf128::gcm_multiply(sum, step), x);
  }
#pragma unroll 1
  for (std::uint32_t j = warp_log; j-- > 0;) {
    const Element upper{from_lane_xor(sum.high, 1u << j), from_lane_xor(sum.low, 1u << j)};
    sum = gf128::add(gf128::gcm_multiply(sum, powers[j]), upper);
  }
  return sum;
}

__global__ void __launch_bounds__(threads)
    hash_chunks(const HashView* views, const std::uint64_t* first_chunk, std::uint32_t messages, const Element* powers,
                std::uint32_t powers_of_key, Element* sums) {
  const std::uint64_t chunks = first_chunk[messages];
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (blockDim.x / warp_len);
  for (std::uint64_t chunk = blockIdx.x + std::uint64_t{gridDim.x} * (threadIdx.x / warp_len); chunk < chunks;
       chunk += warps) {
    const std::uint32_t message = find_message(first_chunk, messages, chunk);
    const HashView& view = views[message];
    const std::uint64_t after = (first_chunk[message + 1] - 1 - chunk) * view.chunk_blocks;
    const std::uint64_t end = view.blocks() - after;
    const std::uint64_t n = end < view.chunk_blocks ? end : view.chunk_blocks;
    const std::uint64_t first = end - n;
    const std::uint64_t aad_blocks = view.aad_blocks();
    const Element sum =
        sum_of_powers(n, powers + std::size_t{powers_of_key} * view.key, [&](std::uint64_t i) {
          i += first;
          return to_element(i < aad_blocks ? load_block(view.aad, view.aad_len, i)
                                           : load_block(view.text, view.text_len, i - aad_blocks));
        });
    if (lane_index() == 0) sums[chunk] = sum;
  }
}

__global__ void __launch_bounds__(threads)
    finish(const HashView* views, const std::uint64_t* first_chunk, std::uint32_t messages, const Element* powers,
           std::uint32_t powers_of_key, const Element* sums, std::uint32_t* verdicts) {
  const std::uint32_t warps = gridDim.x * (blockDim.x / warp_len);
  for (std::uint32_t message = (blockIdx.x * blockDim.x + threadIdx.x) / warp_len; message < messages; message += warps) {
    const HashView& view = views[message];
    const Element* own_powers = powers + std::size_t{powers_of_key} * view.key;
    const Element* own_sums = sums + first_chunk[message];
    const std::uint64_t chunks = view.chunks();
    Element hash{};
    if (chunks == 1) hash = own_sums[0];
    if (chunks > 1) {
      hash = sum_of_powers(chunks, own_powers + view.chunk_log, [&](std::uint64_t i) { return own_sums[i]; });
    }
    hash = gf128::gcm_multiply(hash, own_powers[0]);
    hash = gf128::add(hash, {8 * view.aad_len, 8 * view.text_len});
    const Block tag = to_block(gf128::gcm_multiply(hash, own_powers[0])) ^ view.mask;
    if (lane_index() != 0) continue;
    if (verdicts == nullptr) {
      store_bytes(view.tag, view.tag_len, tag);
    } else {
      const Block difference = tag ^ load_bytes(view.tag, view.tag_len);
      std::uint32_t bits = 0;
#pragma unroll
      for (std::uint32_t i = 0; i < 16; ++i) bits |= i < view.tag_len ? get_byte(difference, i) : 0;
      verdicts[message] = bits == 0 ? 1 : 0;
    }
  }
}

std::uint32_t ceil_log2(std::uint64_t x) { return x <= 1 ? 0 : static_cast<std::uint32_t>(std::bit_width(x - 1)); }

HashView view_for(const Message& message, bool encrypting) {
  HashView view{};
  view.text = encrypting ? message.out : message.in;
  view.tag = message.tag;
  view.aad_len = message.aad_len;
  view.text_len = message.in_len;
  view.tag_len = static_cast<std::uint32_t>(message.tag_len);
  return view;
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
  for (std::size_t i = 0; i < count; ++i) {
    const Message& message = run.message(i);
    keys.number(*message.key);
    aad_len += message.aad_len;
    total_blocks += view_for(message, true).blocks();
  }
  const std::uint32_t chunk_log = std::max(least_chunk_log, ceil_log2(total_blocks / wanted_chunks));
  const std::uint64_t chunk_blocks = std::uint64_t{1} << chunk_log;
  const std::uint32_t powers_of_key = (total_blocks > chunk_blocks ? chunk_log : 0) + warp_log + 1;

  Upload upload;
  const auto views = upload.reserve<HashView>(count);
  const auto first_chunk = upload.reserve<std::uint64_t>(count + 1);
  const auto powers = upload.reserve<Element>(powers_of_key * keys.keys().size());
  const auto aad = upload.reserve<std::uint8_t>(aad_len);
  upload.allocate(run.stream);
  std::uint64_t chunks = 0;
  std::size_t aad_offset = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Message& message = run.message(i);
    HashView& view = upload.host(views)[i];
    view = view_for(message, verdicts == nullptr);
    view.aad = upload.device(aad) + aad_offset;
    std::copy_n(message.aad, message.aad_len, upload.host(aad) + aad_offset);
    aad_offset += message.aad_len;
    view.chunk_blocks = chunk_blocks;
    view.chunk_log = chunk_log;
    view.key = keys.number(*message.key);
    std::uint8_t block[16];
    first_counter(message, block);
    aes::encrypt_block(aes_key_state(*message.key).schedule, block, block);
    view.mask = cuda::to_block(block, 16);
    secure_wipe(block, sizeof block);
    upload.host(first_chunk)[i] = chunks;
    chunks += view.chunks();
  }
  upload.host(first_chunk)[count] = chunks;
  for (std::size_t k = 0; k < keys.keys().size(); ++k) {
    Element* square = upload.host(powers) + powers_of_key * k;
    square[0] = aes_key_state(*keys.keys()[k]).hash_key;
    for (std::uint32_t j = 1; j < powers_of_key; ++j) square[j] = gf128::gcm_multiply(square[j - 1], square[j - 1]);
  }
  upload.send();

  const StreamBuffer sums(chunks * sizeof(Element), run.stream);
  auto* const sum = reinterpret_cast<Element*>(sums.data());
  const auto messages = static_cast<std::uint32_t>(count);
  if (chunks != 0) {
    launch(&hash_chunks, shape_for(run.device, chunks), run.stream, upload.device(views), upload.device(first_chunk),
           messages, upload.device(powers), powers_of_key, sum);
  }
  launch(&finish, shape_for(run.device, count), run.stream, upload.device(views), upload.device(first_chunk), messages,
         upload.device(powers), powers_of_key, sum, verdicts);
}

}  // namespace warpcipher::cuda::ghash
