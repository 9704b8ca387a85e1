// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/batch/des_batch.hpp"

#include <algorithm>

#include "cipher/des_packed.hpp"
#include "core/thread_pool.hpp"
#include "engine/cuda/keys.hpp"

namespace warpcipher::cuda {
namespace {

constexpr std::uint32_t threads = 128;

struct Expansion {
  DesKeys keys;
  const MessageView* views;    // nullptr: a schedule a key
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
    const std::uint64_t group = rounds == 16 ? row / 16 : row / 48;  // constants: a division takes longer than the rest
    const std::uint64_t schedule = group * warp_len + n % warp_len;
    if (schedule >= expansion.schedules) continue;
    std::uint64_t key = schedule;
    if (expansion.views != nullptr) {
      key = expansion.views[expansion.order != nullptr ? expansion.order[schedule] : schedule].key;
    }
    const auto round = static_cast<std::uint32_t>(row - group * rounds);
    const des::PackedSubkey subkey =
        des::packed_subkey(global(keys.bytes) + key * keys.key_len, keys.key_len, keys.inverse, round);
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
  launch(&expand_kernel, shape_of_lanes(device, memory_.size() / sizeof(uint2), threads, 16), stream, expansion);
}

DesBatch::DesBatch(const GroupRun& run) {
  const Group& group = run.group;
  const std::size_t count = group.messages.size();
  const std::size_t key_len = group.algorithm->key_len();
  KeyList keys;
  std::vector<std::uint32_t> key_of(count);
  for (std::size_t i = 0; i < count; ++i) key_of[i] = keys.number(*run.message(i).key);

  views_ = upload_.reserve<MessageView>(count);
  first_tile_ = upload_.reserve<std::uint64_t>(group.first_tile.size());
  const auto key_bytes = upload_.reserve<std::uint8_t>(keys.keys().size() * key_len);
  upload_.allocate(run.stream);
  ThreadPool::instance().parallel_for(count, messages_at_once, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Message& message = run.message(i);
      MessageView& view = upload_.host(views_)[i];
      view = view_of(message);
      view.start = to_block(message.iv, message.iv_len);
      view.key = key_of[i];
    }
  });
  std::copy(group.first_tile.begin(), group.first_tile.end(), upload_.host(first_tile_));
  for (std::size_t k = 0; k < keys.keys().size(); ++k) {
    std::copy_n(keys.keys()[k]->bytes(), key_len, upload_.host(key_bytes) + k * key_len);
  }
  upload_.send();

  const DesKeys on_device{upload_.device(key_bytes), static_cast<std::uint32_t>(key_len),
                          static_cast<std::uint32_t>(keys.keys().size()), group.algorithm->inverse(group.direction)};
  schedules_.emplace(run.device, run.stream, on_device, group.parallel ? nullptr : views(),
                     static_cast<std::uint32_t>(count));
}

}  // namespace warpcipher::cuda
