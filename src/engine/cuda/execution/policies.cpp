// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/execution/launch_plan.hpp"

#include <array>
#include <string>
#include <type_traits>

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

template <auto Member>
std::uint8_t number_of(const Tuned& tuned) {
  return static_cast<std::uint8_t>(tuned.*Member);
}

template <auto Member>
void set_number(Tuned& tuned, std::uint8_t number) {
  tuned.*Member = static_cast<std::remove_reference_t<decltype(tuned.*Member)>>(number);
}

template <auto Member>
std::string_view forced_to(const Choice& choice) {
  return choice.value_of(overrides().*Member);
}

struct Entry {
  const Choice& choice;
  std::string_view (*forced)(const Choice&);  // by the environment, which overrides what was measured
  std::uint8_t (*number)(const Tuned&);       // of the value, from 1 on; 0: the default
  void (*set)(Tuned&, std::uint8_t number);
  std::string_view algorithm;
  std::array<std::string_view, 2> values;  // the default first, where the device can run it
  bool (*runs)(const Device& device, std::string_view value);
  const char* why;  // the first is the default
};

constexpr std::array<Entry, 4> entries{{
    {choices::tables,
     &forced_to<&Overrides::tables>,
     &number_of<&Tuned::tables>,
     &set_number<&Tuned::tables>,
     "aes-128-ctr",
     {"128", "64"},
     &has_tables,
     "KiB of tables; H200, 256 MiB of AES-128-CTR: 872 GB/s, with 64 KiB 853"},
    {choices::ghash,
     &forced_to<&Overrides::ghash>,
     &number_of<&Tuned::ghash>,
     &set_number<&Tuned::ghash>,
     "aes-128-gcm",
     {"tensor", "scalar"},
     &has_hash,
     "H200, 256 MiB of AES-128-GCM: 597 GB/s by tensor cores, 270 by the scalar kernel"},
    {choices::counter,
     &forced_to<&Overrides::counter>,
     &number_of<&Tuned::counter>,
     &set_number<&Tuned::counter>,
     "aes-128-ctr",
     {"hybrid", "tiles"},
     &has_warps,
     "H200, 4 GiB of AES-128-CTR: 1052 GB/s by lane tables and logic at once, 919 only by lane tables"},
    {choices::text,
     &forced_to<&Overrides::text>,
     &number_of<&Tuned::text>,
     &set_number<&Tuned::text>,
     "aes-128-ecb",
     {"hybrid", "tiles"},
     &has_warps,
     "H200, 4 GiB of AES-128-ECB: 956 GB/s by lane tables and logic at once, 777 only by lane tables"},
}};

}  // namespace

std::vector<Policy> policies(const Device& device) {
  std::vector<Policy> all;
  const Tuned tuned = tuned_of(device);
  for (const Entry& entry : entries) {
    Policy policy{entry.choice.name, {}, {}, {}, entry.algorithm};
    for (const std::string_view value : entry.values) {
      if (entry.runs(device, value)) policy.values.push_back(value);
    }
    if (policy.values.empty()) continue;
    const std::string_view forced = entry.forced(entry.choice);
    const std::uint8_t number = entry.number(tuned);
    if (!forced.empty()) {
      policy.value = forced;
      policy.reason = "forced by " + forced_text(entry.choice, forced);
    } else if (number != 0) {
      policy.value = entry.values[number - 1];
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
  std::atomic<Tuned>* const place = tuned_place(device);
  if (place == nullptr) return;
  const auto with = [&](Tuned tuned) {
    for (const Entry& entry : entries) {
      if (entry.choice.name != name) continue;
      if (value.empty()) entry.set(tuned, 0);
      for (std::size_t i = 0; i < entry.values.size(); ++i) {
        if (entry.values[i] == value && entry.runs(device, value)) {
          entry.set(tuned, static_cast<std::uint8_t>(i + 1));
        }
      }
    }
    return tuned;
  };
  Tuned before = place->load(std::memory_order_relaxed);
  while (!place->compare_exchange_weak(before, with(before), std::memory_order_relaxed)) {
  }
}

}  // namespace warpcipher::cuda
