// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/execution/launch_plan.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "engine/cuda/aes/kernels.hpp"
#include "engine/cuda/ghash/launches.hpp"
#include "engine/cuda/runtime/refusal.hpp"

namespace warpcipher::cuda {
namespace {

bool has_tables(const Device& device, std::string_view value) {
  return device.shared_len >= (value == "128" ? lane_table::Tables128::shared_len : lane_table::Tables64::shared_len);
}

bool has_hash(const Device& device, std::string_view value) {
  return value == "scalar" || ghash::has_tensor_ghash(device);
}

bool has_warps(const Device& device, std::string_view value) {
  return value == "tiles" || lane_table::has_hybrid(device);
}

struct Entry {
  const Choice& choice;
  std::string_view algorithm;
  std::array<std::string_view, 2> values;  // the default first, where the device can run it
  bool (*runs)(const Device& device, std::string_view value);
  const char* why;  // the first is the default
};

constexpr std::array<Entry, 4> entries{{
    {choices::tables,
     "aes-128-ctr",
     {"128", "64"},
     &has_tables,
     "KiB of tables; H200, 256 MiB of AES-128-CTR: 872 GB/s, with 64 KiB 853"},
    {choices::ghash,
     "aes-128-gcm",
     {"tensor", "scalar"},
     &has_hash,
     "H200, 256 MiB of AES-128-GCM: 597 GB/s by tensor cores, 270 by the scalar kernel"},
    {choices::counter,
     "aes-128-ctr",
     {"hybrid", "tiles"},
     &has_warps,
     "H200, 4 GiB of AES-128-CTR: 1052 GB/s by lane tables and logic at once, 919 only by lane tables"},
    {choices::text,
     "aes-128-ecb",
     {"hybrid", "tiles"},
     &has_warps,
     "H200, 4 GiB of AES-128-ECB: 956 GB/s by lane tables and logic at once, 777 only by lane tables"},
}};

}  // namespace

std::vector<Policy> policies(const Device& device) {
  std::vector<Policy> all;
  const Picks environment = overrides(), tuned = tuned_of(device);
  for (const Entry& entry : entries) {
    Policy policy{entry.choice.name, {}, {}, {}, entry.algorithm};
    for (const std::string_view value : entry.values) {
      if (entry.runs(device, value)) policy.values.push_back(value);
    }
    if (policy.values.empty()) continue;
    const std::string_view forced = picked(environment, entry.choice), measured = picked(tuned, entry.choice);
    if (!forced.empty()) {
      policy.value = forced;
      policy.reason = "forced by " + forced_text(entry.choice, forced);
    } else if (!measured.empty()) {
      policy.value = measured;
      policy.reason = "measured on this machine";
    } else {
      policy.value = policy.values[0];
      policy.reason =
          policy.values.size() == 1 ? "nothing else runs on this device" : std::string("shipped default: ") + entry.why;
    }
    all.push_back(std::move(policy));
  }
  return all;
}

void choose_policy(const Device& device, std::string_view name, std::string_view value) {
  std::atomic<Picks>* const place = tuned_place(device);
  const auto entry = std::ranges::find(entries, name, [](const Entry& each) { return each.choice.name; });
  if (place == nullptr || entry == entries.end()) return;
  const bool is_one = std::ranges::find(entry->values, value) != entry->values.end() && entry->runs(device, value);
  if (!value.empty() && !is_one) return;
  Picks before = place->load(std::memory_order_relaxed), after;
  do {
    after = before;
    pick(after, name, value);
  } while (!place->compare_exchange_weak(before, after, std::memory_order_relaxed));
}

}  // namespace warpcipher::cuda
