// SPDX-License-Identifier: Apache-2.0
// J. Yang, J. Goodman, "Symmetric Key Cryptography on Modern Graphics Hardware", 2007: bitsliced key search for DES and
// AES-128 (sections 4 and 5). The computation is in yang2007_search.hpp; section 6 is in yang2007_block.cu.
//
// A job is the paper's: threads that each go through as many iterations, 32 keys at a time. Plaintext and ciphertext
// come as the job's iv, the keys' fixed bits as its key. A thread writes where it found a match; the CPU reads what all
// threads wrote.
//
// Substitutes: the paper's processors are 160 bits wide, of which DES takes two words of 64 bits and AES four of 32,
// a column each; a lane here is 32 bits wide. So DES has 32 keys a thread where the paper has 64, and AES has the four
// columns one after the other. Its state takes 128 registers. The round key no longer fits in registers: it is in
// shared memory, each thread's planes in a bank of its own. Key schedules made in advance are in global memory.
//
// No address and no branch depends on keys, except the writing of a match: constant time.
#include "yang2007_search.hpp"

#include <cstring>
#include <memory>

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/wipe.hpp"
#include "gpu.cuh"
#include "lab.hpp"

namespace warpcipher::lab {
namespace {

using yang::Match;
using yang::Range;
using yang::Word;

template <std::size_t Count>
void to_planes(const std::uint8_t* bytes, Word (&planes)[Count]) {
  for (unsigned m = 0; m < Count; ++m) planes[m] = yang::mask_of(bytes[m / 8], m % 8);
}

// IP'd halves; after the sixteenth round they have not changed places (FIPS 46-3: the preoutput is R16 L16).
struct Des {
  static constexpr std::size_t key_len = 8;
  static constexpr std::size_t block_len = 8;
  using Known = yang::des::Known;

  static void set(Known& known, const std::uint8_t* plaintext, const std::uint8_t* ciphertext) {
    Word planes[64];
    to_planes(plaintext, planes);
    yang::des::cipher::split(known.left, known.right, planes);
    to_planes(ciphertext, planes);
    yang::des::cipher::split(known.right_behind, known.left_behind, planes);
  }

  static void set_fixed(Range& range, const std::uint8_t* key) {
    for (unsigned j = 0; j < yang::des::key_bits; ++j) {
      range.fixed[j / 32] |= (key[j / 7] >> (j % 7 + 1) & 1u) << j % 32;
    }
  }
};

struct Aes {
  static constexpr std::size_t key_len = 16;
  static constexpr std::size_t block_len = 16;
  using Known = yang::aes::Known;

  static void set(Known& known, const std::uint8_t* plaintext, const std::uint8_t* ciphertext) {
    for (unsigned b = 0; b < 16; ++b) {
      to_planes(plaintext + b, known.plaintext[b]);
      to_planes(ciphertext + b, known.ciphertext[b]);
    }
  }

  static void set_fixed(Range& range, const std::uint8_t* key) {
    for (unsigned i = 0; i < 4; ++i) range.fixed[i] = load_le32(key + 4 * i);
  }
};

// The task of every search.
template <class Cipher>
struct Task {
  explicit Task(const Setting& setting) {
    check_len("key", setting.key.size(), {Cipher::key_len});
    check_len("iv", setting.iv.size(), {2 * Cipher::block_len});  // plaintext and ciphertext
    Cipher::set(*known, setting.iv.data(), setting.iv.data() + Cipher::block_len);
    Cipher::set_fixed(*range, setting.key.data());
    iterations = static_cast<std::uint32_t>(
        setting.parameters.take("iterations", 1 << yang::iteration_bits, 1, 1 << yang::iteration_bits));
  }

  // Of the job: as many as there is room for matches.
  std::uint32_t threads(const Data& data, std::size_t multiple) const {
    const std::size_t most = sizeof(Match) << yang::thread_bits;
    check_len("in", data.in_len, {0});
    if (data.out_len == 0 || data.out_len % (multiple * sizeof(Match)) != 0 || data.out_len > most) {
      throw Error(Status::invalid_argument, "out is " + std::to_string(data.out_len) +
                                                " bytes: expected 8 for each thread, a multiple of " +
                                                std::to_string(multiple) + " threads and 2^20 at most");
    }
    return static_cast<std::uint32_t>(data.out_len / sizeof(Match));
  }

