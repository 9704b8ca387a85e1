// SPDX-License-Identifier: Apache-2.0
// The known-answer self-test passes on an engine that is right, and disables one that is wrong anywhere.
#include <gtest/gtest.h>

#include <set>

#include "dispatch/self_test.hpp"
#include "engine/engine.hpp"
#include "host_device_engine.hpp"

namespace warpcipher {
namespace {

// An engine of the host that is right but for one byte of one algorithm.
class SpoiledEngine final : public Engine {
 public:
  explicit SpoiledEngine(std::string_view spoiled) : spoiled_(spoiled) {}
  EngineId id() const override { return EngineId::cpu; }
  std::string_view name() const override { return "spoiled"; }
  std::string_view description() const override { return "wrong on purpose"; }
  Memory memory() const override { return Memory::host; }
  bool constant_time(const Algorithm&) const override { return false; }
  bool offers(const Algorithm&) const override { return true; }
  const std::string& unavailable_reason() const override {
    static const std::string none;
    return none;
  }
  std::vector<std::string> devices() const override { return {}; }
  std::uint32_t tile_units() const override { return 256; }
  void run(const Plan& plan, std::span<Status> statuses, Stream stream) override {
    reference_engine().run(plan, statuses, stream);
    for (const Message& m : plan.messages) {
      if (m.algorithm().name == spoiled_ && m.direction == Direction::decrypt) m.out[m.in_len - 1] ^= 1;
    }
  }

 private:
  std::string_view spoiled_;
};

TEST(SelfTest, HasAnAnswerForEveryAlgorithm) {
  std::set<std::string_view> answered, known;
  for (const KnownAnswer& answer : known_answers) answered.insert(answer.algorithm);
  for (const Algorithm& algorithm : algorithms()) known.insert(algorithm.name);
  EXPECT_EQ(answered, known);
}

TEST(SelfTest, PassesTheReference) {
  EXPECT_NO_THROW(require_self_test(reference_engine()));
  EXPECT_NO_THROW(require_self_test(reference_engine()));
}

TEST(SelfTest, PassesADeviceEngine) {
  test::HostDeviceEngine engine;
  EXPECT_NO_THROW(require_self_test(engine));
  EXPECT_GT(engine.runs, 0);
}

// Whatever was tested before: the engine of the same id, for one.
TEST(SelfTest, DisablesAnEngineThatIsWrong) {
  require_self_test(cpu_engine());
  SpoiledEngine engine("des-ede2-cfb");
  for (int i = 0; i < 2; ++i) {
    try {
      require_self_test(engine);
      FAIL() << "the wrong answer went unseen";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::engine_unavailable);
      EXPECT_NE(std::string(error.what()).find("des-ede2-cfb decryption"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace warpcipher
