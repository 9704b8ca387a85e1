// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/inputs/des_schedules.hpp"

#include "cipher/des_sbox_subkey.hpp"
#include "engine/cuda/runtime/intrinsics.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda {
namespace {

constexpr std::uint32_t threads = 128;

struct Expansion {
  DesKeys keys;
  const MessageView* views;    // nullptr: one schedule for each key
  const std::uint32_t* order;  // of the views
  std::uint32_t schedules;
  uint2* subkeys;
};

// Lane n makes subkeys[n].
__global__ void __launch_bounds__(threads) expand_kernel(const __grid_constant__ Expansion expansion) {
  const DesKeys& keys = expansion.keys;
  const std::uint32_t rounds = keys.rounds();
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  const std::uint64_t end = (std::uint64_t{expansion.schedules} + warp_len - 1) / warp_len * warp_len * rounds;
  for (std::uint64_t n = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; n < end; n += stride) {
    const std::uint64_t row = n / warp_len;
    const std::uint64_t group = rounds == 16 ? row / 16 : row / 48;  // constants: division is slow
    const std::uint64_t schedule = group * warp_len + n % warp_len;
    if (schedule >= expansion.schedules) continue;
    std::uint64_t key = schedule;
    if (expansion.views != nullptr) {
      key = expansion.views[expansion.order != nullptr ? expansion.order[schedule] : schedule].key;
    }
    const auto round = static_cast<std::uint32_t>(row - group * rounds);
    const des::SboxSubkey subkey =
        des::sbox_subkey(global(keys.bytes) + key * keys.key_len, keys.key_len, keys.inverse, round);
    expansion.subkeys[n] = make_uint2(subkey.odd, subkey.even);
  }
}

std::size_t subkeys_of(std::uint64_t schedules, std::uint32_t rounds) {
  return (schedules + warp_len - 1) / warp_len * warp_len * rounds;
}

}  // namespace

DesSchedules::DesSchedules(const Device& device, Stream stream, const DesKeys& keys, const MessageView* views,
                           std::uint32_t messages, const std::uint32_t* order)
    : rounds_(keys.rounds()),
      of_one_key_(keys.count == 1),
      memory_(subkeys_of(views == nullptr || of_one_key_ ? keys.count : messages, rounds_) * sizeof(uint2), stream) {
  const bool of_messages = views != nullptr && !of_one_key_;
  const Expansion expansion{keys, of_messages ? views : nullptr, order, of_messages ? messages : keys.count,
                            reinterpret_cast<uint2*>(memory_.data())};
  launch(&expand_kernel, configuration_of_lanes(device, memory_.size() / sizeof(uint2), threads, 16), stream,
         expansion);
}

}  // namespace warpcipher::cuda
