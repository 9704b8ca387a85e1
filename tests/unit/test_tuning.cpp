// SPDX-License-Identifier: Apache-2.0
// The tuner and its cache: what is written is read again, and what is damaged or of another machine is not.
#include <gtest/gtest.h>

#include <cstdio>

#include "flow/transfer_settings.hpp"
#include "host_device_engine.hpp"
#include "tuning/tuner.hpp"

namespace warpcipher {
namespace {

constexpr const char* machine = "version 1\ncuda a GPU\n";

Tuning some_tuning() {
  Tuning tuning;
  tuning.rates.emplace();
  Rates& rates = tuning.rates->at(find_algorithm("aes-128-cbc"), Direction::decrypt);
  rates.cpu = {1e-6, 2e-7, 4096, 0, {{1048576, 1e-4}, {134217728, 0.0041}}};
  rates.pinned = {5e-5, 1e-8, 0, 2.5e8, {{1048576, 7e-5}}};
  rates.with_pinned = {1.25, 1.5};
  tuning.choices = {{0, "tables", "64", 9e11, 8e11}, {PolicyChoice::of_transfer, "slots", "4", 4e10, 3e10}};
  return tuning;
}

// A file with a line of its own making, after a checksum that is right.
std::string with_line(const std::string& line) {
  const std::string text = to_text({}, machine);
  const std::string body = text.substr(0, text.rfind("end ")) + line;
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : body) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3u;
  char end[32];
  std::snprintf(end, sizeof end, "end %016llx\n", static_cast<unsigned long long>(hash));
  return body + end;
}

TEST(Tuning, IsReadAsItWasWritten) {
  const std::string text = to_text(some_tuning(), machine);
  const Tuning again = parse_tuning(text, machine);
  const Rates& rates = again.rates->at(find_algorithm("aes-128-cbc"), Direction::decrypt);
  ASSERT_EQ(rates.cpu.points.size(), 2u);
  EXPECT_EQ(rates.cpu.points[1].seconds, 0.0041);
  EXPECT_EQ(rates.pinned.stream, 2.5e8);
  EXPECT_FALSE(rates.pageable.known());
  ASSERT_EQ(again.choices.size(), 2u);
  EXPECT_EQ(again.choices[0].value, "64");
  EXPECT_EQ(again.choices[1].device, PolicyChoice::of_transfer);
  EXPECT_EQ(rates.with_pinned.cpu, 1.25);
  EXPECT_EQ(rates.with_pinned.device, 1.5);
  EXPECT_FALSE(rates.with_pageable.pays());
  EXPECT_EQ(to_text(again, machine), text);
}

TEST(Tuning, RefusesWhatIsDamagedOrForeign) {
  const std::string text = to_text(some_tuning(), machine);
  EXPECT_THROW(parse_tuning(text, "version 2\ncuda a GPU\n"), Error);
  EXPECT_THROW(parse_tuning("", machine), Error);
  for (std::size_t i = 0; i < text.size(); i += 3) {
    std::string damaged = text;
    damaged[i] ^= 4;
    EXPECT_THROW(parse_tuning(damaged, machine), Error) << i;
    EXPECT_THROW(parse_tuning(text.substr(0, i), machine), Error) << i;
  }
}

// The parser itself: a machine's name may not pass for a line.
TEST(Tuning, RefusesLinesThatCannotBe) {
  const std::string good = "rate aes-128-ecb encrypt cpu 1 1 0 0 1 10 1\n";
  EXPECT_NO_THROW(parse_tuning(with_line(good), machine));
  for (const char* line :
       {"rate aes-128-ecb encrypt cpu 1 1 0 0 1 10 nan\n", "rate aes-128-ecb encrypt cpu -1 1 0 0 1 10 1\n",
        "rate aes-128-ecb encrypt cpu 1 1 0 0 0\n", "rate aes-128-ecb encrypt cpu 1 1 0 0 2 10 1 10 1\n",
        "rate aes-128-ecb encrypt cpu 1 1 0 0 1e9 10 1\n", "rate aes-128-ecb encrypt cpu 1 1 0 0 1 10 1 7\n",
        "rate aes-128-ecb encrypt cpu 1 1 0 0 1 10\n", "rate rot13 encrypt cpu 1 1 0 0 1 10 1\n",
        "policy -2 slots 4 1 1\n", "policy 0 slots 4 1\n", "policy slots 4 1 1\n", "policy 0 slots 4 1 1 1\n",
        "together aes-128-ecb encrypt cpu 1 1\n", "together aes-128-ecb encrypt pinned 0 1\n",
        "together aes-128-ecb encrypt pinned 1\n", "rate aes-128-ecb inward cpu 1 1 0 0 1 10 1\n",
        "rate aes-128-ecb encrypt tpu 1 1 0 0 1 10 1\n", "colour 1\n"}) {
    EXPECT_THROW(parse_tuning(with_line(line), machine), Error) << line;
  }
}

TEST(Tuning, ChoicesHoldUntilTheyAreReplaced) {
  const auto in_use = [](std::string_view name) {
    for (const Policy& policy : transfer_policies()) {
      if (policy.name == name) return std::pair(std::string(policy.value), policy.reason);
    }
    return std::pair<std::string, std::string>();
  };
  Tuning tuning;
  tuning.choices = {{PolicyChoice::of_transfer, "slots", "4", 2, 1},
                    {PolicyChoice::of_transfer, "piece_MiB", "3", 2, 1},
                    {PolicyChoice::of_transfer, "colour", "4", 2, 1},
                    {12345, "tables", "64", 2, 1}};
  use_tuning(tuning);
  EXPECT_EQ(in_use("slots").first, "4");
  EXPECT_EQ(in_use("slots").second, "measured on this machine");
  EXPECT_EQ(in_use("piece_MiB").first, "8");  // 3 is not a choice
  EXPECT_EQ(choose_transfer_settings(std::size_t{1} << 30, 1).slots, 4u);
  use_tuning({});
  EXPECT_EQ(in_use("slots").first, "8");
  EXPECT_NE(in_use("slots").second.find("shipped default: H200"), std::string::npos);
}

TEST(Tuner, MeasuresEverythingOnce) {
  test::HostDeviceEngine device;
  TunerSettings settings;
  settings.device_len = 4096;
  settings.least_len = 1024;
  settings.most_len = 16384;
  settings.seconds = 0;
  settings.repetitions = 1;
  settings.algorithms = {"aes-128-ctr", "aes-128-cbc", "aes-256-gcm", "aes-128-xts"};
  std::vector<double> done;
  const Tuning tuning =
      measure_tuning(device, reference_engine(), settings, [&](const TunerNews& news) { done.push_back(news.done); });
  ASSERT_EQ(done.size(), 10u);
  EXPECT_EQ(done.back(), 1.0);
  for (const char* name : {"aes-128-ctr", "aes-128-cbc", "aes-256-gcm", "aes-128-xts"}) {
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      const Rates& rates = tuning.rates->at(find_algorithm(name), direction);
      EXPECT_TRUE(rates.cpu.known() && rates.pageable.known() && rates.pinned.known()) << name;
    }
  }
  EXPECT_GT(tuning.rates->at(find_algorithm("aes-128-cbc"), Direction::encrypt).cpu.stream, 0);
  EXPECT_EQ(tuning.rates->at(find_algorithm("aes-128-cbc"), Direction::decrypt).cpu.stream, 0);
  ASSERT_EQ(tuning.choices.size(), 3u);
  EXPECT_EQ(tuning.choices[0].name, "form");
  EXPECT_EQ(tuning.choices[0].value, device.form);
  for (const PolicyChoice& choice : tuning.choices) EXPECT_GE(choice.rate, choice.rate_of_default);
  for (const Policy& policy : transfer_policies()) choose_transfer_policy(policy.name, "");
  EXPECT_TRUE(parse_tuning(to_text(tuning, machine), machine).rates.has_value());
  EXPECT_TRUE(device.balanced());
}

}  // namespace
}  // namespace warpcipher
