// SPDX-License-Identifier: Apache-2.0
#include "flow/contiguous_runs.hpp"

#include <algorithm>
#include <mutex>

#include "core/thread_pool.hpp"
#include "flow/piece.hpp"

namespace warpcipher {
namespace {

// Messages for each core. Waking another core for fewer takes longer than they do.
constexpr std::size_t joined_at_once = 8192;

Extent extent_of(std::span<const Message> messages, std::size_t begin, std::size_t end) {
  Extent e;
  for (std::size_t i = begin; i < end; ++i) {
    const Message& m = messages[i];
    const std::size_t room = TransferPiece::room_for(m);
    e.text_len += m.in_len;
    e.output_len += m.output_len();
    e.room += room;
    if (room > e.uncut && !can_be_cut(m)) e.uncut = room;
    if (i == 0) continue;
    e.contiguous = e.contiguous && is_contiguous(messages[i - 1], m);
    e.are_sectors = e.are_sectors && e.contiguous && is_next_sector(messages[i - 1], m);
  }
  return e;
}

}  // namespace

bool is_contiguous(const Message& before, const Message& m) {
  return before.tag_len == 0 && m.tag_len == 0 && before.in + before.in_len == m.in &&
         before.out + before.output_len() == m.out && before.in_len == before.output_len() &&
         m.in_len == m.output_len();
}

bool is_next_sector(const Message& before, const Message& m) {
  return before.key == m.key && before.in_len == m.in_len && before.direction == m.direction &&
         before.iv + before.iv_len == m.iv && m.in_len % TransferPiece::alignment == 0 &&
         m.algorithm().mode.id == Mode::xts && is_contiguous(before, m);
}

Extent find_extent(std::span<const Message> messages) {
  Extent all;
  std::mutex mutex;
  ThreadPool::instance().parallel_for(messages.size(), joined_at_once, [&](std::size_t begin, std::size_t end) {
    const Extent e = extent_of(messages, begin, end);
    const std::lock_guard lock(mutex);
    all.text_len += e.text_len;
    all.output_len += e.output_len;
    all.room += e.room;
    all.uncut = std::max(all.uncut, e.uncut);
    all.contiguous = all.contiguous && e.contiguous;
    all.are_sectors = all.are_sectors && e.are_sectors;
  });
  return all;
}

}  // namespace warpcipher
