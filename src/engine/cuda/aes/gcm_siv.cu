// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/aes/launches.hpp"

#include "engine/cuda/aes/cipher.cuh"
#include "engine/cuda/aes/packed.cuh"
#include "engine/cuda/aes/source.cuh"

namespace warpcipher::cuda::lane_table {
namespace {

constexpr std::uint32_t begin_threads = 128;

// The tag with its last bit set (RFC 8452, section 4).
__device__ __forceinline__ Block first_counter(Block tag) {
  tag.words[3] |= 0x80000000u;
  return tag;
}

// Each encrypted block of a counter and the nonce gives eight bytes: first the key of authentication, then of
// encryption.
template <class Tables, class Source>
__global__ void __launch_bounds__(block_threads, 1)
    derive_siv_keys_kernel(const __grid_constant__ Source source, const __grid_constant__ SivMessages batch,
                           const __grid_constant__ SivDerivedKeys derived) {
  fill_tables<Tables, false>();
  __syncthreads();
  const std::uint32_t keys_of_16 = source.rounds == 10 ? 1 : 2;  // of encryption
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < batch.count; i += stride) {
    const MessageView& view = batch.views[i];
    const Block nonce = view.start;
    const typename Source::Key key = source.key_at(view.key);
    const LaneCipher<Tables, false, 0, typename Source::Key> cipher(key, source.rounds);
#pragma unroll 1
    for (std::uint32_t pair = 0; pair <= keys_of_16; ++pair) {
      Block blocks[2];
#pragma unroll
      for (std::uint32_t n = 0; n < 2; ++n) {
        blocks[n] = {{2 * pair + n, nonce.words[0], nonce.words[1], nonce.words[2]}};
      }
      cipher(blocks);
      const Block bytes{{blocks[0].words[0], blocks[0].words[1], blocks[1].words[0], blocks[1].words[1]}};
      if (pair == 0) {
        derived.authentication[i] = gf128::polyval_key({std::uint64_t{bytes.words[3]} << 32 | bytes.words[2],
                                                        std::uint64_t{bytes.words[1]} << 32 | bytes.words[0]});
      } else {
        auto* const own = reinterpret_cast<uint4*>(global(derived.encryption)) + keys_of_16 * i;
        own[pair - 1] = make_uint4(bytes.words[0], bytes.words[1], bytes.words[2], bytes.words[3]);
      }
    }
  }
}

__global__ void __launch_bounds__(begin_threads)
    begin_siv_messages_kernel(const __grid_constant__ SivMessages batch, GivenTag given) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < batch.count; i += stride) {
    MessageView& view = batch.views[i];
    batch.nonces[i] = {{view.start.words[0], view.start.words[1], view.start.words[2], 0}};
    view.key = static_cast<std::uint32_t>(i);
    const HashView& hash = batch.hash_views[i];
    if (given == GivenTag::none || hash.tag == nullptr) continue;
    view.start = first_counter(given == GivenTag::mask ? hash.mask : load_bytes(global(hash.tag), 16));
  }
}

template <class Tables, class Source>
__global__ void __launch_bounds__(block_threads, 1)
    finish_siv_tags_kernel(const __grid_constant__ Source source, const __grid_constant__ SivMessages batch,
                           const Block* hashes, bool encrypting, std::uint32_t* verdicts) {
  fill_tables<Tables, false>();
  __syncthreads();
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < batch.count; i += stride) {
    const typename Source::Key key = source.key_at(static_cast<std::uint32_t>(i));
    const LaneCipher<Tables, false, 0, typename Source::Key> cipher(key, source.rounds);
    Block tags[1] = {hashes[i] ^ batch.nonces[i]};
    tags[0].words[3] &= 0x7fffffffu;
    cipher(tags);
    std::uint8_t* const place = global(batch.hash_views[i].tag);
    if (verdicts == nullptr) {
      store_bytes(place, 16, tags[0]);
      if (encrypting) batch.views[i].start = first_counter(tags[0]);
    } else {
      const Block difference = tags[0] ^ load_bytes(place, 16);
      verdicts[i] =
          (difference.words[0] | difference.words[1] | difference.words[2] | difference.words[3]) == 0 ? 1 : 0;
    }
  }
}

// Calls run(tables, source): a source that has a Key by number.
template <class Run>
void with_source(TableLayout layout, const SivKeySource& keys, Run&& run) {
  if (keys.bytes != nullptr) return run(Tables128{}, RawKeySource{{}, keys.rounds, keys.bytes});
  const BatchSource source{{}, keys.rounds, keys.round_keys};
  layout == TableLayout::tables_128 ? run(Tables128{}, source) : run(Tables64{}, source);
}

LaunchConfiguration configuration_for(const Device& device, std::uint32_t count, std::size_t shared_len) {
  return parallel_configuration(device, (std::uint64_t{count} + warp_len - 1) / warp_len, shared_len);
}

}  // namespace

void derive_siv_keys(const Device& device, Stream stream, TableLayout layout, const SivMessages& messages,
                     const SivKeySource& keys, const SivDerivedKeys& derived) {
  with_source(layout, keys, [&]<class Tables, class Source>(Tables, const Source& source) {
    launch(&derive_siv_keys_kernel<Tables, Source>, configuration_for(device, messages.count, Tables::shared_len),
           stream, source, messages, derived);
  });
}

void begin_siv_messages(const Device& device, Stream stream, const SivMessages& messages, GivenTag given) {
  launch(&begin_siv_messages_kernel, configuration_of_lanes(device, messages.count, begin_threads, 16), stream,
         messages, given);
}

void finish_siv_tags(const Device& device, Stream stream, TableLayout layout, const SivMessages& messages,
                     const SivKeySource& keys, const Block* hashes, bool encrypting, std::uint32_t* verdicts) {
  with_source(layout, keys, [&]<class Tables, class Source>(Tables, const Source& source) {
    launch(&finish_siv_tags_kernel<Tables, Source>, configuration_for(device, messages.count, Tables::shared_len),
           stream, source, messages, hashes, encrypting, verdicts);
  });
}

}  // namespace warpcipher::cuda::lane_table
