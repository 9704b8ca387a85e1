// SPDX-License-Identifier: Apache-2.0
#include "flow/share.hpp"

#include <chrono>
#include <cstdint>
#include <limits>

#include "core/thread_pool.hpp"
#include "flow/host_transfer.hpp"
#include "message/tag.hpp"

namespace warpcipher {
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
