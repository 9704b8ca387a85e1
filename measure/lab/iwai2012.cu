// SPDX-License-Identifier: Apache-2.0
// K. Iwai, N. Nishikawa, T. Kurokawa, "Acceleration of AES encryption on CUDA GPU", 2012: AES-128 ECB encryption by
// T-box in every granularity and memory that the paper compares. The names are the columns of its Tables 5 and 6; see
// `list` at the end.
//
// Threads of a block share its state through shared memory, where it lies as it comes (AoS) or column by column (SoA):
//
//   AoS   b0c0 b0c1 b0c2 b0c3  b1c0 b1c1 ...          word c of block b at 4 b + c
//   SoA   b0c0 b1c0 b2c0 ...   b0c1 b1c1 b2c1 ...     word c of block b at c * blocks + b
//
// It is stored twice: a round reads one copy and writes the other, so that one barrier a round is enough.
//
// Substitutes: round keys in "constant memory" are a kernel parameter, which lies in the constant bank. The
// paper's one-thread-a-plaintext grid (section 5.3.2) is the same loop with a grid that covers the text, so that it
// runs once. In 2012 the hardware kept the threads of a warp in step; here, as there, the barrier is __syncthreads().
//
// Timing: lookups in shared memory collide, and in constant memory serialise, according to the data. Not constant time.
#include "tables.hpp"

namespace warpcipher::lab {
namespace {

enum class Place { constant, shared };
enum class Text { registers, aos, soa };

#if WARPCIPHER_HAS_CUDA

constexpr unsigned rounds = 10;

__constant__ const Tables constant_tables = make_tables(aes::te0);
__device__ const Tables global_tables = make_tables(aes::te0);

// The choices that a kernel is compiled for. bytes: of the state, a thread. tables: 4, or 1 that is rotated.
template <unsigned Bytes, Place TablePlace, unsigned TableCount, Place KeyPlace, Text TextPlace>
struct Policy {
  static constexpr unsigned bytes = Bytes;
  static constexpr bool shared_tables = TablePlace == Place::shared;
  static constexpr unsigned tables = TableCount;
  static constexpr bool shared_keys = KeyPlace == Place::shared;
  static constexpr Text text = TextPlace;
  static constexpr unsigned copies = Bytes == 16 ? 1 : 2;  // a thread with a block of its own needs no second

  // Offsets in shared memory, in words.
  static constexpr unsigned keys_at = shared_tables ? 256 * TableCount : 0;
  static constexpr unsigned text_at = keys_at + (shared_keys ? 4 * (rounds + 1) : 0);

  static constexpr std::size_t shared_len(std::uint32_t threads) {
    return 4 * text_at + (text == Text::registers ? 0 : std::size_t{copies} * threads * bytes);
  }

  static_assert(Bytes == 16 || TextPlace != Text::registers, "threads that share a block share it in shared memory");
  static_assert(TableCount == 1 || TableCount == 4);
};

// T-boxes and round keys.
struct ConstantWords {
  __device__ std::uint32_t operator[](std::uint32_t i) const { return constant_tables[i / 256][i % 256]; }
};

template <class P>
class Lookup : public Boxes<std::conditional_t<P::shared_tables, const std::uint32_t*, ConstantWords>, P::tables> {
 public:
  __device__ Lookup(const std::uint32_t* shared, const RoundKeys& keys) : shared_(shared), keys_(keys) {
    if constexpr (P::shared_tables) this->words = shared;
  }

  __device__ std::uint32_t key(unsigned i) const { return P::shared_keys ? shared_[P::keys_at + i] : keys_.words[i]; }

