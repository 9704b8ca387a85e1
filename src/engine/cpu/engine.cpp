// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/engine.hpp"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <fstream>
#include <new>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "core/thread_pool.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/aes_key.hpp"
#include "engine/cpu/execute.hpp"
#include "engine/cpu/lanes.hpp"
#include "engine/cpu/libcrypto.hpp"
#include "engine/cpu/piece.hpp"
#include "engine/cpu/schedule.hpp"

namespace warpcipher {
namespace {

// A run that fails in the middle must not leave text whose tag was not checked.
void wipe_texts(std::span<const Message> messages) {
  for (const Message& m : messages) {
    if (m.is_authenticated_decryption()) secure_wipe(m.out, m.in_len);
  }
}

// libcrypto's AES runs in constant time with AES instructions or byte shuffles, its GHASH with carry-less products;
// without them it reads tables at secret addresses.
struct Instructions {
  bool aes = false;
  bool carryless_multiply = false;

  Instructions() {
#if defined(__x86_64__)
    aes = __builtin_cpu_supports("aes") || __builtin_cpu_supports("ssse3");
    carryless_multiply = __builtin_cpu_supports("pclmul");
#elif defined(__aarch64__)
    aes = true;  // NEON, which every such processor has, serves the shuffles
    carryless_multiply = (getauxval(AT_HWCAP) & HWCAP_PMULL) != 0;
#endif
  }
};

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
#if defined(__aarch64__)
  return "ARMv8 processor";
#else
  return "processor of unknown name";
#endif
}

// The modes that execute.cpp has code for.
constexpr bool runs_mode(Mode mode) {
  switch (mode) {
    case Mode::ecb:
    case Mode::cbc:
    case Mode::cfb:
    case Mode::cfb8:
    case Mode::ofb:
    case Mode::ctr:
    case Mode::gcm:
    case Mode::xts:
    case Mode::gcm_siv:
    case Mode::stream:
    case Mode::poly1305:
    case Mode::ccm:
      return true;
  }
  return false;
}

class CpuEngine final : public Engine {
 public:
  EngineId id() const override { return EngineId::cpu; }
  std::string_view name() const override { return "cpu"; }
  std::string_view description() const override { return description_; }
  Memory memory() const override { return Memory::host; }

  bool constant_time(const Algorithm& algorithm) const override {
    if (!is_aes(algorithm.cipher.id)) return true;  // bitsliced DES; ChaCha20 has no tables
    return instructions_.aes && (algorithm.mode.id != Mode::gcm || instructions_.carryless_multiply);
  }

  const std::string& unavailable_reason() const override { return none_; }

  bool offers(const Algorithm& algorithm) const override {
    return runs_mode(algorithm.mode.id) && (has_aes_ || !is_aes(algorithm.cipher.id));
  }

  std::vector<std::string> devices() const override {
    const std::size_t cores = ThreadPool::instance().threads();
    const Libcrypto& libcrypto = Libcrypto::instance();
    return {processor_name() + ", " + std::to_string(cores) + (cores == 1 ? " core, " : " cores, ") +
            (Libcrypto::is_here() ? libcrypto.version() : "no libcrypto: " + libcrypto.unavailable_reason())};
  }

  std::uint32_t tile_units() const override { return cpu_tile_units; }

  void run(const Plan& plan, std::span<Status> statuses, Stream) override {
    for (const Group& group : plan.groups) require(*group.algorithm);
    for (Status& status : statuses) status = Status::ok;
    guarded(plan.messages, [&] {
      ThreadPool& pool = ThreadPool::instance();
      run_schedule(plan, make_schedule(plan, pool.threads()), pool, statuses);
    });
  }

  Status run_one(const Message& message, Stream stream) override {
    if (!runs_whole(message)) return Engine::run_one(message, stream);
    require(message.algorithm());
    Status status = Status::ok;
    guarded({&message, 1}, [&] { status = run_message(message); });
    return status;
  }

 private:
  void require(const Algorithm& algorithm) const {
    if (offers(algorithm)) return;
    if (!runs_mode(algorithm.mode.id)) {
      throw Error(Status::engine_unavailable,
                  "engine 'cpu' has no code for " + std::string(algorithm.name) + ": use engine 'reference'");
    }
    const char* const own =
        is_aes(algorithm.cipher.id)
            ? "own code for AES needs an x86-64 processor with AES instructions, AVX and carry-less "
              "products, and "
            : "";
    throw Error(Status::engine_unavailable, "engine 'cpu' cannot run " + std::string(algorithm.name) + " here: " + own +
                                                Libcrypto::instance().unavailable_reason());
  }

  template <class Work>
  static void guarded(std::span<const Message> messages, const Work& work) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      wipe_texts(messages);
      throw Error(Status::out_of_memory, "the cpu engine ran out of host memory");
    } catch (...) {
      wipe_texts(messages);
      throw;
    }
  }

  // Whether no schedule would cut the message over threads. A plan and its schedule take 1 us.
  static bool runs_whole(const Message& m) {
    if (m.in_len <= cpu_tile_units * m.algorithm().unit_len()) return true;
    if (m.in_len < min_shared_cost / cost_of(m.algorithm(), m.direction).byte) return true;
    return ThreadPool::instance().threads() == 1;
  }

  static std::string describe() {
    const Libcrypto& libcrypto = Libcrypto::instance();
    const std::string aes = cpu::aes_lanes_list().empty() ? "" : std::string(cpu::aes_lanes_list()[0]->name);
    const std::string chacha = "own " + std::string(cpu::chacha_lanes_list()[0]->name) + " code for ChaCha20";
    if (!Libcrypto::is_here()) {
      return (aes.empty() ? "no AES without OpenSSL's libcrypto, " : "own " + aes + " code for AES, ") + chacha;
    }
    return "AES and ChaCha20 by OpenSSL's libcrypto (" + libcrypto.version() + ") or " +
           (aes.empty() ? "" : "own " + aes + " code for AES and ") + chacha;
  }

  const std::string none_;
  const bool has_aes_ = Libcrypto::is_here() || has_own_aes();
  const std::string description_ = describe() + ", DES bitsliced, on all cores";
  const Instructions instructions_;
};

}  // namespace

Engine& cpu_engine() {
  static constinit FirstUse<CpuEngine> engine;
  return engine.get();
}

}  // namespace warpcipher
