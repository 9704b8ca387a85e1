// SPDX-License-Identifier: Apache-2.0
#include "flow/host_transfer.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/sort_runs.hpp"
#include "core/thread_pool.hpp"
#include "flow/piece.hpp"
#include "flow/slot_memory.hpp"
#include "flow/transfer_modes.hpp"
#include "flow/transfer_ring.hpp"
#include "flow/transfer_settings.hpp"
#include "message/message.hpp"

namespace warpcipher {
namespace {

// In page-locked memory the number of slots hardly matters: 3, 4 and 6 on the same machine are within 1%.
constexpr std::size_t most_direct_slots = 4;
// Fewer contiguous sectors are messages like others: a call of run_sectors costs launches of its own.
constexpr std::size_t least_sectors = 64;

// The messages up to `end`, and whether they travel directly.
struct ContiguousRun {
  std::size_t end;
  bool direct;
};

// The order in which messages go round the ring. Where texts are coalesced: by address, so that most of a piece travels
// in few ranges.
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

ContiguousRun find_run(const DeviceEngine& engine, const Order& messages, std::size_t begin, std::size_t direct_len) {
  std::size_t end = begin + 1;
  while (end < messages.size() && is_contiguous(messages[end - 1], messages[end])) ++end;
  return {end, travels_directly(engine, messages[begin], messages[end - 1], direct_len)};
}

// The size of a piece: no larger than the work, and large enough for the longest message that cannot be cut.
std::size_t piece_size(std::span<const Message> messages, const Extent& extent, std::size_t piece_len,
                       const PieceLayout& layout) {
  std::size_t all = extent.room;
  if (layout.lists_out) {
    for (const Message& m : messages) all += TransferPiece::list_room_for(m, layout);
  }
  if (layout.coalescing != nullptr) all += all / least_text_to_gap;
  // One of few sizes, so that a run finds memory that another run left.
  return std::max(
      {std::min(all > least_piece_len ? std::bit_ceil(all) : all, piece_len), extent.uncut, TransferPiece::alignment});
}

// Transfers in progress share the cores. Each has one already.
std::size_t helper_count(const TransferSettings& settings) {
  const std::size_t transfers = std::max<std::size_t>(ActiveTransfer::count(), 1);
  const std::size_t threads = ThreadPool::instance().threads();
  return std::min(settings.helpers, threads > transfers ? (threads - transfers) / transfers : 0);
}

// Feeds a ring with the messages of a run.
class Feeder {
 public:
  // size: of a piece, without a list.
  Feeder(const DeviceEngine& engine, const Order& messages, const Extent& extent, const TransferSettings& settings,
         std::size_t size)
      : engine_(engine), messages_(messages), extent_(extent), settings_(settings), size_(size) {}

  // Sends all messages. `run` is the first contiguous run, or empty when it is not known. call_helpers() is called
  // before the cores have texts to copy in.
  template <class CallHelpers>
  void feed(TransferRing& ring, ContiguousRun run, const TransferMode& direct, const TransferMode& others,
            CallHelpers&& call_helpers) {
    for (std::size_t i = 0; i < messages_.size();) {
      if (i == run.end) run = find_run(engine_, messages_, i, settings_.direct_len);
      const TransferMode& mode = run.direct ? direct : others;
      if (mode.cores_copy_in) call_helpers();
      if (can_be_cut(messages_[i]) && TransferPiece::room_for(messages_[i]) > size_) {
        send_parts(ring, i, mode);
        ++i;
        continue;
      }
      const std::size_t count = mode.layout.lists_out ? 1 : count_sectors_at(i, run.end);
      ring.add(messages_.number(i), count, mode);
      i += count;
    }
  }

 private:
  // How many messages from `begin` on are sent as sectors; 1: none, but this message by itself.
  std::size_t count_sectors_at(std::size_t begin, std::size_t end) {
    const std::size_t len = messages_[begin].in_len;
    if (begin < no_sectors_before_ || len == 0) return 1;
    const std::size_t most = std::min(end - begin, size_ / len);
    std::size_t count = extent_.are_sectors ? most : 1;
    while (count < most && is_next_sector(messages_[begin + count - 1], messages_[begin + count])) ++count;
    if (count >= least_sectors) return count;
    no_sectors_before_ = begin + count;
    return 1;
  }