 private:
  const std::uint32_t* shared_;
  const RoundKeys& keys_;
};

// Copies to shared memory what the policy keeps there.
template <class P>
__device__ void fill_shared(std::uint32_t* shared, const RoundKeys& keys) {
  if constexpr (P::shared_tables) {
    for (unsigned i = threadIdx.x; i < 256 * P::tables; i += blockDim.x) shared[i] = global_tables[i / 256][i % 256];
  }
  if constexpr (P::shared_keys) {
    for (unsigned i = threadIdx.x; i < 4 * (rounds + 1); i += blockDim.x) shared[P::keys_at + i] = keys.words[i];
  }
  __syncthreads();
}

// 16 bytes a thread, the state in registers (implementations I to IV of Table 5).
template <class P>
__global__ void encrypt_registers(const std::uint32_t* in, std::uint32_t* out, std::size_t count,
                                  const __grid_constant__ RoundKeys keys) {
  auto* const shared = reinterpret_cast<std::uint32_t*>(shared_memory);
  fill_shared<P>(shared, keys);
  const Lookup<P> lookup(shared, keys);
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const uint4 text = reinterpret_cast<const uint4*>(in)[i];
    reinterpret_cast<uint4*>(out)[i] = encrypt_state(lookup, [&](unsigned n) { return lookup.key(n); }, text);
  }
}

// 16, 8 or 4 bytes a thread, the state in shared memory: V and VI of Table 5, and Table 6 except its last column. All
// threads of a block make the same number of turns, because of the barriers; past the end of the text they do nothing.
template <class P>
__global__ void encrypt_shared(const std::uint32_t* in, std::uint32_t* out, std::size_t count,
                               const __grid_constant__ RoundKeys keys) {
  constexpr unsigned columns = P::bytes / 4;
  constexpr unsigned threads_a_block = 16 / P::bytes;  // of the cipher
  auto* const shared = reinterpret_cast<std::uint32_t*>(shared_memory);
  fill_shared<P>(shared, keys);
  const Lookup<P> lookup(shared, keys);
  const unsigned blocks = blockDim.x / threads_a_block;  // of the cipher, in a turn
  const unsigned block = threadIdx.x / threads_a_block;
  const unsigned first_column = threadIdx.x % threads_a_block * columns;
  // volatile: keeps the state in shared memory, without a copy in registers.
  volatile std::uint32_t* const state = shared + P::text_at;
  const auto word = [&](unsigned copy, unsigned c) -> volatile std::uint32_t& {
    const unsigned place = P::text == Text::aos ? 4 * block + c : c * blocks + block;
    return state[(P::copies == 2 ? copy * 4 * blocks : 0) + place];
  };
  const auto barrier = [] {
    if constexpr (threads_a_block > 1) __syncthreads();
  };
  for (std::size_t first = std::size_t{blockIdx.x} * blocks; first < count; first += std::size_t{gridDim.x} * blocks) {
    const std::size_t index = first + block;
    const bool active = index < count;
#pragma unroll
    for (unsigned k = 0; k < columns; ++k) {
      const unsigned c = first_column + k;
      word(0, c) = (active ? in[4 * index + c] : 0) ^ lookup.key(c);
    }
    barrier();
    // s[j] is the j-th column from the thread's first on, so that no index below depends on the thread.
    for (unsigned round = 1; round < rounds; ++round) {
      const unsigned from = (round - 1) % 2;
      const std::uint32_t s[4] = {word(from, first_column), word(from, (first_column + 1) % 4),
                                  word(from, (first_column + 2) % 4), word(from, (first_column + 3) % 4)};
#pragma unroll
      for (unsigned k = 0; k < columns; ++k) {
        const unsigned c = first_column + k;
        word(from ^ 1, c) =
            middle_column(lookup, s[k], s[(k + 1) % 4], s[(k + 2) % 4], s[(k + 3) % 4], lookup.key(4 * round + c));
      }
      barrier();
    }
    constexpr unsigned from = (rounds - 1) % 2;
    const std::uint32_t s[4] = {word(from, first_column), word(from, (first_column + 1) % 4),
                                word(from, (first_column + 2) % 4), word(from, (first_column + 3) % 4)};
#pragma unroll
    for (unsigned k = 0; k < columns; ++k) {
      const unsigned c = first_column + k;
      const std::uint32_t result =
          last_column(lookup, s[k], s[(k + 1) % 4], s[(k + 2) % 4], s[(k + 3) % 4], lookup.key(4 * rounds + c));
      if (active) out[4 * index + c] = result;
    }
  }
}

// A byte a thread (the last column of Table 6): the 32-bit form divided into four 8-bit operations. Byte r of a column
// is the sum of byte r of four T-box entries.
template <class P>
__global__ void encrypt_bytes(const std::uint32_t* in, std::uint32_t* out, std::size_t count,
                              const __grid_constant__ RoundKeys keys) {
  static_assert(P::bytes == 1 && P::shared_tables && P::tables == 4 && P::shared_keys && P::text == Text::aos);
  auto* const shared = reinterpret_cast<std::uint32_t*>(shared_memory);
  fill_shared<P>(shared, keys);
  const auto* const tables = reinterpret_cast<const std::uint8_t*>(shared);
  const auto* const round_keys = reinterpret_cast<const std::uint8_t*>(shared + P::keys_at);
  const auto* const in_bytes = reinterpret_cast<const std::uint8_t*>(in);
  auto* const out_bytes = reinterpret_cast<std::uint8_t*>(out);
  volatile std::uint8_t* const state = reinterpret_cast<volatile std::uint8_t*>(shared + P::text_at);
  const unsigned block = threadIdx.x / 16 * 16;
  const unsigned row = threadIdx.x % 4;
  const unsigned column = threadIdx.x / 4 % 4;
  const std::size_t len = 16 * count;
  for (std::size_t first = std::size_t{blockIdx.x} * blockDim.x; first < len;
       first += std::size_t{gridDim.x} * blockDim.x) {
    const std::size_t index = first + threadIdx.x;
    const bool active = index < len;
    state[threadIdx.x] = (active ? in_bytes[index] : std::uint8_t{0}) ^ round_keys[threadIdx.x % 16];
    __syncthreads();
    for (unsigned round = 1; round < rounds; ++round) {
      const volatile std::uint8_t* const from = state + (round - 1) % 2 * blockDim.x + block;
      unsigned sum = round_keys[16 * round + threadIdx.x % 16];
#pragma unroll
      for (unsigned k = 0; k < 4; ++k) sum ^= tables[1024 * k + 4 * from[(column + k) % 4 * 4 + k] + row];
      state[round % 2 * blockDim.x + threadIdx.x] = static_cast<std::uint8_t>(sum);
      __syncthreads();
    }
    // ShiftRows and the S-box, which is byte 1 of T-box 0.
    const unsigned x = state[(rounds - 1) % 2 * blockDim.x + block + (column + row) % 4 * 4 + row];
    const unsigned result = tables[4 * x + 1] ^ round_keys[16 * rounds + threadIdx.x % 16];
    if (active) out_bytes[index] = static_cast<std::uint8_t>(result);
  }
}

using Kernel = void (*)(const std::uint32_t* in, std::uint32_t* out, std::size_t count, RoundKeys keys);

template <class P>
constexpr Kernel kernel() {
  if constexpr (P::bytes == 1) return encrypt_bytes<P>;
  if constexpr (P::bytes != 1 && P::text == Text::registers) return encrypt_registers<P>;
  if constexpr (P::bytes != 1 && P::text != Text::registers) return encrypt_shared<P>;
}

// blocks: of threads; 0: as many as the text needs, so that no thread turns twice.
template <auto... Choices>
Job make(const Setting& setting) {
  using P = Policy<Choices...>;
  const auto threads = static_cast<std::uint32_t>(setting.parameters.take("threads", 512, 32, 1024, 32));
  const auto blocks = static_cast<std::size_t>(setting.parameters.take("blocks", 60, 0, 0x7fffffff));
  return kernel_job({setting, kernel<P>(), threads, P::shared_len(threads)},
                    [keys = ecb_keys<false>(setting), blocks](const Launch& launch, const Data& data, Stream stream) {
                      check_blocks(data);
                      if (data.in_len == 0) return;
                      const std::size_t count = blocks != 0 ? blocks * launch.threads : data.in_len / P::bytes;
                      launch(kernel<P>(), count, stream, reinterpret_cast<const std::uint32_t*>(data.in),
                             reinterpret_cast<std::uint32_t*>(data.out), data.in_len / 16, *keys);
                    });
}

#endif

}  // namespace

