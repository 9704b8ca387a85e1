// SPDX-License-Identifier: Apache-2.0
// `auto`: the decision by given rates, and whether a device is asked for at all.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "dispatch/select.hpp"
#include "engine/engine.hpp"
#include "host_device_engine.hpp"
#include "tuning/tuning.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

JobPart job(const char* name, Direction direction, std::size_t bytes, std::size_t messages = 1) {
  return {&find_algorithm(name), direction, messages, bytes, bytes / messages};
}

// Bytes at a rate, after a fixed time for the call.
Cost cost(double call, double message, double rate) {
  constexpr double bytes = 1e9;
  return {call, message, 0, 0, {{bytes, call + bytes / rate}}};
}

// A CPU of 20 GB/s and a GPU across a link: 10 GB/s from pageable memory, 50 from page-locked.
RateTable plain_table() {
  RateTable table;
  for (const Algorithm& algorithm : algorithms()) {
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      table.at(algorithm, direction) = {cost(1e-6, 3e-7, 20e9), cost(60e-6, 1e-7, 10e9), cost(50e-6, 1e-7, 50e9)};
    }
  }
  return table;
}

TEST(Select, BeforeAnythingIsMeasuredOnlyLongDesGoesToTheDevice) {
  const auto where = [](const char* name, Direction direction, std::size_t bytes) {
    const JobPart part = job(name, direction, bytes);
    return choose_where({&part, 1}, true, nullptr).where;
  };
  EXPECT_EQ(where("aes-128-ctr", Direction::encrypt, 1024 * MiB), Where::cpu);
  EXPECT_EQ(where("des-ede3-ecb", Direction::encrypt, 64 * MiB), Where::device);
  EXPECT_EQ(where("des-ede3-ecb", Direction::encrypt, MiB), Where::cpu);
  EXPECT_EQ(where("des-ede3-cbc", Direction::encrypt, 64 * MiB), Where::cpu);  // serial
}

TEST(Select, FollowsResidenceAndSize) {
  const RateTable table = plain_table();
  const JobPart large = job("aes-128-ctr", Direction::encrypt, 1024 * MiB);
  EXPECT_EQ(choose_where({&large, 1}, false, &table).where, Where::cpu);
  EXPECT_EQ(choose_where({&large, 1}, true, &table).where, Where::device);
  const JobPart small = job("aes-128-ctr", Direction::encrypt, MiB / 2);  // the copies' latency is longer
  EXPECT_EQ(choose_where({&small, 1}, true, &table).where, Where::cpu);
}

TEST(Select, ALoneSerialMessageGoesWhereItsStreamIsFaster) {
  RateTable table = plain_table();
  Rates& rates = table.at(find_algorithm("aes-128-cbc"), Direction::encrypt);
  rates.cpu.stream = 1e9;
  rates.pinned.stream = 1e7;
  const JobPart alone = job("aes-128-cbc", Direction::encrypt, 64 * MiB);
  EXPECT_EQ(choose_where({&alone, 1}, true, &table).where, Where::cpu);
  const JobPart many = job("aes-128-cbc", Direction::encrypt, 1024 * MiB, 262144);
  EXPECT_EQ(choose_where({&many, 1}, true, &table).where, Where::device);
}

TEST(Select, MixedBatchesAddUp) {
  RateTable table = plain_table();
  table.at(find_algorithm("des-ecb"), Direction::encrypt).cpu = cost(1e-6, 3e-7, 1e9);
  const JobPart parts[] = {job("aes-128-ctr", Direction::encrypt, 64 * MiB),
                           job("des-ecb", Direction::encrypt, 64 * MiB)};
  EXPECT_EQ(choose_where({parts, 1}, false, &table).where, Where::cpu);
  EXPECT_EQ(choose_where(parts, false, &table).where, Where::device);
  table.at(find_algorithm("des-ecb"), Direction::encrypt).pageable = {};  // not measured: the rule of before
  EXPECT_EQ(choose_where(parts, false, &table).where, Where::cpu);
}

