// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/engine.hpp"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <fstream>
#include <memory>
#include <string>

#include "core/thread_pool.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/aes_gcm.hpp"
#include "engine/cpu/aes_modes.hpp"
#include "engine/cpu/libcrypto.hpp"
#include "engine/cpu/piece.hpp"
#include "engine/cpu/schedule.hpp"

namespace warpcipher {
namespace {

// A split message in work: what its tiles share.
struct SplitWork {
  std::unique_ptr<SplitGcm> gcm;
  std::vector<std::uint8_t> chains;  // chaining modes: the ciphertext block before each tile but the first
};

bool chains(Mode mode) { return mode == Mode::cbc || mode == Mode::cfb || mode == Mode::cfb8; }

// Must run before any tile does: in place, a tile overwrites the ciphertext that the next one chains from.
SplitWork prepare(const Message& m, std::uint64_t tiles) {
  SplitWork work;
  if (m.algorithm().is_aead()) {
    work.gcm = std::make_unique<SplitGcm>(AesKey::of(*m.key), m, tiles);
  } else if (chains(m.algorithm().mode.id)) {
    const std::size_t block = m.algorithm().block_len();
    const std::size_t tile_len = cpu_tile_units * m.algorithm().unit_len();
    for (std::uint64_t tile = 1; tile < tiles; ++tile) {
      const std::uint8_t* const end = m.in + tile * tile_len;
      work.chains.insert(work.chains.end(), end - block, end);
    }
  }
  return work;
}

void run_piece(const Message& m, const Piece& piece) { run_aes_piece(AesKey::of(*m.key), m, piece); }

void run_tile(const Message& m, std::uint32_t index, SplitWork& work, std::uint64_t tile, std::uint64_t tiles,
              std::span<Status> statuses) {
  const std::size_t block = m.algorithm().block_len();
  const bool chained = tile > 0 && !work.chains.empty();
  const Piece piece = tile_piece(m, tile, tiles, chained ? work.chains.data() + (tile - 1) * block : nullptr);
  if (work.gcm) {
    work.gcm->run_tile(tile, piece, statuses[index]);
  } else {
    run_piece(m, piece);
  }
}

// Messages at [first, last) of a group, each whole.
void run_messages(const Plan& plan, const Group& group, std::uint64_t first, std::uint64_t last,
                  std::span<Status> statuses) {
  for (std::uint64_t position = first; position < last; ++position) {
    const std::uint32_t index = group.messages[position];
    const Message& m = plan.messages[index];
    if (group.algorithm->is_aead()) {
      statuses[index] = run_gcm_message(AesKey::of(*m.key), m);
    } else {
      run_piece(m, whole_piece(m));
    }
  }
}

void run_plan(const Plan& plan, std::span<Status> statuses) {
  ThreadPool& pool = ThreadPool::instance();
  const Schedule schedule = make_schedule(plan, pool.threads());
  std::vector<SplitWork> split;
  split.reserve(schedule.split.size());
  for (const SplitMessage& s : schedule.split) split.push_back(prepare(plan.messages[s.message], s.tiles));

  const auto run_grains = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Grain& grain = schedule.grains[i];
      if (grain.split == Grain::not_split) {
        run_messages(plan, plan.groups[grain.group], grain.first, grain.last, statuses);
      } else {
        const SplitMessage& s = schedule.split[grain.split];
        run_tile(plan.messages[s.message], s.message, split[grain.split], grain.first, s.tiles, statuses);
      }
    }
  };
  if (schedule.shared) {
    pool.parallel_for(schedule.grains.size(), 1, run_grains);
  } else {
    run_grains(0, schedule.grains.size());
  }
}

// A run that fails in the middle must not leave text whose tag nobody has looked at.
void wipe_unverified(const Plan& plan) {
  for (const Message& m : plan.messages) {
    if (m.algorithm().is_aead() && m.direction == Direction::decrypt) secure_wipe(m.out, m.in_len);
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

class CpuEngine final : public Engine {
 public:
  EngineId id() const override { return EngineId::cpu; }
  std::string_view name() const override { return "cpu"; }
  std::string_view description() const override { return description_; }
  Memory memory() const override { return Memory::host; }

  bool constant_time(const Algorithm& algorithm) const override {
    if (!is_aes(algorithm.cipher.id)) return true;  // bitsliced
    return instructions_.aes && (algorithm.mode.id != Mode::gcm || instructions_.carryless_multiply);
  }

  const std::string& unavailable_reason() const override { return Libcrypto::instance().unavailable_reason(); }

  std::vector<std::string> devices() const override {
    if (!unavailable_reason().empty()) return {};
    const std::size_t cores = ThreadPool::instance().threads();
    return {processor_name() + ", " + std::to_string(cores) + (cores == 1 ? " core, " : " cores, ") +
            Libcrypto::instance().version()};
  }

  std::uint32_t tile_units() const override { return cpu_tile_units; }

  void run(const Plan& plan, std::span<Status> statuses, Stream) override {
    for (Status& status : statuses) status = Status::ok;
    try {
      if (plan.messages.size() == 1 && is_small(plan.messages[0])) {
        run_messages(plan, plan.groups[0], 0, 1, statuses);
      } else {
        run_plan(plan, statuses);
      }
    } catch (const std::bad_alloc&) {
      wipe_unverified(plan);
      throw Error(Status::out_of_memory, "the cpu engine ran out of host memory");
    } catch (...) {
      wipe_unverified(plan);
      throw;
    }
  }

 private:
  static bool is_small(const Message& m) {
    const Cost cost = cost_of(m.algorithm(), m.direction);
    return m.in_len < min_shared_cost / cost.byte;
  }

  const std::string description_ =
      "AES by OpenSSL's libcrypto" +
      (Libcrypto::instance().version().empty() ? "" : " (" + Libcrypto::instance().version() + ")") +
      ", DES bitsliced, on all cores";
  const Instructions instructions_;
};

}  // namespace

Engine& cpu_engine() {
  static CpuEngine engine;
  return engine;
}

}  // namespace warpcipher