  void send_parts(TransferRing& ring, std::size_t i, const TransferMode& mode) const {
    const Message& message = messages_[i];
    const std::size_t part_len = std::min(settings_.piece_len, size_) - (message.tag_len != 0 ? cut_multiple : 0);
    Cutter cutter(message, messages_.number(i));
    while (!cutter.done()) ring.send(cutter.next(part_len), mode);
  }

  const DeviceEngine& engine_;
  const Order& messages_;
  const Extent& extent_;
  const TransferSettings& settings_;
  const std::size_t size_;
  std::size_t no_sectors_before_ = 0;
};

void run_pieces(DeviceEngine& engine, std::span<const Message> messages, std::span<Status> statuses,
                const Extent& extent, const TransferSettings& settings) {
  const Order as_given(messages, false);
  const ContiguousRun first =
      extent.contiguous ? ContiguousRun{messages.size(), travels_directly(engine, messages.front(), messages.back(),
                                                                          settings.direct_len)}
                        : find_run(engine, as_given, 0, settings.direct_len);
  // Without copies by the cores there is less to overlap.
  const bool all_direct = first.direct && first.end == messages.size();
  const TransferMode direct = TransferMode::direct();
  PinnedRangeCache pinned(engine);
  const TransferMode others =
      all_direct ? TransferMode::bounce() : choose_mode(engine, pinned, messages, extent, settings.range_len);
  const PieceLayout& layout = others.layout;
  const std::size_t size = piece_size(messages, extent, settings.piece_len, layout);
  std::vector<int> devices = engine.devices_for_host_data();
  devices.resize(std::clamp<std::size_t>(settings.devices, 1, devices.size()));
  // A message held whole may need most of the device's memory: then there is one slot, not a ring.
  const bool whole = size > settings.piece_len;
  if (whole) devices.resize(1);
  const std::size_t slots = whole        ? 1
                            : all_direct ? std::min(settings.slots, most_direct_slots) * devices.size()
                                         : std::min(settings.slots * devices.size(),
                                                    std::max<std::size_t>(1, PinnedBudget::of_call() / size));
  TransferBatch batch{messages, statuses};
  TransferRing ring(engine, batch, std::move(devices), slots, layout.lists_out ? TransferPiece::with_list(size) : size);
  std::atomic<bool> over{false};
  const auto help = [&] {
    while (!over.load(std::memory_order_relaxed)) {
      if (!ring.help()) std::this_thread::yield();
    }
  };
  std::optional<ThreadPool::Helpers> helpers;
  const struct End {
    ~End() { over = true; }
    std::atomic<bool>& over;
  } end{over};
  const Order order(messages, layout.coalescing != nullptr);
  Feeder(engine, order, extent, settings, size)
      .feed(ring, extent.contiguous ? first : ContiguousRun{0, false}, direct, others, [&] {
        if (!helpers.has_value()) helpers.emplace(ThreadPool::instance(), helper_count(settings), help);
      });
  if (others.cores_copy_in && !others.cores_copy_out) {  // results need no cores: other batches may have them
    ring.finish_copies_in();
    over = true;
    helpers.reset();
  }
  ring.finish();
}

// Zeros the text at out, on all cores.
void wipe_text(const Message& message) { wipe_in_parallel(message.out, message.in_len); }

// Zeros every text that must not be seen before its tag is checked: after a run that failed half-way.
void wipe_unverified(std::span<const Message> messages) {
  for (const Message& m : messages) {
    if (m.is_authenticated_decryption()) wipe_text(m);
  }
}

}  // namespace

void run_through_device(DeviceEngine& engine, std::span<const Message> messages, std::span<Status> statuses,
                        const TransferSettings& given) {
  const Extent extent = find_extent(messages);
  const TransferSettings settings =
      given.piece_len != 0 ? given
                           : choose_transfer_settings(extent.text_len, engine.devices_for_host_data().size(),
                                                      extent.are_sectors ? 1 : messages.size());
  const ActiveTransfer active;
  try {
    run_pieces(engine, messages, statuses, extent, settings);
  } catch (...) {
    wipe_unverified(messages);  // the slots are gone by now, and no copy is in progress
    throw;
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (statuses[i] == Status::invalid_tag) wipe_text(messages[i]);
  }
}

namespace {

// The share of a device is a multiple of this, so that parts are as aligned as pieces.
constexpr std::size_t share_multiple = std::size_t{64} << 10;
constexpr std::size_t everything = std::numeric_limits<std::size_t>::max();

using Tag = Secret<std::uint8_t[full_tag_len]>;

// Whether both engines may have parts of the message. The CPU's knows of none of ChaCha20-Poly1305.
bool can_be_shared(const Message& message) {
  return can_be_cut(message) && message.algorithm().mode.id != Mode::poly1305;
}

// The work of one engine. A part of a GCM message that was cut has a tag of its own.
struct Side {
  explicit Side(const std::vector<Part>& all) : parts(all), tags(all.size()), statuses(all.size(), Status::ok) {
    messages.reserve(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      Message& m = messages.emplace_back(all[i].runnable());
      if (all[i].tags == nullptr) continue;
      m.tag = *tags[i];
      m.tag_len = full_tag_len;
      m.compute_tag = m.direction == Direction::decrypt;
    }
  }

