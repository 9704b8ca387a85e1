// SPDX-License-Identifier: Apache-2.0
#include "transfer/host_transfer.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/sort_runs.hpp"
#include "core/thread_pool.hpp"
#include "transfer/active_transfers.hpp"
#include "transfer/can_coalesce.hpp"
#include "transfer/contiguous_runs.hpp"
#include "transfer/ring.hpp"

namespace warpcipher {
namespace {

// In page-locked memory the number of slots hardly matters: 3, 4 and 6 on the same machine are within 1%.
constexpr std::size_t most_direct_slots = 4;
// Shorter texts, on average, are better packed on the way out too: the link moves requests of 128 bytes.
constexpr std::size_t least_scattered_len = 1024;
// Fewer sectors in a row are listed for the device like other messages: a row costs launches of its own.
constexpr std::size_t least_sectors = 64;

// Messages from the one before `end` on that lie one behind another in the caller's memory, so that they travel as one
// range, and how they do.
struct ContiguousRun {
  std::size_t end;
  bool direct;
};

struct Ways {
  Way way;
  bool reaches_tags;
};

// How those travel that do not travel directly. All of them: a piece travels one way.
Ways find_ways(const DeviceEngine& engine, std::span<const Message> messages, const Extent& extent,
               PinnedRangeCache& read) {
  if (messages.size() < 2 || extent.output_len < messages.size() * least_scattered_len) return {Way::packed, false};
  PinnedRangeCache written(engine);
  bool reads = true, tags = true;
  for (const Message& m : messages) {
    if (!written.holds(m.out, m.output_len())) return {Way::packed, false};
    tags = tags && (m.direction == Direction::decrypt || written.holds(m.tag, m.tag_len));
    reads = reads && (m.in == m.out || read.holds(m.in, m.in_len));
  }
  return {reads ? Way::by_device : Way::scattered, tags};
}

// The order in which messages go round the ring: where texts are read in place, that of their addresses, so that most
// of a piece travel in few ranges.
class Order {
 public:
  Order(std::span<const Message> messages, bool by_address) : messages_(messages) {
    const auto lies_before = [](const Message& a, const Message& b) { return std::less<>()(a.in, b.in); };
    if (!by_address || std::is_sorted(messages.begin(), messages.end(), lies_before)) return;
    std::vector<std::pair<std::uintptr_t, std::size_t>> places;
    places.reserve(messages.size());
    for (std::size_t i = 0; i < messages.size(); ++i) {
      places.emplace_back(reinterpret_cast<std::uintptr_t>(messages[i].in), i);
    }
    sort_runs(places, std::less<>());
    numbers_.reserve(places.size());
    for (const auto& place : places) numbers_.push_back(place.second);
  }

  std::size_t size() const { return messages_.size(); }
  std::size_t number(std::size_t i) const { return numbers_.empty() ? i : numbers_[i]; }
  const Message& operator[](std::size_t i) const { return messages_[number(i)]; }

