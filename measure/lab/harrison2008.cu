// SPDX-License-Identifier: Apache-2.0
// O. Harrison, J. Waldron, "Practical Symmetric Key Cryptography on Modern Graphics Hardware", 2008: reads from on-chip
// memories (Table 1), AES-128 CTR with its tables in each of them (Table 2), strided sequential reads (Figure 6). Its
// payloads are in harrison2008_payload.cu.
//
// Substitutes: CUDA no longer has texture references; the same units fetch texture objects over linear memory.
// "Coherent" reads of constant memory all have one address, as that memory serves one at a time. In the other memories
// neighbours read neighbouring words. Round keys and counter are a kernel parameter, in the constant bank, as the
// paper's nonce.
//
// Timing: lookups collide (shared) or serialise (constant) or touch more or fewer cache lines (texture) according to
// the data. Not constant time.
#include <memory>

#include "core/bytes.hpp"
#include "tables.hpp"

namespace warpcipher::lab {
namespace {

// ---- reads (Table 1) ------------------------------------------------------------------------------------------------

enum class Pattern : std::int64_t { uniform, neighbours, random };

// The index, in the 4 KiB that are read, of the word of a thread's read `i`. state: the thread's random numbers, a
// linear congruential sequence (Knuth's constants) of which the high bits are used.
template <Pattern ThePattern>
WARPCIPHER_HD constexpr std::uint32_t place_of(std::uint32_t i, std::uint32_t thread, std::uint32_t& state) {
  if constexpr (ThePattern == Pattern::uniform) return i % 1024;
  if constexpr (ThePattern == Pattern::neighbours) return (i + thread) % 1024;
  state = state * 1664525u + 1013904223u;
  return state >> 22;
}

WARPCIPHER_HD constexpr std::uint32_t first_state(std::uint32_t thread) { return thread * 2654435761u; }

void take_nothing(const Setting& setting) {
  check_len("key", setting.key.size(), {0});
  check_len("iv", setting.iv.size(), {0});
}

// Each thread's result is the XOR of what it read.
std::uint32_t take_reads(const Setting& setting) {
  take_nothing(setting);
  return static_cast<std::uint32_t>(setting.parameters.take("reads", 1024, 1, 1 << 30));
}

template <Pattern ThePattern>
std::uint32_t read_on_host(std::uint32_t reads, std::uint32_t thread) {
  std::uint32_t state = first_state(thread);
  std::uint32_t result = 0;
  for (std::uint32_t i = 0; i < reads; ++i) {
    const std::uint32_t place = place_of<ThePattern>(i, thread, state);
    result ^= encryption_tables[place / 256][place % 256];
  }
  return result;
}

// The same on the CPU, to check the kernels by.
Job host_reads(const Setting& setting) {
  constexpr decltype(&read_on_host<Pattern::uniform>) by_pattern[] = {
      read_on_host<Pattern::uniform>, read_on_host<Pattern::neighbours>, read_on_host<Pattern::random>};
  const std::uint32_t reads = take_reads(setting);
  return host_job([reads, read = by_pattern[setting.parameters.take("pattern", 0, 0, 2)]](const Data& data) {
    const std::size_t threads = whole_blocks_of_words(data, 256);
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      const std::uint32_t result = read(reads, thread);
      std::memcpy(data.out + 4 * std::size_t{thread}, &result, 4);
    }
  });
}

// ---- CTR on one CPU thread ------------------------------------------------------------------------------------------

struct CounterKey {
  explicit CounterKey(const Setting& setting) {
    check_len("key", setting.key.size(), {16});
    check_len("iv", setting.iv.size(), {16});
    keys = expand_key(setting.key);
    std::memcpy(counter, setting.iv.data(), 16);
  }

