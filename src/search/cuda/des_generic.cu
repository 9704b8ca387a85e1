// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/des_generic.hpp"

#include <bit>
#include <utility>

#include "cipher/des_bitslice.hpp"
#include "core/wipe.hpp"
#include "engine/cuda/intrinsics.cuh"
#include "engine/cuda/launch.hpp"

namespace warpcipher::search::cuda {

extern __shared__ std::uint32_t shared_planes[];  // of the launch: the planes of each thread's keys

namespace {

namespace bitslice = des::bitslice;

constexpr std::uint32_t threads = 64;  // 48 KiB of planes for three keys
constexpr std::uint32_t most_loops = UnitSearch::most_loops;
constexpr std::uint32_t lanes = 32;
constexpr std::uint32_t planes_of_key = 64;

struct Parameters {
  std::uint32_t text[64], expected[64], mask[64];  // planes, 0 or ~0
  std::uint8_t toggles[most_loops];                // the plane of each loop bit
  const std::uint8_t* keys;                        // of each unit
  const std::uint8_t* indices;                     // subkey_planes from the first pass on
  std::uint32_t* hits;                             // their number, three words, the hits
  std::uint32_t units, key_len, passes, loops, capacity;
  std::uint8_t key_of_pass[4];
};

// A key for each bit of the words, in shared memory, the threads' words side by side.
struct SharedSchedule {
  struct Subkey {
    const std::uint32_t* planes;
    const std::uint8_t* indices;
    template <int I>
    WARPCIPHER_INLINE constexpr std::uint32_t bit() const {
      return planes[indices[I] * threads];
    }
  };

  const std::uint32_t* planes;
  const std::uint8_t* indices;
  const std::uint8_t* key_of_pass;

  WARPCIPHER_INLINE constexpr Subkey subkey(int round) const {
    return {planes + key_of_pass[round / bitslice::rounds] * planes_of_key * threads,
            indices + bitslice::subkey_bits * round};
  }
};

__global__ void __launch_bounds__(threads) generic_kernel(const __grid_constant__ Parameters p) {
  const std::uint32_t thread = blockIdx.x * threads + threadIdx.x;
  const std::uint32_t first = thread * lanes;
  if (first >= p.units) return;
  std::uint32_t* const planes = shared_planes + threadIdx.x;
  std::uint32_t rows[64];
  for (std::uint32_t key = 0; key < p.key_len / 8; ++key) {
#pragma unroll
    for (std::uint32_t j = 0; j < lanes; ++j) {
      const std::uint32_t unit = first + j < p.units ? first + j : p.units - 1;
      const auto* const words =
          reinterpret_cast<const std::uint32_t*>(p.keys + std::size_t{unit} * p.key_len + std::size_t{8} * key);
      rows[j] = words[0];
      rows[lanes + j] = words[1];
    }
    bitslice::transpose(rows);
#pragma unroll
    for (std::uint32_t m = 0; m < planes_of_key; ++m) planes[(key * planes_of_key + m) * threads] = rows[m];
  }
  const SharedSchedule schedule{planes, p.indices, p.key_of_pass};
  const std::uint32_t turns = 1u << p.loops;
#pragma unroll 1
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (std::uint32_t m = 0; m < 64; ++m) rows[m] = p.text[m];
    bitslice::transform(rows, schedule, static_cast<int>(p.passes));
    std::uint32_t differences = 0;
#pragma unroll
    for (std::uint32_t m = 0; m < 64; ++m) differences |= (rows[m] ^ p.expected[m]) & p.mask[m];
    if (differences != ~0u) {
      const std::uint32_t place = atomicAdd(p.hits, 1u);
      if (place < p.capacity) {
        reinterpret_cast<uint4*>(p.hits)[1 + place] = make_uint4(first, turn ^ turn >> 1, ~differences, 0);
      }
    }
    const std::uint32_t next = turn + 1;
    if (next < turns) {
      std::uint32_t bit = 0;  // that a Gray code changes next
      while ((next >> bit & 1u) == 0) ++bit;
      planes[p.toggles[bit] * threads] ^= ~0u;
    }
  }
}

void set_planes(std::uint32_t (&planes)[64], const std::uint8_t* block) {
  for (std::size_t m = 0; m < 64; ++m) planes[m] = (block[m / 8] >> m % 8 & 1u) != 0 ? ~0u : 0u;
}

// The key bit (from 0, most significant first) as a plane of the whole key.
std::uint8_t plane_of_key_bit(std::size_t bit) { return static_cast<std::uint8_t>(bit ^ 7u); }

class GenericDes final : public UnitSearch {
 public:
  GenericDes(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test, std::uint32_t multiprocessors)
      : UnitSearch(std::move(space), std::move(test), lanes << most_loops,
                   std::bit_ceil(std::uint64_t{multiprocessors}) * 4 * threads * lanes),
        indices_(sizeof bitslice::subkey_planes, nullptr) {
    warpcipher::cuda::check(cudaMemcpy(indices_.data(), bitslice::subkey_planes.data(), sizeof bitslice::subkey_planes,
                                       cudaMemcpyHostToDevice),
                            "copy a table to the device");
  }

 private:
  void start(HitBuffer& buffer, const std::uint8_t* keys, std::uint32_t units) override {
    const std::size_t key_len = space().key_len();
    Secret<Parameters> secret;
    Parameters& p = *secret;
    set_planes(p.text, pair().in.data());
    set_planes(p.expected, pair().expected.data());
    set_planes(p.mask, pair().mask.data());
    for (std::uint32_t i = 0; i < loops(); ++i) p.toggles[i] = plane_of_key_bit(space().free_bits()[i]);
    p.keys = keys;
    p.indices = indices_.data() + (pair().decrypt ? bitslice::schedule_bits : 0);
    p.hits = reinterpret_cast<std::uint32_t*>(buffer.address());
    p.units = units;
    p.key_len = static_cast<std::uint32_t>(key_len);
    p.passes = static_cast<std::uint32_t>(bitslice::pass_count(key_len));
    p.loops = loops();
    p.capacity = buffer.capacity();
    for (std::uint32_t pass = 0; pass < p.passes; ++pass) {
      p.key_of_pass[pass] =
          static_cast<std::uint8_t>(bitslice::pass_of(key_len, pair().decrypt, static_cast<int>(pass)).key_offset / 8);
    }
    const std::uint32_t blocks = (units + threads * lanes - 1) / (threads * lanes);
    const std::size_t shared_len = key_len / 8 * planes_of_key * threads * sizeof(std::uint32_t);
    warpcipher::cuda::launch(&generic_kernel, {blocks, threads, shared_len}, buffer.stream(), p);
  }

  const warpcipher::cuda::StreamBuffer indices_;
};

}  // namespace

std::unique_ptr<UnitSearch> make_generic_des(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test,
                                             std::uint32_t multiprocessors) {
  return std::make_unique<GenericDes>(std::move(space), std::move(test), multiprocessors);
}

}  // namespace warpcipher::search::cuda
