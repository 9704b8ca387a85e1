// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/execution/launch_plan.hpp"

#include <array>
#include <string>
#include <utility>

#include "core/error.hpp"
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
      // Lanes give whole tags only; parts are long, except for the last.
      const StreamWork work{f.messages, f.units, f.most_units};
      plan.aead = {work, f.are_parts ? AeadKernel::chunks : choose_aead(now, work)};
      break;
    }
    default: break;
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

namespace {

struct Names {
  std::string_view name;
  std::string_view description;
};

// Indexed by the values of the enum.
constexpr std::array<Names, 2> layouts{
    {{"128 KiB", "all four tables, without a rotation"}, {"64 KiB", "two tables, with a rotation a column"}}};
constexpr std::array<Names, 4> counters{
    {{"hybrid packed", "several messages to a tile, by tables and by logic at once"},
     {"packed", "several messages to a warp, by tables"},
     {"hybrid", "a tile a warp, by tables and by logic at once"},
     {"tiles", "a tile a warp, by tables"}}};
constexpr std::array<Names, 3> key_sources{{{"parameter", "the key is a kernel parameter"},
                                            {"key bytes", "the kernel makes round keys from the keys' bytes"},
                                            {"round keys", "from device memory"}}};
constexpr std::array<Names, 2> texts{
    {{"hybrid", "a tile a warp, by tables and by logic at once"}, {"tiles", "a tile a warp, by tables"}}};
constexpr std::array<Names, 2> sector_kernels{
    {{"rows", "data units that follow each other, as one text"}, {"batch", "data units as any other batch"}}};
constexpr std::array<Names, 2> serials{{{"12 warps", "a message a lane, more registers a thread"},
                                        {"16 warps", "a message a lane, more messages at once"}}};
constexpr std::array<Names, 6> hashes{{{"few lanes", "four lanes a message, by integer products"},
                                       {"tensor rows", "a message a row of the tensor cores' matrices"},
                                       {"scalar", "a warp a chunk, by integer products"},
                                       {"tensor one key", "a warp a chunk, on tensor cores"},
                                       {"tensor warpgroups", "a warpgroup a chunk, on tensor cores"},
                                       {"tensor many keys", "a warp a chunk, on tensor cores, matrices a warp"}}};

constexpr std::array<Names, 2> streams{
    {{"packed", "four lanes a message"}, {"tiles", "256 blocks of one message a warp, a block a lane"}}};
constexpr std::array<Names, 2> aeads{{{"chunks", "text and tags in one pass, Poly1305 on tensor cores"},
                                      {"lanes", "tags apart from the text, Poly1305 by a lane or four a message"}}};

template <class Enum, std::size_t N, std::size_t M, class Refuse>
Decision decide(std::string_view subject, const std::array<Enum, N>& candidates, Enum chosen,
                const std::array<Names, M>& names, std::string_view forced, Refuse&& refuse) {
  Decision decision{subject, {}};
  const Names& first = names[static_cast<std::size_t>(chosen)];
  for (const Enum candidate : candidates) {
    const Names& own = names[static_cast<std::size_t>(candidate)];
    std::string reason;
    if (candidate != chosen) {
      reason = to_text(refuse(candidate));
      if (reason.empty()) reason = std::string(first.name) + " comes first";
    } else if (!forced.empty()) {
      reason = "with " + std::string(forced);
    } else {
      reason = candidate == candidates[0] ? "the first choice" : "the first that is not refused";
    }
    decision.candidates.push_back({own.name, own.description, candidate == chosen, std::move(reason)});
  }
  return decision;
}

Decision only(std::string_view name, std::string_view description) {
  return {"text", {{name, description, true, "only this kernel can run it"}}};
}

std::string shown(const Conditions& now, const Choice& choice) {
  const std::string_view forced = picked(now.overrides, choice);
  return forced.empty() ? std::string() : forced_text(choice, forced);
}

void check(const BatchShape& shape) {
  const std::string name(shape.algorithm.name);
  if (!has_kernels(shape.algorithm)) {
    throw Error(Status::engine_unavailable, "engine 'cuda' does not offer " + name);
  }
  const auto refuse = [&](const char* what, std::uint64_t given, const std::string& expected) {
    throw Error(Status::invalid_argument, name, ": ", what, " is ", given, ", expected ", expected);
  };
  if (shape.messages == 0 || shape.messages >= UINT32_MAX) refuse("messages", shape.messages, "1 to 4294967294");
  if (shape.keys == 0 || shape.keys > shape.messages) {
    refuse("keys", shape.keys, "1 to the number of messages, " + std::to_string(shape.messages));
  }
  const std::uint64_t units_of_tile = tile_units * shape.algorithm.unit_len();
  const std::uint64_t most = most_tiles / shape.messages * units_of_tile;
  if (shape.size > most)
    refuse("size", shape.size, "at most " + std::to_string(most) + " bytes for this number of messages");
}

// A batch of that shape, as the engine describes it.
BatchFacts facts_of(const Conditions& now, const BatchShape& shape) {
  const Mode mode = shape.algorithm.mode.id;
  const std::uint64_t keys = mode == Mode::gcm_siv ? shape.messages : shape.keys;  // it derives one for each message
  BatchFacts facts{shape.algorithm, shape.direction, shape.messages};
  facts.is_by_itself = shape.messages == 1;
  facts.has_only_key = keys == 1;
  facts.has_key_bytes = keys != 1;
  set_equal_lengths(facts, shape.size, !facts.is_by_itself && leaves_ends(now, mode, shape.messages));
  facts.hashes = {shape.messages, keys, facts.units, facts.most_units};
  if (mode == Mode::xts && shape.keys == 1 && !facts.is_by_itself) facts.sectors_len = shape.size * shape.messages;
  return facts;
}

class Explanation {
 public:
  Explanation(const Conditions& now, const LaunchPlan& plan) : now_(now), plan_(plan) {}