  Secret<RoundKeys> keys;
  std::uint32_t counter[4];
};

Job one_thread(const Setting& setting) {
  return host_job([key = CounterKey(setting)](const Data& data) {
    check_blocks(data);
    std::uint8_t counter[16], keystream[16];
    std::memcpy(counter, key.counter, 16);
    for (std::size_t i = 0; i < data.in_len; i += 16) {
      crypt_block<false>(*key.keys, counter, keystream);
      xor_bytes(data.out + i, data.in + i, keystream, 16);
      add_be128(counter, 1);
    }
  });
}

#if WARPCIPHER_HAS_CUDA

constexpr std::uint32_t block_threads = 256;  // section 4

__constant__ const Tables constant_tables = make_tables(aes::te0);
__device__ const Tables global_tables = make_tables(aes::te0);

enum class Place { shared, constant, texture };

using Texture = std::shared_ptr<const cudaTextureObject_t>;

// The tables as a texture, for kernels that have theirs in one, in memory of their own: cudaMalloc guarantees the
// alignment that textures need. For a variable of the module with that alignas the driver of an H200 refused to make
// one. Others get none.
template <Place ThePlace>
Texture texture_of([[maybe_unused]] const Setting& setting) {
  cudaTextureObject_t object = 0;
  if constexpr (ThePlace != Place::texture) return std::make_shared<const cudaTextureObject_t>(object);
  const auto memory = std::make_shared<const DeviceMemory>(setting.device, &encryption_tables, sizeof(Tables));
  const DeviceScope scope(setting.device);
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = memory->data();
  resource.res.linear.desc = cudaCreateChannelDesc<unsigned>();
  resource.res.linear.sizeInBytes = sizeof(Tables);
  cudaTextureDesc texture{};
  texture.readMode = cudaReadModeElementType;
  cuda::check(cudaCreateTextureObject(&object, &resource, &texture, nullptr), "make a texture of the tables");
  return Texture(new cudaTextureObject_t(object), [memory, device = setting.device](const cudaTextureObject_t* made) {
    const DeviceScope of_device(device);
    cudaDeviceSynchronize();  // kernels may still fetch from it
    cudaDestroyTextureObject(*made);
    delete made;
  });
}

template <Place ThePlace>
struct Words {
  const std::uint32_t* shared;
  cudaTextureObject_t texture;

  __device__ std::uint32_t operator[](std::uint32_t i) const {
    if constexpr (ThePlace == Place::shared) return shared[i];
    if constexpr (ThePlace == Place::constant) return constant_tables[i / 256][i % 256];
    return tex1Dfetch<unsigned>(texture, static_cast<int>(i));
  }
};

// Shared memory is set up by each block of threads, each thread loading its part.
template <Place ThePlace, unsigned Count>
__device__ Words<ThePlace> words_of(cudaTextureObject_t texture) {
  auto* const shared = reinterpret_cast<std::uint32_t*>(shared_memory);
  if constexpr (ThePlace == Place::shared) {
    for (std::uint32_t i = threadIdx.x; i < 256 * Count; i += blockDim.x) shared[i] = global_tables[i / 256][i % 256];
    __syncthreads();
  }
  return {shared, texture};
}

template <Place ThePlace, unsigned Count>
constexpr std::size_t shared_len = ThePlace == Place::shared ? 1024 * Count : 0;

template <Place ThePlace, Pattern ThePattern>
__global__ void read_words(std::uint32_t* out, std::uint32_t reads, cudaTextureObject_t texture) {
  const Words<ThePlace> words = words_of<ThePlace, 4>(texture);
  const std::uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  std::uint32_t state = first_state(thread);
  std::uint32_t result = 0;
#pragma unroll 8
  for (std::uint32_t i = 0; i < reads; ++i) result ^= words[place_of<ThePattern>(i, thread, state)];
  out[thread] = result;
}

template <Place ThePlace, Pattern ThePattern>
Job device_reads(const Setting& setting) {
  constexpr auto kernel = read_words<ThePlace, ThePattern>;
  return kernel_job({setting, kernel, block_threads, shared_len<ThePlace, 4>},
                    [reads = take_reads(setting), texture = texture_of<ThePlace>(setting)](
                        const Launch& launch, const Data& data, Stream stream) {
                      launch(kernel, whole_blocks_of_words(data, block_threads), stream,
                             reinterpret_cast<std::uint32_t*>(data.out), reads, *texture);
                    });
}

// ---- strided sequential reads (Figure 6) ----------------------------------------------------------------------------

// Each thread reads `count` blocks of 16 bytes from where the thread before it ends. Result: the XOR of their words.
__global__ void read_strided(const uint4* in, std::uint32_t* out, std::uint32_t count) {
  const std::size_t thread = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  uint4 result = make_uint4(0, 0, 0, 0);
#pragma unroll 4
  for (std::uint32_t i = 0; i < count; ++i) result = sum(result, in[thread * count + i]);
  out[thread] = result.x ^ result.y ^ result.z ^ result.w;
}

Job strided_reads(const Setting& setting) {
  take_nothing(setting);
  const auto blocks = static_cast<std::uint32_t>(setting.parameters.take("blocks", 1, 1, 1 << 20));
  return kernel_job({setting, read_strided, block_threads, 0},
                    [blocks](const Launch& launch, const Data& data, Stream stream) {
                      const std::size_t threads = whole_blocks_of_words({nullptr, 0, data.out, data.out_len}, 256);
                      check_len("in", data.in_len, {std::size_t{16} * blocks * threads});
                      launch(read_strided, threads, stream, reinterpret_cast<const uint4*>(data.in),
                             reinterpret_cast<std::uint32_t*>(data.out), blocks);
                    });
}

// ---- the hard-coded cipher (section 4, Table 2) ---------------------------------------------------------------------

struct KernelKey {
  std::uint32_t words[44];
  std::uint32_t counter[4];
};

// A thread a block.
template <Place ThePlace, unsigned Count>
__global__ void encrypt_ctr(const uint4* in, uint4* out, std::size_t count, const __grid_constant__ KernelKey key,
                            cudaTextureObject_t texture) {
  const Boxes<Words<ThePlace>, Count> boxes{words_of<ThePlace, Count>(texture)};
  const std::size_t index = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (index >= count) return;
  const auto keys = [&](unsigned i) { return key.words[i]; };
  out[index] = sum(in[index], encrypt_state(boxes, keys, counter_behind(key.counter, index)));
}

template <Place ThePlace, unsigned Count>
Job encryption(const Setting& setting) {
  constexpr auto kernel = encrypt_ctr<ThePlace, Count>;
  const CounterKey host(setting);
  Secret<KernelKey> key;
  std::memcpy(key->words, host.keys->words, sizeof key->words);
  std::memcpy(key->counter, host.counter, sizeof key->counter);
  return kernel_job(
      {setting, kernel, block_threads, shared_len<ThePlace, Count>},
      [key, texture = texture_of<ThePlace>(setting)](const Launch& launch, const Data& data, Stream stream) {
        check_blocks(data);
        const std::size_t count = data.in_len / 16;
        launch(kernel, count, stream, reinterpret_cast<const uint4*>(data.in), reinterpret_cast<uint4*>(data.out),
               count, *key, *texture);
      });
}

#endif

}  // namespace