// An engine that is slow to start loses short texts, however fast it is later.
TEST(Select, FollowsTheMeasuredCurve) {
  RateTable table = plain_table();
  Rates& rates = table.at(find_algorithm("aes-128-ctr"), Direction::encrypt);
  rates.pinned.points = {{1e6, 1e-3}, {1e8, 3e-3}};
  for (const auto& [bytes, where] : {std::pair(std::size_t{4000000}, Where::cpu), {100000000, Where::device}}) {
    const JobPart part = job("aes-128-ctr", Direction::encrypt, bytes);
    EXPECT_EQ(choose_where({&part, 1}, true, &table).where, where) << bytes;
  }
  EXPECT_DOUBLE_EQ(rates.pinned.seconds(5e5), (50e-6 + 1e-3) / 2);
  EXPECT_DOUBLE_EQ(rates.pinned.seconds(1e8), 3e-3);
  EXPECT_NEAR(rates.pinned.seconds(1e9), 3e-3 + 9e8 * 2e-3 / 9.9e7, 1e-9);
}

// The CPU does 20 GB/s, the device 50 after a call of 50 us: 70 together, when neither slows the other.
TEST(Select, SharesWhatIsLongBetweenBoth) {
  RateTable table = plain_table();
  Rates& rates = table.at(find_algorithm("aes-128-ctr"), Direction::encrypt);
  const auto choose = [&](std::size_t bytes, bool pinned) {
    const JobPart part = job("aes-128-ctr", Direction::encrypt, bytes);
    return choose_where({&part, 1}, pinned, &table);
  };
  EXPECT_EQ(choose(1024 * MiB, true).where, Where::device);  // never measured together
  rates.with_pinned = {1, 1};
  const Choice large = choose(1024 * MiB, true);
  EXPECT_EQ(large.where, Where::both);
  EXPECT_NEAR(large.cpu_share, 2.0 / 7, 0.002);
  EXPECT_EQ(choose(1024 * MiB, false).where, Where::cpu);  // nothing known of pageable memory
  const Choice shorter = choose(16 * MiB, true);           // more for the CPU, which starts at once
  EXPECT_EQ(shorter.where, Where::both);
  EXPECT_GT(shorter.cpu_share, 0.32);
  EXPECT_EQ(choose(8 * MiB, true).where, Where::device);  // the threads would take as long as they save
  rates.with_pinned = {2, 1.3};                           // both wait for the same memory: 48 GB/s
  EXPECT_EQ(choose(1024 * MiB, true).where, Where::device);
}

TEST(Select, ALoneSerialMessageIsNotShared) {
  RateTable table = plain_table();
  Rates& rates = table.at(find_algorithm("aes-128-cbc"), Direction::encrypt);
  rates.cpu.stream = 1e9;
  rates.pinned.stream = 1e8;
  rates.with_pinned = {1, 1};
  const JobPart alone = job("aes-128-cbc", Direction::encrypt, 64 * MiB);
  EXPECT_EQ(choose_where({&alone, 1}, true, &table).where, Where::cpu);
  const JobPart many = job("aes-128-cbc", Direction::encrypt, 1024 * MiB, 1024);
  EXPECT_EQ(choose_where({&many, 1}, true, &table).where, Where::both);
}

// Rates measured on messages of 4 KiB hold for those, and for longer ones; shorter ones cost more.
TEST(Select, ShortMessagesCostWhatTheMeasuredOnesDidNot) {
  Cost measured = cost(1e-6, 2e-7, 10e9);
  measured.message_len = 4096;
  const double plain = measured.seconds(64.0 * MiB);
  EXPECT_DOUBLE_EQ(seconds_of(job("aes-256-xts", Direction::encrypt, 64 * MiB, 16384), measured), plain);
  EXPECT_DOUBLE_EQ(seconds_of(job("aes-256-xts", Direction::encrypt, 64 * MiB, 4), measured), plain);
  EXPECT_NEAR(seconds_of(job("aes-256-xts", Direction::encrypt, 64 * MiB, 131072), measured),
              plain + 2e-7 * (131072 - 16384), 1e-9);
}

