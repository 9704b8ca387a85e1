// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/execute.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "engine/cpu/aes_gcm.hpp"
#include "engine/cpu/chacha.hpp"
#include "engine/cpu/modes.hpp"
#include "engine/cpu/piece.hpp"

namespace warpcipher {
namespace {

// A split message in work: the shared state of its tiles.
struct SplitWork {
  std::unique_ptr<SplitGcm> gcm;
  std::unique_ptr<SplitChaCha> chacha;
  std::vector<std::uint8_t> chains;  // chaining modes: the ciphertext block before each tile but the first
};

bool chains(Mode mode) { return mode == Mode::cbc || mode == Mode::cfb || mode == Mode::cfb8; }

// Must run before any tile does: in place, a tile overwrites the ciphertext that the next one chains from.
SplitWork prepare(const Message& m, std::uint64_t tiles) {
  SplitWork work;
  if (m.algorithm().mode.id == Mode::poly1305) {
    work.chacha = std::make_unique<SplitChaCha>(m, tiles);
  } else if (m.algorithm().is_aead()) {
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
    case Mode::gcm:
      return run_gcm(m);
    case Mode::gcm_siv:
      return run_gcm_siv_message(m);
    case Mode::ccm:
      return run_ccm_message(m);
    case Mode::poly1305:
      return run_chacha_message(m);
    default:
      throw Error(Status::engine_failure, "engine 'cpu' does not run " + std::string(m.algorithm().name));
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
