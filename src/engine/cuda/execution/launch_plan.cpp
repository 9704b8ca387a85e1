// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/execution/launch_plan.hpp"

#include "engine/cuda/inputs/message_view.hpp"

namespace warpcipher::cuda {
namespace {

constexpr std::uint64_t tiles_of(std::uint64_t units) { return (units + tile_units - 1) / tile_units; }

CounterForm form_of(Mode mode) {
  if (mode == Mode::gcm_siv) return CounterForm::first_word;
  return mode == Mode::gcm ? CounterForm::last_word : CounterForm::block;
}

bool is_counter_mode(Mode mode) { return mode == Mode::ctr || mode == Mode::gcm || mode == Mode::gcm_siv; }

TextLaunch text_launch_of(const Conditions& now, const BatchFacts& f) {
  const Mode mode = f.algorithm.mode.id;
  const bool is_parallel = f.algorithm.parallel(f.direction);
  if (is_stream_cipher(f.algorithm.cipher.id)) return f.algorithm.is_aead() ? TextLaunch::aead : TextLaunch::stream;
  if (!is_aes(f.algorithm.cipher.id)) return is_parallel ? TextLaunch::bitslice : TextLaunch::serial_des;
  if (mode == Mode::ccm) return TextLaunch::ccm;
  if (!is_parallel) return TextLaunch::serial;
  if (f.is_by_itself && mode != Mode::xts && mode != Mode::gcm_siv && f.tiles <= most_tiles) {
    return TextLaunch::by_itself;
  }
  if (is_counter_mode(mode)) return TextLaunch::counter;
  const bool are_sectors = f.sectors_len != 0 && choose_sectors(now, {f.messages, f.sectors_len}) == SectorKernel::rows;
  return are_sectors ? TextLaunch::sectors : TextLaunch::tiles;
}

}  // namespace

void set_equal_lengths(BatchFacts& facts, std::uint64_t len, bool lacks_ends) {
  const std::uint64_t unit_len = facts.algorithm.unit_len();
  const std::uint32_t lead = facts.algorithm.mode.id == Mode::gcm ? 2 : 0;  // the last byte of the first counter
  facts.most_units = (len + unit_len - 1) / unit_len;
  const std::uint64_t in_tiles = lacks_ends ? units_before_end(len, lead) : facts.most_units;
  facts.units = facts.messages * facts.most_units;
  facts.tiles = facts.messages * tiles_of(in_tiles);
  facts.end_units = facts.messages * (facts.most_units - in_tiles);
}

LaunchPlan plan_launches(const Conditions& now, const BatchFacts& f) {
  const Mode mode = f.algorithm.mode.id;
  const auto rounds = static_cast<std::uint32_t>(f.algorithm.cipher.key_len / 4 + 6);
  LaunchPlan plan;
  plan.text_launch = text_launch_of(now, f);
  if (is_aes(f.algorithm.cipher.id)) plan.tables = choose_table_layout(now);
  if (f.sectors_len != 0) {
    const SectorWork work{f.messages, f.sectors_len};
    plan.sectors = {work, choose_sectors(now, work)};
  }
  switch (plan.text_launch) {
    case TextLaunch::by_itself:
    case TextLaunch::tiles: {
      const bool is_by_itself = plan.text_launch == TextLaunch::by_itself;
      const TextWork work{mode, is_by_itself, f.has_only_key, f.tiles, f.units};
      plan.text = {work, choose_text(now, work)};
      break;
    }
    case TextLaunch::counter: {
      const CounterWork work{f.messages,     f.tiles,         f.units,       f.most_units, rounds,
                             f.has_only_key, f.has_key_bytes, form_of(mode), f.end_units,  f.is_aligned};
      plan.counter = {work, choose_counter(now, work)};
      break;
    }
    case TextLaunch::serial: {
      const SerialWork work{f.messages, rounds, f.algorithm.mode.by_byte};
      plan.serial = {work, choose_serial(now, work)};
      break;
    }
    case TextLaunch::stream: {
      const StreamWork work{f.messages, f.units, f.most_units};
      plan.stream = {work, choose_stream(now, work)};
      break;
    }
    case TextLaunch::aead: {
      // Lanes give whole tags only; parts are long, but for the last.
      const StreamWork work{f.messages, f.units, f.most_units};
      plan.aead = {work, f.are_parts ? AeadKernel::chunks : choose_aead(now, work)};
      break;
    }
    default:
      break;
  }
  if (mode == Mode::gcm || mode == Mode::gcm_siv) {
    // If no message has chunks, only tensor_rows applies.
    plan.ghash = {f.hashes, f.hashes.messages != 0 || f.messages == 0 ? choose_ghash(now, f.hashes)
                                                                      : GhashAlgorithm::tensor_rows};
  }
  return plan;
}

std::atomic<PlanObserver> plan_observer{nullptr};

LaunchPlan plan_launches(const Device& device, const BatchFacts& facts) {
  const LaunchPlan plan = plan_launches(conditions_of(device), facts);
  if (const PlanObserver observe = plan_observer.load(std::memory_order_relaxed)) observe(facts, plan);
  return plan;
}

}  // namespace warpcipher::cuda
