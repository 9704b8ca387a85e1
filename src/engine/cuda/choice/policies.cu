// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/choice/policies.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <string>

#include "core/error.hpp"
#include "engine/cuda/ghash/tensor.hpp"
#include "engine/cuda/lane_table/hybrid.hpp"
#include "engine/cuda/lane_table/table_layout.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "engine/cuda/runtime/environment.hpp"

namespace warpcipher::cuda {
namespace {

struct Entry {
  std::string_view name;
  const char* variable;  // of the environment, which overrides every choice
  std::string_view algorithm;
  std::array<std::string_view, 2> values;  // the default first, where the device can run it
  bool (*runs)(const Device& device, std::string_view value);
  const char* why;  // the first is the default
};

bool has_tables(const Device& device, std::string_view value) {
  return device.shared_len >= (value == "128" ? lane_table::Tables128::shared_len : lane_table::Tables64::shared_len);
}

bool has_hash(const Device& device, std::string_view value) {
  return value == "scalar" || ghash::has_tensor_ghash(device);
}

bool has_warps(const Device& device, std::string_view value) {
  return value == "tiles" || lane_table::has_hybrid(device);
}

// By Tunable.
constexpr std::array<Entry, 4> entries{{
    {"lane_table",
     "WARPCIPHER_LANE_TABLE",
     "aes-128-ctr",
     {"128", "64"},
     &has_tables,
     "KiB of tables; H200, 256 MiB of AES-128-CTR: 872 GB/s, with 64 KiB 853"},
    {"ghash",
     "WARPCIPHER_GHASH",
     "aes-128-gcm",
     {"tensor", "scalar"},
     &has_hash,
     "H200, 256 MiB of AES-128-GCM: 597 GB/s by tensor cores, 270 by the scalar kernel"},
    {"counter",
     "WARPCIPHER_COUNTER",
     "aes-128-ctr",
     {"mixed", "tiles"},
     &has_warps,
     "H200, 4 GiB of AES-128-CTR: 1052 GB/s by lane tables and logic at once, 919 by lane tables alone"},
    {"blocks",
     "WARPCIPHER_BLOCKS",
     "aes-128-ecb",
     {"mixed", "tiles"},
     &has_warps,
     "H200, 4 GiB of AES-128-ECB: 956 GB/s by lane tables and logic at once, 777 by lane tables alone"},
}};

constexpr int most_devices = 64;

// For each tunable and device the number of the value from 1 on; 0: the default.
std::array<std::array<std::atomic<std::uint8_t>, most_devices>, entries.size()> chosen;

}  // namespace

std::vector<Policy> policies(const Device& device) {
  std::vector<Policy> all;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    Policy policy{entry.name, {}, {}, {}, entry.algorithm};
    for (const std::string_view value : entry.values) {
      if (entry.runs(device, value)) policy.values.push_back(value);
    }
    if (policy.values.empty()) continue;
    const std::string_view own = chosen_value(device, static_cast<Tunable>(i));
    const std::string_view forced = environment_value(entry.variable);
    if (!forced.empty()) {
      policy.value = forced;
      policy.reason = std::string("forced by ") + entry.variable;
    } else if (!own.empty()) {
      policy.value = own;
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

void choose_policy(int device, std::string_view name, std::string_view value) {
  const std::vector<Device>& list = devices().list;
  const auto found = std::find_if(list.begin(), list.end(), [&](const Device& d) { return d.index == device; });
  if (found == list.end() || device >= most_devices) return;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].name != name) continue;
    if (value.empty()) chosen[i][static_cast<std::size_t>(device)] = 0;
    for (std::size_t number = 0; number < entries[i].values.size(); ++number) {
      if (entries[i].values[number] == value && entries[i].runs(*found, value)) {
        chosen[i][static_cast<std::size_t>(device)] = static_cast<std::uint8_t>(number + 1);
      }
    }
  }
}

std::string_view chosen_value(const Device& device, Tunable tunable) {
  if (device.index < 0 || device.index >= most_devices) return {};
  const auto i = static_cast<std::size_t>(tunable);
  const std::uint8_t number = chosen[i][static_cast<std::size_t>(device.index)].load(std::memory_order_relaxed);
  return number == 0 ? std::string_view() : entries[i].values[number - 1];
}

}  // namespace warpcipher::cuda