std::vector<Variant> iwai2012() {
  using enum Place;
  using enum Text;
  // Parts of a name: bytes a thread; where T-boxes and round keys are; where the text is; the number of T-boxes if not
  // four.
  return {
      {"cpu", "T-boxes on one CPU thread (section 6.3.1)", false, false, one_thread_ecb<false>},
      WARPCIPHER_LAB_GPU("16-constant-constant-registers", "Table 5, I", false,
                         make<16, constant, 4, constant, registers>),
      WARPCIPHER_LAB_GPU("16-shared-constant-registers", "Table 5, II", false,
                         make<16, shared, 4, constant, registers>),
      WARPCIPHER_LAB_GPU("16-shared-shared-registers", "Table 5, III", false, make<16, shared, 4, shared, registers>),
      WARPCIPHER_LAB_GPU("16-shared-shared-registers-one", "Table 5, IV", false,
                         make<16, shared, 1, shared, registers>),
      WARPCIPHER_LAB_GPU("16-shared-shared-soa", "Table 5, V", false, make<16, shared, 4, shared, soa>),
      WARPCIPHER_LAB_GPU("16-shared-shared-aos", "Table 5, VI", false, make<16, shared, 4, shared, aos>),
      WARPCIPHER_LAB_GPU("8-shared-constant-aos", "Table 6, 8 B/th, first", false, make<8, shared, 4, constant, aos>),
      WARPCIPHER_LAB_GPU("8-shared-shared-aos", "Table 6, 8 B/th, second", false, make<8, shared, 4, shared, aos>),
      WARPCIPHER_LAB_GPU("8-shared-constant-soa", "Table 6, 8 B/th, third", false, make<8, shared, 4, constant, soa>),
      WARPCIPHER_LAB_GPU("4-shared-constant-aos", "Table 6, 4 B/th, first", false, make<4, shared, 4, constant, aos>),
      WARPCIPHER_LAB_GPU("4-shared-shared-aos", "Table 6, 4 B/th, second", false, make<4, shared, 4, shared, aos>),
      WARPCIPHER_LAB_GPU("4-shared-constant-soa", "Table 6, 4 B/th, third", false, make<4, shared, 4, constant, soa>),
      WARPCIPHER_LAB_GPU("1-shared-shared-aos", "Table 6, 1 B/th", false, make<1, shared, 4, shared, aos>),
      WARPCIPHER_LAB_GPU("8-shared-constant-aos-one", "section 6.3.2, one T-box", false,
                         make<8, shared, 1, constant, aos>),
      WARPCIPHER_LAB_GPU("4-shared-constant-aos-one", "section 6.3.2, one T-box", false,
                         make<4, shared, 1, constant, aos>),
  };
}

}  // namespace warpcipher::lab