std::vector<Variant> harrison2008() {
  return {
      WARPCIPHER_LAB_GPU("read-shared-coherent", "Table 1", true, device_reads<Place::shared, Pattern::neighbours>),
      WARPCIPHER_LAB_GPU("read-shared-random", "Table 1", true, device_reads<Place::shared, Pattern::random>),
      WARPCIPHER_LAB_GPU("read-constant-coherent", "Table 1", true, device_reads<Place::constant, Pattern::uniform>),
      WARPCIPHER_LAB_GPU("read-constant-random", "Table 1", true, device_reads<Place::constant, Pattern::random>),
      WARPCIPHER_LAB_GPU("read-texture-coherent", "Table 1", true, device_reads<Place::texture, Pattern::neighbours>),
      WARPCIPHER_LAB_GPU("read-texture-random", "Table 1", true, device_reads<Place::texture, Pattern::random>),
      {"read-cpu", "the same reads on one CPU thread, to check by", false, true, host_reads},
      WARPCIPHER_LAB_GPU("ctr-single-shared", "Table 2, one T-box", false, encryption<Place::shared, 1>),
      WARPCIPHER_LAB_GPU("ctr-quad-shared", "Table 2, four T-boxes; Figure 1", false, encryption<Place::shared, 4>),
      WARPCIPHER_LAB_GPU("ctr-single-constant", "Table 2, one T-box", false, encryption<Place::constant, 1>),
      WARPCIPHER_LAB_GPU("ctr-quad-constant", "Table 2, four T-boxes", false, encryption<Place::constant, 4>),
      WARPCIPHER_LAB_GPU("ctr-single-texture", "Table 2, one T-box", false, encryption<Place::texture, 1>),
      WARPCIPHER_LAB_GPU("ctr-quad-texture", "Table 2, four T-boxes", false, encryption<Place::texture, 4>),
      {"ctr-cpu", "CTR by T-boxes on one CPU thread", false, false, one_thread},
      WARPCIPHER_LAB_GPU("strided-reads", "Figure 6", true, strided_reads),
  };
}

}  // namespace warpcipher::lab