  Secret<typename Cipher::Known> known;
  Secret<Range> range;
  std::uint32_t iterations;
};

// ---- one CPU thread -------------------------------------------------------------------------------------------------

struct HostPlanes {
  Word words[128];
  WARPCIPHER_INLINE Word get(unsigned i) const { return words[i]; }
  WARPCIPHER_INLINE void set(unsigned i, Word plane) { words[i] = plane; }
};

Match search_on_host(const Task<Des>& task, const Range& range) {
  return yang::des::search(*task.known, range, task.iterations);
}

Match search_on_host(const Task<Aes>& task, const Range& range) {
  yang::aes::OnTheFly<HostPlanes> keys{};
  return yang::aes::search(keys, *task.known, range, task.iterations);
}

template <class Cipher>
Job search_by_host(const Setting& setting) {
  return host_job([task = Task<Cipher>(setting)](const Data& data) {
    Secret<Range> range = task.range;
    for (range->thread = 0; range->thread < task.threads(data, 1); ++range->thread) {
      const Match match = search_on_host(task, *range);
      std::memcpy(data.out + sizeof match * range->thread, &match, sizeof match);
    }
  });
}

#if WARPCIPHER_HAS_CUDA

// ---- the kernels ----------------------------------------------------------------------------------------------------

constexpr std::uint32_t block_threads = 128;

__device__ __forceinline__ std::uint32_t thread_number() { return blockIdx.x * blockDim.x + threadIdx.x; }

__device__ __forceinline__ Range range_of_thread(const Range& range) {
  return {{range.fixed[0], range.fixed[1], range.fixed[2], range.fixed[3]}, thread_number()};
}

__global__ void __launch_bounds__(block_threads)
    search_des(Match* out, std::uint32_t iterations, const __grid_constant__ yang::des::Known known,
               const __grid_constant__ Range range) {
  out[thread_number()] = yang::des::search(known, range_of_thread(range), iterations);
}

// The planes of a thread: plane i is word i of its bank.
struct SharedPlanes {
  Word* words;
  WARPCIPHER_INLINE Word get(unsigned i) const { return words[block_threads * i]; }
  WARPCIPHER_INLINE void set(unsigned i, Word plane) { words[block_threads * i] = plane; }
};

constexpr std::size_t shared_len = sizeof(Word) * 128 * block_threads;

__device__ __forceinline__ SharedPlanes shared_planes() {
  return {reinterpret_cast<Word*>(shared_memory) + threadIdx.x};
}

__global__ void __launch_bounds__(block_threads)
    search_aes(Match* out, std::uint32_t iterations, const __grid_constant__ yang::aes::Known known,
               const __grid_constant__ Range range) {
  yang::aes::OnTheFly<SharedPlanes> keys{shared_planes()};
  out[thread_number()] = yang::aes::search(keys, known, range_of_thread(range), iterations);
}

// Schedules in advance: word i of thread t lies at i * threads + t.
__global__ void __launch_bounds__(block_threads)
    expand_aes(Word* schedules, std::uint32_t threads, const __grid_constant__ Range range) {
  SharedPlanes planes = shared_planes();
  const std::uint32_t thread = thread_number();
  const Range own = range_of_thread(range);
  Word* const first = schedules + thread;
#pragma unroll
  for (unsigned i = 0; i < 128; ++i) {
    planes.set(i, yang::key_plane(i, 0, own));
    first[std::size_t{threads} * i] = planes.get(i);
  }
#pragma unroll 1
  for (unsigned round = 1; round <= yang::aes::rounds; ++round) {
    yang::aes::next_round_key(planes, round, [&](unsigned b, unsigned j, Word plane) {
      first[std::size_t{threads} * (128 * round + 8 * b + j)] = plane;
    });
  }
}

struct ScheduleOfThread {
  const Word* first;
  std::uint32_t threads;
  WARPCIPHER_INLINE Word operator()(unsigned i) const { return first[std::size_t{threads} * i]; }
};

__global__ void __launch_bounds__(block_threads)
    search_aes_in_advance(Match* out, std::uint32_t iterations, const __grid_constant__ yang::aes::Known known,
                          const Word* schedules) {
  const std::uint32_t thread = thread_number();
  yang::aes::InAdvance<ScheduleOfThread> keys{{schedules + thread, gridDim.x * blockDim.x}};
  out[thread] = yang::aes::search(keys, known, Range{}, iterations);
}

// ---- their jobs -----------------------------------------------------------------------------------------------------

template <class Cipher>
using Kernel = void (*)(Match* out, std::uint32_t iterations, typename Cipher::Known known, Range range);

template <class Cipher, Kernel<Cipher> TheKernel, std::size_t SharedLen>
Job search(const Setting& setting) {
  return kernel_job({setting, TheKernel, block_threads, SharedLen},
                    [task = Task<Cipher>(setting)](const Launch& launch, const Data& data, Stream stream) {
                      launch(TheKernel, task.threads(data, block_threads), stream, reinterpret_cast<Match*>(data.out),
                             task.iterations, *task.known, *task.range);
                    });
}

Job search_in_advance(const Setting& setting) {
  const Task<Aes> task(setting);
  const auto threads =
      static_cast<std::uint32_t>(setting.parameters.take("threads", 1 << 13, block_threads, 1 << 20, block_threads));
  const auto schedules = std::make_shared<const DeviceMemory>(
      setting.device, sizeof(Word) * 128 * (yang::aes::rounds + 1) * threads, true);
  const Launch expand(setting, expand_aes, block_threads, shared_len);
  expand(expand_aes, threads, nullptr, schedules->as<Word>(), threads, *task.range);
  const DeviceScope scope(setting.device);
  cuda::check(cudaDeviceSynchronize(), "make key schedules");
  return kernel_job({setting, search_aes_in_advance, block_threads, 0},
                    [task, threads, schedules](const Launch& launch, const Data& data, Stream stream) {
                      task.threads(data, block_threads);
                      check_len("out", data.out_len, {sizeof(Match) * threads});
                      launch(search_aes_in_advance, threads, stream, reinterpret_cast<Match*>(data.out),
                             task.iterations, *task.known, schedules->as<const Word>());
                    });
}

#endif

}  // namespace

std::vector<Variant> yang2007() {
  return {
      WARPCIPHER_LAB_GPU("des", "bitsliced DES key search (section 4)", true, search<Des, search_des, 0>),
      WARPCIPHER_LAB_GPU("aes", "bitsliced AES-128 key search, schedule on the fly (section 5)", true,
                         search<Aes, search_aes, shared_len>),
      WARPCIPHER_LAB_GPU("aes-in-advance", "the same with schedules made in advance (section 5)", true,
                         search_in_advance),
      {"des-cpu", "bitsliced DES key search on one CPU thread", false, true, search_by_host<Des>},
      {"aes-cpu", "bitsliced AES-128 key search on one CPU thread", false, true, search_by_host<Aes>},
  };
}

}  // namespace warpcipher::lab
