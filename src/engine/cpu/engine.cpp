// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "engine/cpu/chacha.hpp"
#include "engine/cpu/modes.hpp"
#include "engine/cpu/piece.hpp"
#include "engine/cpu/schedule.hpp"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <fstream>
#include <new>

#include "core/fork.hpp"
#include "core/thread_pool.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/lanes.hpp"
#include "engine/cpu/libcrypto.hpp"

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

// The modes that there is code for. A new mode has none until it stands here.
constexpr bool runs_mode(Mode mode) {
  switch (mode) {  // each message asks
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
    case Mode::ccm: return true;
    default: return false;
  }
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
      throw Error(Status::engine_unavailable, "engine 'cpu' has no code for ", algorithm.name,
                  ": use engine 'reference'");
    }
    const char* const own =
        is_aes(algorithm.cipher.id)
            ? "own code for AES needs an x86-64 processor with AES instructions, AVX and carry-less "
              "products, and "
            : "";
    throw Error(Status::engine_unavailable, "engine 'cpu' cannot run ", algorithm.name, " here: ", own,
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

namespace {

// A split message in work: the shared state of its tiles.
struct SplitWork {
  std::unique_ptr<SplitGcm> gcm;
  std::unique_ptr<SplitChaCha> chacha;
  std::vector<std::uint8_t> chains;  // chaining modes: the ciphertext block before each tile but the first
};

// Must run before any tile does: in place, a tile overwrites the ciphertext that the next one chains from.
SplitWork prepare(const Message& m, std::uint64_t tiles) {
  SplitWork work;
  if (m.algorithm().mode.id == Mode::poly1305) {
    work.chacha = std::make_unique<SplitChaCha>(m, tiles);
  } else if (m.algorithm().is_aead()) {
    work.gcm = std::make_unique<SplitGcm>(AesKey::of(*m.key), m, tiles);
  } else if (m.algorithm().mode.reads_previous_block) {
    const std::size_t block = m.algorithm().block_len();
    const std::size_t tile_len = cpu_tile_units * m.algorithm().unit_len();
    for (std::uint64_t tile = 1; tile < tiles; ++tile) {
      const std::uint8_t* const end = m.in + tile * tile_len;
      work.chains.insert(work.chains.end(), end - block, end);
    }
  }
  return work;
}

void run_piece(const Message& m, const Piece& piece) {
  if (is_aes(m.algorithm().cipher.id)) {
    run_aes_piece(AesKey::of(*m.key), m, piece);
  } else if (is_stream_cipher(m.algorithm().cipher.id)) {
    run_chacha_piece(m, piece);
  } else {
    run_des_piece(m, piece);
  }
}

void run_serial(const Algorithm& algorithm, std::span<const Message* const> messages) {
  (is_aes(algorithm.cipher.id) ? run_aes_serial : run_des_serial)(messages);
}

void run_tile(const Message& m, std::uint32_t index, SplitWork& work, std::uint64_t tile, std::uint64_t tiles,
              std::span<Status> statuses) {
  const std::size_t block = m.algorithm().block_len();
  const bool chained = tile > 0 && !work.chains.empty();
  const Piece piece = tile_piece(m, tile, tiles, chained ? work.chains.data() + (tile - 1) * block : nullptr);
  if (work.gcm) {
    work.gcm->run_tile(tile, piece, statuses[index]);
  } else if (work.chacha) {
    work.chacha->run_tile(tile, piece, statuses[index]);
  } else {
    run_piece(m, piece);
  }
}

// Messages in a row with the same key share its context. Otherwise 16 threads with one key spend a third of the time of
// a short message on its pool of contexts.
void run_gcm_messages(const Plan& plan, std::span<const std::uint32_t> indices, std::span<Status> statuses) {
  const Key* last = nullptr;
  std::optional<OwnGcm> code;
  std::optional<ContextPool::Lease> context;
  for (const std::uint32_t i : indices) {
    const Message& m = plan.messages[i];
    if (m.key != last) {
      code.reset();
      context.reset();
      last = m.key;
    }
    // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): a message has a key
    AesKey& key = AesKey::of(*m.key);
    if (is_own_gcm(m)) {
      if (!code) code.emplace(key);
      statuses[i] = code->run(m);
    } else {
      if (!context) context.emplace(key.mode(m.direction).borrow());
      statuses[i] = run_gcm_message(key, **context, m);
    }
  }
}

void run_chacha_messages(const Plan& plan, std::span<const std::uint32_t> indices, std::span<Status> statuses) {
  std::vector<const Message*> messages;
  std::vector<Status*> results;
  for (const std::uint32_t i : indices) {
    messages.push_back(&plan.messages[i]);
    results.push_back(&statuses[i]);
  }
  run_chacha_messages(*cpu::chacha_lanes_list().front(), messages, results);
}

Status run_gcm(const Message& m) {
  AesKey& key = AesKey::of(*m.key);
  return is_own_gcm(m) ? OwnGcm(key).run(m) : run_gcm_message(key, *key.mode(m.direction).borrow(), m);
}

Status run_aead(const Message& m) {
  switch (m.algorithm().mode.id) {
    case Mode::gcm: return run_gcm(m);
    case Mode::gcm_siv: return run_gcm_siv_message(m);
    case Mode::ccm: return run_ccm_message(m);
    case Mode::poly1305: return run_chacha_message(m);
    default: throw_no_code(m);
  }
}

// One grain of whole messages.
void run_messages(const Plan& plan, const Grain& grain, std::span<Status> statuses) {
  const Group& group = plan.groups[grain.group];
  const auto indices = std::span(group.messages).subspan(grain.first, grain.last - grain.first);
  if (group.algorithm->mode.id == Mode::gcm) {
    run_gcm_messages(plan, indices, statuses);
  } else if (group.algorithm->mode.id == Mode::poly1305 && indices.size() > 1) {
    run_chacha_messages(plan, indices, statuses);
  } else if (group.algorithm->is_aead()) {
    for (const std::uint32_t i : indices) statuses[i] = run_aead(plan.messages[i]);
  } else if (serial_lanes(*group.algorithm, group.direction) > 1) {
    std::vector<const Message*> messages;
    for (const std::uint32_t i : indices) messages.push_back(&plan.messages[i]);
    run_serial(*group.algorithm, messages);
  } else {
    for (const std::uint32_t i : indices) run_piece(plan.messages[i], whole_piece(plan.messages[i]));
  }
}

}  // namespace

Status run_message(const Message& message) {
  const Algorithm& algorithm = message.algorithm();
  if (algorithm.is_aead()) return run_aead(message);
  if (serial_lanes(algorithm, message.direction) > 1) {
    run_serial(algorithm, std::array{&message});
  } else {
    run_piece(message, whole_piece(message));
  }
  return Status::ok;
}

void run_schedule(const Plan& plan, const Schedule& schedule, ThreadPool& pool, std::span<Status> statuses) {
  std::vector<SplitWork> split;
  split.reserve(schedule.split.size());
  for (const SplitMessage& s : schedule.split) split.push_back(prepare(plan.messages[s.message], s.tiles));

  const auto run_grains = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Grain& grain = schedule.grains[i];
      if (grain.split == Grain::not_split) {
        run_messages(plan, grain, statuses);
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

}  // namespace warpcipher