  template <class Run>
  void run(Run&& run_messages) {
    if (messages.empty()) return;
    const auto start = std::chrono::steady_clock::now();
    run_messages();
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  // To be called when both engines are done, first for the device: the tags of a message's parts add up in order.
  void report(std::span<const Message> all, std::span<Status> all_statuses) const {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      if (statuses[i] != Status::ok) all_statuses[part.index] = statuses[i];
      if (part.tags == nullptr) continue;
      part.tags->add(part.offset, part.message.in_len, *tags[i]);
      if (!part.last) continue;
      const Message& whole = all[part.index];
      Tag tag;
      part.tags->tag(*tag);
      if (settle_tag(whole, *tag)) continue;
      all_statuses[part.index] = Status::invalid_tag;
      wipe_text(whole);
    }
  }

  const std::vector<Part>& parts;
  std::vector<Tag> tags;
  std::vector<Message> messages;
  std::vector<Status> statuses;
  double seconds = 0;
};

}  // namespace

Shares share_out(std::span<const Message> messages, std::size_t device_len) {
  Shares shares;
  std::size_t left = device_len;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Message& m = messages[i];
    Cutter cutter(m, i);
    if (left != 0 && m.in_len <= left) {
      left -= m.in_len;
      shares.device.push_back(cutter.next(everything));
      continue;
    }
    const std::size_t front = left / cut_multiple * cut_multiple;
    if (front != 0 && can_be_shared(m)) shares.device.push_back(cutter.next(front));
    left = 0;
    shares.cpu.push_back(cutter.next(everything));
  }
  return shares;
}

std::size_t device_len(std::span<const Message> messages, double cpu_share) {
  std::size_t total = 0;
  for (const Message& m : messages) total += m.in_len;
  const auto len = static_cast<std::size_t>(static_cast<double>(total) * (1 - cpu_share));
  return len / share_multiple * share_multiple;
}

ShareSeconds run_on_both(DeviceEngine& device, Engine& cpu, std::span<const Message> messages,
                         std::span<Status> statuses, std::size_t device_len) {
  const Shares shares = share_out(messages, device_len);
  Side device_side(shares.device), cpu_side(shares.cpu);
  try {
    const int current = device.devices_for_host_data()[0];  // a thread of the pool has another current device
    ThreadPool::instance().parallel_for(2, 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t side = begin; side < end; ++side) {
        if (side == 0) {
          const SelectedDevice scope(device, current);
          device_side.run([&] { run_through_device(device, device_side.messages, device_side.statuses); });
        } else {
          cpu_side.run([&] { cpu.run(make_plan(cpu_side.messages, cpu.tile_units()), cpu_side.statuses, nullptr); });
        }
      }
    });
  } catch (...) {
    wipe_unverified(messages);
    throw;
  }
  device_side.report(messages, statuses);
  cpu_side.report(messages, statuses);
  return {device_side.seconds, cpu_side.seconds};
}

}  // namespace warpcipher