TEST(Select, MixedBatchesStayWhole) {
  RateTable table = plain_table();
  for (const char* name : {"aes-128-ctr", "aes-128-ecb"}) {
    table.at(find_algorithm(name), Direction::encrypt).with_pinned = {1, 1};
  }
  const JobPart parts[] = {job("aes-128-ctr", Direction::encrypt, 512 * MiB),
                           job("aes-128-ecb", Direction::encrypt, 512 * MiB)};
  EXPECT_EQ(choose_where(parts, true, &table).where, Where::device);
}

// The environment is put back.
class ForcedEngine {
 public:
  explicit ForcedEngine(const char* name) {
    if (const char* const before = std::getenv(variable)) before_ = before;
    setenv(variable, name, 1);
  }
  ForcedEngine(const ForcedEngine&) = delete;
  ForcedEngine& operator=(const ForcedEngine&) = delete;
  ~ForcedEngine() { setenv(variable, before_.c_str(), 1); }  // nothing and an empty name are the same

 private:
  static constexpr const char* variable = "WARPCIPHER_ENGINE";
  std::string before_;
};

TEST(Select, SaysWhatADeviceDoesNotOffer) {
  test::HostDeviceEngine device;
  EXPECT_NO_THROW(require_offered(device, find_algorithm("chacha20")));
  device.lacks = "chacha20";
  EXPECT_NO_THROW(require_offered(device, find_algorithm("chacha20-poly1305")));
  try {
    require_offered(device, find_algorithm("chacha20"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::engine_unavailable);
    EXPECT_STREQ(error.what(),
                 "engine 'host-device' does not offer chacha20: keep the data in host memory, and use engine 'cpu' or "
                 "'auto'");
  }
}

TEST(Select, AsksADeviceOnlyWhenItIsMeant) {
  test::HostDeviceEngine device;
  const std::array<Engine*, 2> among{&cpu_engine(), &device};
  const ForcedEngine none("");
  for (const char* name : {"cpu", "reference", "warp"}) EXPECT_FALSE(may_use_device(name, among)) << name;
  {
    const ForcedEngine cpu("cpu");
    EXPECT_FALSE(may_use_device("auto", among));
    EXPECT_FALSE(may_use_device("", among));
    EXPECT_EQ(device.asked, 0);
    EXPECT_TRUE(may_use_device("host-device", among));  // the environment overrides only `auto`
  }
  const ForcedEngine forced("host-device");
  EXPECT_TRUE(may_use_device("auto", among));
  EXPECT_FALSE(may_use_device("cpu", among));
}

TEST(Select, AutoMayUseADeviceThatCanRunWhereRatesWereMeasured) {
  test::HostDeviceEngine device;
  const std::array<Engine*, 2> among{&cpu_engine(), &device};
  const ForcedEngine none("");
  const std::shared_ptr<const Tuning> before = current_tuning();
  for (const char* name : {"auto", "", "host-device"}) {
    for (const bool measured : {false, true}) {
      Tuning tuning;
      if (measured) tuning.rates = plain_table();
      use_tuning(tuning);
      device.reason.clear();
      device.asked = 0;
      const bool wanted = measured || std::string_view(name) == "host-device";
      EXPECT_EQ(may_use_device(name, among), wanted) << name;
      if (!wanted) {
        EXPECT_EQ(device.asked, 0) << name;
      }
      device.reason = "no driver";
      EXPECT_FALSE(may_use_device(name, among)) << name;
    }
  }
  use_tuning(*before);
}

}  // namespace
}  // namespace warpcipher
