// SPDX-License-Identifier: Apache-2.0
#include "flow/transfer_modes.hpp"

namespace warpcipher {

TransferMode TransferMode::bounce() {
  TransferMode mode;
  mode.cores_copy_in = mode.cores_copy_out = true;
  return mode;
}

TransferMode TransferMode::direct() {
  TransferMode mode;
  mode.layout.tight = mode.kernels_write_to_bounce = true;
  return mode;
}

TransferMode TransferMode::scatter(bool writes_tags) {
  TransferMode mode;
  mode.layout.lists_out = mode.cores_copy_in = true;
  mode.device_writes_tags = writes_tags;
  return mode;
}

TransferMode TransferMode::gather_scatter(PinnedRangeCache& pinned, std::size_t range_len, bool writes_tags) {
  TransferMode mode;
  mode.layout = {.coalescing = &pinned, .lists_in = true, .lists_out = true};
  mode.device_writes_tags = writes_tags;
  mode.range_len = range_len;
  return mode;
}

namespace {

// Shorter results, on average, also go back through the bounce buffer: the link moves requests of 128 bytes.
constexpr std::size_t least_scattered_len = 1024;

}  // namespace

TransferMode choose_mode(const DeviceEngine& engine, PinnedRangeCache& read, std::span<const Message> messages,
                         const Extent& extent, std::size_t range_len) {
  const bool are_long = extent.output_len >= messages.size() * least_scattered_len;
  if (messages.size() < 2 || !are_long) return TransferMode::bounce();
  PinnedRangeCache written(engine);
  bool reads = true, writes_tags = true;
  for (const Message& m : messages) {
    if (!written.holds(m.out, m.output_len())) return TransferMode::bounce();
    writes_tags = writes_tags && (m.direction == Direction::decrypt || written.holds(m.tag, m.tag_len));
    reads = reads && (m.in == m.out || read.holds(m.in, m.in_len));
  }
  return reads ? TransferMode::gather_scatter(read, range_len, writes_tags) : TransferMode::scatter(writes_tags);
}

bool travels_directly(const DeviceEngine& engine, const Message& first, const Message& last, std::size_t direct_len) {
  const auto in_len = static_cast<std::size_t>(last.in - first.in) + last.in_len;
  const auto out_len = static_cast<std::size_t>(last.out - first.out) + last.output_len();
  return in_len != 0 && in_len >= direct_len && engine.is_pinned(first.in, in_len) &&
         engine.is_pinned(first.out, out_len);
}

}  // namespace warpcipher
