// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/batch/des_batch.hpp"

#include <algorithm>
#include <vector>

#include "core/thread_pool.hpp"
#include "engine/cuda/group_run.hpp"
#include "engine/cuda/keys.hpp"

namespace warpcipher::cuda {

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
