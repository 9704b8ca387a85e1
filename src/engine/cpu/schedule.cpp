// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/schedule.hpp"

#include <algorithm>

#include "engine/cpu/aes_serial.hpp"
#include "engine/cpu/context.hpp"
#include "engine/cpu/des_modes.hpp"
#include "engine/cpu/piece.hpp"

namespace warpcipher {
namespace {

std::uint64_t message_cost(const WorkCost& cost, const Message& m) { return cost.message + cost.byte * m.in_len; }

std::uint64_t total_cost(const Plan& plan) {
  std::uint64_t total = 0;
  for (const Group& group : plan.groups) {
    const WorkCost cost = cost_of(*group.algorithm, group.direction);
    for (const std::uint32_t i : group.messages) total += message_cost(cost, plan.messages[i]);
  }
  return total;
}

// Whether tiles of one message can run on several cores.
bool can_be_split(const Algorithm& algorithm, Direction direction) {
  if (!algorithm.is_aead()) return true;
  return algorithm.mode.id == Mode::gcm && (direction == Direction::encrypt || splits_decryption());
}

}  // namespace

// Measured on Zen 3, OpenSSL 3.0, one core, GB/s: CTR 7, ECB 8.6, CBC decryption 8.8, XTS 7.4, GCM 4.1; CBC encryption
// 1.2, CFB encryption and OFB 0.7, CFB8 encryption 0.04; DES 1.1, triple DES 0.5 and with all lanes full 0.3 in serial
// modes; about 0.3 us for a short GCM message. ChaCha20 by AVX2 2.9, with Poly1305 1.9.
WorkCost cost_of(const Algorithm& algorithm, Direction direction) {
  constexpr std::uint64_t message = 2048;
  if (is_stream_cipher(algorithm.cipher.id)) return {message, algorithm.is_aead() ? 4u : 2u};
  if (!is_aes(algorithm.cipher.id)) {
    const std::uint64_t blocks = algorithm.cipher.id == CipherId::des ? 7 : 14;
    return {message, (algorithm.parallel(direction) ? 1 : 2) * (algorithm.mode.id == Mode::cfb8 ? 8 : 1) * blocks};
  }
  if (aes_serial_lanes(algorithm, direction) > 1) return {message, 1};
  switch (algorithm.mode.id) {
    case Mode::ecb:
    case Mode::ctr:
    case Mode::xts:
      return {message, 1};
    case Mode::gcm:
    case Mode::gcm_siv:
      return {message, 2};
    case Mode::cbc:
      return {message, direction == Direction::decrypt ? 1u : 6u};
    case Mode::cfb:
      return {message, direction == Direction::decrypt ? 2u : 10u};
    case Mode::ofb:
      return {message, 10};
    case Mode::cfb8:
      return {message, direction == Direction::decrypt ? 20u : 180u};
    case Mode::stream:
    case Mode::poly1305:
      break;  // of stream ciphers
  }
  return {message, 1};
}

bool splits_decryption() { return !Libcrypto::is_here() || gives_decryption_tags(); }

std::size_t serial_lanes(const Algorithm& algorithm, Direction direction) {
  if (algorithm.parallel(direction)) return 1;
  return is_aes(algorithm.cipher.id) ? aes_serial_lanes(algorithm, direction) : des_serial_lanes();
}

Schedule make_schedule(const Plan& plan, std::size_t threads) {
  Schedule schedule;
  const std::uint64_t total = total_cost(plan);
  schedule.shared = threads > 1 && total >= min_shared_cost;
  const std::uint64_t fair_share = total / (4 * threads);

  for (std::uint32_t g = 0; g < plan.groups.size(); ++g) {
    const Group& group = plan.groups[g];
    const WorkCost cost = cost_of(*group.algorithm, group.direction);
    const bool whole = !can_be_split(*group.algorithm, group.direction);
    const bool is_serial_des = !group.parallel && !is_aes(group.algorithm->cipher.id);
    // Serial DES does as many messages as it has lanes at the price of one. AES has few lanes: other cores come first.
    const std::uint64_t lanes = serial_lanes(*group.algorithm, group.direction);
    const std::uint64_t together =
        is_serial_des ? lanes : std::clamp<std::uint64_t>(group.messages.size() / threads, 1, lanes);
    std::uint64_t first = 0, gathered = 0;
    const auto close = [&](std::uint64_t end) {
      if (end > first) schedule.grains.push_back({g, Grain::not_split, first, end});
      first = end;
      gathered = 0;
    };
    for (std::uint64_t position = 0; position < group.messages.size(); ++position) {
      const std::uint32_t index = group.messages[position];
      const Message& m = plan.messages[index];
      const std::uint64_t work = message_cost(cost, m);
      const std::uint64_t tiles = group.parallel ? group.first_tile[position + 1] - group.first_tile[position] : 1;
      if (schedule.shared && tiles > 1 && !whole && work > fair_share) {
        close(position);
        const auto split = static_cast<std::uint32_t>(schedule.split.size());
        schedule.split.push_back({index, tiles});
        for (std::uint64_t tile = 0; tile < tiles; ++tile) schedule.grains.push_back({g, split, tile, tile + 1});
        first = position + 1;
        continue;
      }
      gathered += work;
      const bool enough = position + 1 - first >= together && (is_serial_des || gathered >= grain_cost);
      if (enough && schedule.shared) close(position + 1);
    }
    close(group.messages.size());
  }
  return schedule;
}

}  // namespace warpcipher
