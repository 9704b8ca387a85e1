// SPDX-License-Identifier: Apache-2.0
#include "flow/transfer_settings.hpp"

#include <algorithm>
#include <atomic>
#include <span>
#include <string>

#include "flow/cutter.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t KiB = std::size_t{1} << 10;
constexpr std::size_t MiB = std::size_t{1} << 20;

// The longest piece, and the pieces of one device that are in progress at once.
std::atomic<std::size_t> most_piece_MiB{8};
std::atomic<std::size_t> slots_of_device{8};

struct TransferPolicy {
  std::string_view name;
  std::span<const std::string_view> values;  // the default first
  const char* why;
  std::atomic<std::size_t>& number;
};

constexpr std::string_view piece_lengths[] = {"8", "4", "2", "16"}, slot_counts[] = {"8", "4", "12"};
const constinit TransferPolicy policy_entries[] = {
    {"piece_MiB", piece_lengths,
     "H200 and 16 cores, 1 GiB of pageable AES-128-CTR in 8 slots: 38.8 GB/s, in pieces of 4 MiB 31.3, of 2 MiB 31.1",
     most_piece_MiB},
    {"slots", slot_counts,
     "H200 and 16 cores, 1 GiB of pageable AES-128-CTR in pieces of 8 MiB: 38.8 GB/s, in 4 slots 34.0",
     slots_of_device}};

constexpr std::size_t wanted_pieces = 4;
// Each piece of short messages costs the host about fifteen launches and copies more, of 1 to 4 us each.
constexpr std::size_t most_short_message = 64 * KiB;
constexpr std::size_t least_piece_of_short = 9 * MiB;  // a payload of a queue, with its tags and gaps
constexpr std::size_t bytes_worth_a_device = 32 * MiB;
// Shorter pinned runs go through the bounce buffer, like other texts, unless the batch has few.
constexpr std::size_t most_direct_len = 256 * KiB;
constexpr std::size_t wanted_direct_runs = 4;
// One more core helps with the copies for each of these. Short messages often come from many threads, as payloads of a
// queue: several payloads are then in progress, each with copies of its own.
constexpr std::size_t bytes_worth_a_helper = 256 * KiB;
constexpr std::size_t bytes_worth_a_helper_of_short = 2 * MiB;

}  // namespace

std::vector<Policy> transfer_policies() {
  std::vector<Policy> all;
  for (const TransferPolicy& entry : policy_entries) {
    const std::string now = std::to_string(entry.number);
    const std::string_view value = *std::find(entry.values.begin(), entry.values.end(), now);
    const bool is_default = value == entry.values[0];
    all.push_back({entry.name,
                   {entry.values.begin(), entry.values.end()},
                   value,
                   is_default ? std::string("shipped default: ") + entry.why : "measured on this machine",
                   "aes-128-ctr"});
  }
  return all;
}

void choose_transfer_policy(std::string_view name, std::string_view value) {
  for (const TransferPolicy& entry : policy_entries) {
    if (entry.name != name) continue;
    const std::string_view wanted = value.empty() ? entry.values[0] : value;
    if (std::find(entry.values.begin(), entry.values.end(), wanted) == entry.values.end()) return;
    entry.number = std::stoul(std::string(wanted));
  }
}

TransferSettings choose_transfer_settings(std::size_t total, std::size_t devices, std::size_t messages) {
  const std::size_t used = std::clamp<std::size_t>(total / bytes_worth_a_device, 1, devices);
  const bool is_short = messages > 1 && total / messages <= most_short_message;
  const std::size_t least = is_short ? least_piece_of_short : least_piece_len;
  const std::size_t most = std::max<std::size_t>(most_piece_MiB * MiB, least);
  const std::size_t piece_len = std::clamp(total / (wanted_pieces * used), least, most);
  return {(piece_len + cut_multiple - 1) / cut_multiple * cut_multiple, slots_of_device, used,
          std::min(total / wanted_direct_runs, most_direct_len),
          total / (is_short ? bytes_worth_a_helper_of_short : bytes_worth_a_helper)};
}

}  // namespace warpcipher