  std::vector<Decision> run() {
    if (plan_.tables) {
      add("tables", layout_candidates, *plan_.tables, layouts, shown(now_, choices::tables),
          [&](TableLayout layout) { return refuse(now_, layout); });
    }
    if (const auto& sectors = plan_.sectors) {
      add("data units", sector_candidates, sectors->chosen, sector_kernels, shown(now_, choices::text),
          [&](SectorKernel kernel) { return refuse(now_, sectors->work, kernel); });
    }
    if (const auto& text = plan_.text) {
      const bool counts = text->work.mode == Mode::ctr || text->work.mode == Mode::gcm;
      add(counts ? "counter" : "text", text_candidates, text->chosen.kernel, texts,
          shown(now_, counts ? choices::counter : choices::text),
          [&](TextKernel kernel) { return refuse(now_, *plan_.tables, text->work, kernel); });
    }
    if (const auto& counter = plan_.counter) {
      add("counter", counter_candidates, counter->chosen.kernel, counters, shown(now_, choices::counter),
          [&](CounterKernel kernel) { return refuse(now_, *plan_.tables, counter->work, kernel); });
      add("keys", key_candidates, counter->chosen.keys, key_sources, "",
          [&](KeySource keys) { return refuse(*plan_.tables, counter->work, counter->chosen.kernel, keys); });
    }
    if (const auto& serial = plan_.serial) {
      add("serial", serial_candidates, serial->chosen.warps, serials, "",
          [&](SerialWarps warps) { return refuse(now_, *plan_.tables, serial->work, warps); });
    }
    if (const auto& stream = plan_.stream) {
      add("counter", stream_candidates, stream->chosen, streams, shown(now_, choices::counter),
          [&](StreamKernel kernel) { return refuse(now_, stream->work, kernel); });
    }
    if (const auto& aead = plan_.aead) {
      add("poly1305", aead_candidates, aead->chosen, aeads, shown(now_, choices::poly1305),
          [&](AeadKernel kernel) { return refuse(now_, aead->work, kernel); });
    }
    add_without_choice();
    if (const auto& hash = plan_.ghash) {
      add("ghash", ghash_candidates, hash->chosen, hashes, shown(now_, choices::ghash),
          [&](GhashAlgorithm algorithm) { return refuse(now_, hash->work, algorithm); });
    }
    return std::move(all_);
  }

 private:
  template <class... Arguments>
  void add(Arguments&&... arguments) {
    all_.push_back(decide(std::forward<Arguments>(arguments)...));
  }

  void add_without_choice() {
    if (plan_.text_launch == TextLaunch::bitslice) all_.push_back(only("bitslice", "32 blocks a lane, by logic"));
    if (plan_.text_launch == TextLaunch::serial_des) {
      all_.push_back(only("serial", "a message a lane, by tables of S-boxes"));
    }
    if (plan_.text_launch == TextLaunch::ccm) all_.push_back(only("ccm", "text and tags, a message a lane"));
  }

  const Conditions& now_;
  const LaunchPlan& plan_;
  std::vector<Decision> all_;
};

}  // namespace

std::vector<Decision> explain(const Conditions& now, const BatchShape& shape) {
  check(shape);
  return to_decisions(now, plan_launches(now, facts_of(now, shape)));
}

std::vector<Decision> to_decisions(const Conditions& now, const LaunchPlan& plan) {
  return Explanation(now, plan).run();
}

}  // namespace warpcipher::cuda
