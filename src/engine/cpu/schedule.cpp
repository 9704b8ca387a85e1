// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/schedule.hpp"

#include <algorithm>

#include "engine/cpu/lanes.hpp"
#include "engine/cpu/libcrypto.hpp"
#include "engine/cpu/modes.hpp"
#include "engine/cpu/piece.hpp"

namespace warpcipher {
namespace {

std::uint64_t cost_of_message(const WorkCost& cost, const Message& m) { return cost.message + cost.byte * m.in_len; }

std::uint64_t total_cost(const Plan& plan) {
  std::uint64_t total = 0;
  for (const Group& group : plan.groups) {
    const WorkCost cost = cost_of(*group.algorithm, group.direction);
    for (const std::uint32_t i : group.messages) total += cost_of_message(cost, plan.messages[i]);
  }
  return total;
}

// Whether tiles of one message can run on several cores.
bool can_be_split(const Algorithm& algorithm, Direction direction) {
  if (!algorithm.is_aead() || algorithm.mode.id == Mode::poly1305) return true;
  return algorithm.mode.id == Mode::gcm && (direction == Direction::encrypt || splits_decryption());
}

}  // namespace

AesForm aes_form() {
  const std::size_t forms = cpu::aes_lanes_list().size();  // AES-NI is the last
  return forms == 0 ? AesForm::libcrypto : forms == 1 ? AesForm::aesni : AesForm::vaes;
}

// Measured on Zen 3 with texts of 16 KiB and AES-128, `cpu_forms` and Cipher.encrypt, OpenSSL 3.0.19.
WorkCost cost_of(const Algorithm& algorithm, Direction direction, AesForm form) {
  constexpr std::uint64_t by_libcrypto = 300'000, by_own_code = 100'000;  // a message
  if (is_stream_cipher(algorithm.cipher.id)) return {by_libcrypto, algorithm.is_aead() ? 420u : 345u};
  if (!is_aes(algorithm.cipher.id)) {
    const std::uint64_t blocks = algorithm.cipher.id == CipherId::des ? 1000 : 2000;
    return {by_libcrypto, (algorithm.parallel(direction) ? 1 : 2) * (algorithm.mode.id == Mode::cfb8 ? 8 : 1) * blocks};
  }
  const bool encrypting = direction == Direction::encrypt;
  const auto cost = [&](std::uint64_t libcrypto, std::uint64_t aesni, std::uint64_t vaes) {
    return form == AesForm::libcrypto ? WorkCost{by_libcrypto, libcrypto}
                                      : WorkCost{by_own_code, form == AesForm::aesni ? aesni : vaes};
  };
  if (aes_serial_lanes(algorithm, direction) > 1) return {by_own_code, 130};  // with all lanes full
  switch (algorithm.mode.id) {
    case Mode::ecb: return cost(104, 103, 52);
    case Mode::ctr: return cost(124, 110, 59);
    case Mode::xts: return cost(127, 142, 78);
    case Mode::gcm: return cost(245, 230, 140);
    case Mode::gcm_siv: return cost(2500, 260, 155);
    case Mode::cbc: return encrypting ? WorkCost{by_libcrypto, 830} : cost(122, 103, 56);
    case Mode::cfb: return encrypting ? WorkCost{by_libcrypto, 1430} : cost(190, 102, 57);
    case Mode::ofb: return {by_libcrypto, 1430};
    case Mode::cfb8: return encrypting ? WorkCost{by_libcrypto, 25'000} : cost(3100, 2800, 2000);
    case Mode::ccm: return cost(1000, 950, 900);
    default: break;
  }
  return {by_libcrypto, 104};
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
      const std::uint64_t work = cost_of_message(cost, m);
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