 private:
  std::span<const Message> messages_;
  std::vector<std::size_t> numbers_;  // empty: as they are
};

ContiguousRun make_run(const DeviceEngine& engine, const Order& messages, std::size_t begin, std::size_t end,
                       std::size_t direct_len) {
  const Message& first = messages[begin];
  const Message& last = messages[end - 1];
  const auto in_len = static_cast<std::size_t>(last.in - first.in) + last.in_len;
  const auto out_len = static_cast<std::size_t>(last.out - first.out) + last.output_len();
  const bool direct =
      in_len != 0 && in_len >= direct_len && engine.is_pinned(first.in, in_len) && engine.is_pinned(first.out, out_len);
  return {end, direct};
}

ContiguousRun find_run(const DeviceEngine& engine, const Order& messages, std::size_t begin, std::size_t direct_len) {
  std::size_t end = begin + 1;
  while (end < messages.size() && is_contiguous(messages[end - 1], messages[end])) ++end;
  return make_run(engine, messages, begin, end, direct_len);
}

// How many from the one at `begin` on, at most `most`, are sectors of one row.
std::size_t count_sectors(const Order& messages, std::size_t begin, std::size_t most, bool all) {
  if (all) return most;
  std::size_t count = 1;
  while (count < most && is_next_sector(messages[begin + count - 1], messages[begin + count])) ++count;
  return count;
}

// The size of the slots: no larger than the work, and large enough for the longest message that cannot be cut.
std::size_t slot_size(std::span<const Message> messages, const Extent& extent, std::size_t piece_len, Way way) {
  std::size_t all = extent.room;
  for (std::size_t i = 0; has_list(way) && i < messages.size(); ++i) all += Slot::list_room_for(messages[i], way);
  if (way == Way::by_device) all += all / least_text_to_gap;
  // Of few sizes, so that a run finds the memory that another left.
  return std::max(
      {std::min(all > least_piece_len ? std::bit_ceil(all) : all, piece_len), extent.uncut, Slot::alignment});
}

// Several runs share the cores, of which each has one already.
std::size_t helper_count(const PipelineShape& shape) {
  const std::size_t runs = std::max<std::size_t>(ActiveTransfer::count(), 1);
  const std::size_t threads = ThreadPool::instance().threads();
  return std::min(shape.helpers, threads > runs ? (threads - runs) / runs : 0);
}

// Sends all messages round the ring. call_helpers: there will be copies.
template <class CallHelpers>
void drive(const DeviceEngine& engine, Ring& ring, const Order& messages, ContiguousRun run, bool are_sectors,
           const PipelineShape& shape, std::size_t size, Way way_of_others, CallHelpers&& call_helpers) {
  std::size_t alone = 0;  // those before are no sectors, or too few
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    if (i == run.end) run = find_run(engine, messages, i, shape.direct_len);
    if (!run.direct && way_of_others != Way::by_device) call_helpers();
    const Way way = run.direct ? Way::direct : way_of_others;
    if (!can_be_cut(message) || Slot::room_for(message) <= size) {
      std::size_t count = 1;
      if (i >= alone && !has_list(way) && message.in_len != 0) {
        count = count_sectors(messages, i, std::min(run.end - i, size / message.in_len), are_sectors);
        if (count < least_sectors) alone = i + std::exchange(count, 1);
      }
      ring.add(messages.number(i), count, way);
      i += count - 1;
      continue;
    }
    const std::size_t part_len = std::min(shape.piece_len, size) - (message.tag_len != 0 ? cut_multiple : 0);
    Cutter cutter(message, messages.number(i));
    while (!cutter.done()) ring.send(cutter.next(part_len), way);
  }
}

void run_pieces(DeviceEngine& engine, std::span<const Message> messages, std::span<Status> statuses,
                const Extent& extent, const PipelineShape& shape) {
  const Order as_given(messages, false);
  const ContiguousRun first = extent.contiguous ? make_run(engine, as_given, 0, messages.size(), shape.direct_len)
                                                : find_run(engine, as_given, 0, shape.direct_len);
  // Without copies by the cores there is less to overlap.
  const bool all_direct = first.direct && first.end == messages.size();
  RingBatch batch{messages, statuses, {}, {}, {}, {}, {}, {}, PinnedRangeCache(engine), shape.range_len, false};
  const auto [way, reaches_tags] =
      all_direct ? Ways{Way::packed, false} : find_ways(engine, messages, extent, batch.read);
  batch.reaches_tags = reaches_tags;
  const std::size_t size = slot_size(messages, extent, shape.piece_len, way);
  std::vector<int> devices = engine.devices_for_host_data();
  devices.resize(std::clamp<std::size_t>(shape.devices, 1, devices.size()));
  // A message held whole may need most of the device's memory: then there is one slot, not a ring.
  const bool whole = size > shape.piece_len;
  if (whole) devices.resize(1);
  const std::size_t slots = whole        ? 1
                            : all_direct ? std::min(shape.slots, most_direct_slots) * devices.size()
                                         : shape.slots * devices.size();
  Ring ring(engine, batch, std::move(devices), slots, has_list(way) ? Slot::with_list(size) : size);
  std::atomic<bool> over{false};
  const auto help = [&] {
    while (!over.load(std::memory_order_relaxed)) {
      if (!ring.help()) std::this_thread::yield();
    }
  };
  std::optional<ThreadPool::Beside> helpers;
  const struct End {
    ~End() { over = true; }
    std::atomic<bool>& over;
  } end{over};
  const Order order(messages, way == Way::by_device);
  drive(engine, ring, order, extent.contiguous ? first : ContiguousRun{0, false}, extent.are_sectors, shape, size, way,
        [&] {
          if (!helpers.has_value()) helpers.emplace(ThreadPool::instance(), helper_count(shape), help);
        });
  if (way == Way::scattered) {  // what comes back needs no cores: other batches may
    ring.finish_copies_in();
    over = true;
    helpers.reset();
  }
  ring.finish();
}

void run_with(DeviceEngine& engine, std::span<const Message> messages, std::span<Status> statuses, const Extent& extent,
              const PipelineShape& shape) {
  const ActiveTransfer active;
  try {
    run_pieces(engine, messages, statuses, extent, shape);
  } catch (...) {
    wipe_unverified(messages);  // by now the slots are gone, and no copy is under way
    throw;
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (statuses[i] == Status::invalid_tag) wipe_text(messages[i]);
  }
}

}  // namespace

void wipe_text(const Message& message) { wipe_in_parallel(message.out, message.in_len); }

void wipe_unverified(std::span<const Message> messages) {
  for (const Message& m : messages) {
    if (m.is_authenticated_decryption()) wipe_text(m);
  }
}

void run_through_device(DeviceEngine& engine, std::span<const Message> messages, std::span<Status> statuses) {
  const Extent extent = find_extent(messages);
  const std::size_t devices = engine.devices_for_host_data().size();
  run_with(engine, messages, statuses, extent,
           choose_shape(extent.text_len, devices, extent.are_sectors ? 1 : messages.size()));
}

void run_through_device(DeviceEngine& engine, std::span<const Message> messages, std::span<Status> statuses,
                        const PipelineShape& shape) {
  run_with(engine, messages, statuses, find_extent(messages), shape);
}

}  // namespace warpcipher
