// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "transfer/transfer_modes.hpp"

namespace warpcipher {
namespace {

// Shorter results, on average, also go back through the bounce buffer: the link moves requests of 128 bytes.
constexpr std::size_t least_scattered_len = 1024;

}  // namespace

std::unique_ptr<const TransferMode> choose_mode(const DeviceEngine& engine, std::span<const Message> messages,
                                                const Extent& extent, std::size_t range_len) {
  const bool are_long = extent.output_len >= messages.size() * least_scattered_len;
  if (messages.size() < 2 || !are_long) return std::make_unique<BounceMode>();
  PinnedRangeCache written(engine), read(engine);
  bool reads = true, writes_tags = true;
  for (const Message& m : messages) {
    if (!written.holds(m.out, m.output_len())) return std::make_unique<BounceMode>();
    writes_tags = writes_tags && (m.direction == Direction::decrypt || written.holds(m.tag, m.tag_len));
    reads = reads && (m.in == m.out || read.holds(m.in, m.in_len));
  }
  if (!reads) return std::make_unique<ScatterMode>(writes_tags);
  return std::make_unique<GatherScatterMode>(std::move(read), range_len, writes_tags);
}

bool travels_directly(const DeviceEngine& engine, const Message& first, const Message& last, std::size_t direct_len) {
  const auto in_len = static_cast<std::size_t>(last.in - first.in) + last.in_len;
  const auto out_len = static_cast<std::size_t>(last.out - first.out) + last.output_len();
  return in_len != 0 && in_len >= direct_len && engine.is_pinned(first.in, in_len) &&
         engine.is_pinned(first.out, out_len);
}

}  // namespace warpcipher
