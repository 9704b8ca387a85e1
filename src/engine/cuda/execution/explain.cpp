// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/execution/explain.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "engine/cuda/aes/choose.hpp"
#include "engine/cuda/chacha/choose.hpp"
#include "engine/cuda/execution/offered.hpp"
#include "engine/cuda/ghash/choose.hpp"

namespace warpcipher::cuda {
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
constexpr std::array<Names, 2> sectors{
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

Decision only(std::string_view subject, std::string_view name, std::string_view description) {
  return {subject, {{name, description, true, "there is no other kernel for it"}}};
}

template <class Forced>
std::string shown(const Variable& variable, Forced forced) {
  return forced == Forced::none ? std::string()
                                : std::string(variable.name) + "=" + std::string(variable.value_of(forced));
}

void check(const BatchShape& shape) {
  const std::string name(shape.algorithm.name);
  if (!has_kernels(shape.algorithm)) {
    throw Error(Status::engine_unavailable, "engine 'cuda' does not offer " + name);
  }
  const auto refuse = [&](const char* what, std::uint64_t given, const std::string& expected) {
    throw Error(Status::invalid_argument,
                name + ": " + what + " is " + std::to_string(given) + ", expected " + expected);
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

class Explanation {
 public:
  Explanation(const Conditions& now, const BatchShape& shape)
      : now_(now),
        shape_(shape),
        mode_(shape.algorithm.mode.id),
        units_((shape.size + shape.algorithm.unit_len() - 1) / shape.algorithm.unit_len()),
        tiles_((units_ + tile_units - 1) / tile_units * shape.messages),
        rounds_(static_cast<std::uint32_t>(shape.algorithm.cipher.key_len / 4 + 6)) {}

  std::vector<Decision> run() {
    const bool is_parallel = shape_.algorithm.parallel(shape_.direction);
    if (is_stream_cipher(shape_.algorithm.cipher.id)) {
      explain_stream_cipher();
      return std::move(all_);
    }
    if (!is_aes(shape_.algorithm.cipher.id)) {
      all_.push_back(is_parallel ? only("text", "bitslice", "32 blocks a lane, by logic")
                                 : only("text", "serial", "a message a lane, by tables of S-boxes"));
      return std::move(all_);
    }
    explain_layout();
    if (mode_ == Mode::ccm) {
      all_.push_back(only("text and tags", "ccm", "a message a lane"));
    } else if (!is_parallel) {
      explain_serial();
    } else if (mode_ == Mode::gcm_siv || (shape_.messages > 1 && (mode_ == Mode::ctr || mode_ == Mode::gcm))) {
      explain_counter();
    } else {
      explain_text();
    }
    if (mode_ == Mode::gcm || mode_ == Mode::gcm_siv) explain_hash();
    return std::move(all_);
  }

 private:
  // That texts are encrypted and hashed with: GCM-SIV derives a key for each message.
  std::uint64_t keys() const { return mode_ == Mode::gcm_siv ? shape_.messages : shape_.keys; }

  void explain_stream_cipher() {
    const StreamWork work{shape_.messages, units_ * shape_.messages, units_};
    bool has_own_text = true;
    if (shape_.algorithm.is_aead()) {
      const AeadKernel kernel = choose_aead(now_, work);
      all_.push_back(decide("text and tags", aead_candidates, kernel, aeads,
                            shown(variables::poly1305, now_.overrides.poly1305),
                            [&](AeadKernel candidate) { return refuse(now_, work, candidate); }));
      has_own_text = kernel == AeadKernel::lanes;
    }
    if (!has_own_text) return;
    all_.push_back(decide("text", stream_candidates, choose_stream(now_, work), streams,
                          shown(variables::counter, now_.overrides.counter),
                          [&](StreamKernel kernel) { return refuse(now_, work, kernel); }));
  }

  void explain_layout() {
    layout_ = choose_table_layout(now_);
    all_.push_back(decide("lane tables", layout_candidates, layout_, layouts,
                          shown(variables::table_layout, now_.overrides.table_layout),
                          [&](TableLayout layout) { return refuse(now_, layout); }));
  }

  void explain_serial() {
    const SerialWork work{shape_.messages, rounds_, mode_ == Mode::cfb8};
    all_.push_back(decide("text, serial", serial_candidates, choose_serial(now_, work).warps, serials, {},
                          [&](SerialWarps warps) { return refuse(now_, layout_, work, warps); }));
  }

  void explain_counter() {
    const bool one_key = keys() == 1;
    const CounterForm form = mode_ == Mode::gcm_siv ? CounterForm::first_word : CounterForm::block;
    const CounterWork work{shape_.messages, tiles_, units_ * shape_.messages, units_, rounds_, one_key, !one_key, form};
    const CounterChoice choice = choose_counter(now_, work);
    all_.push_back(decide("text", counter_candidates, choice.kernel, counters,
                          shown(variables::counter, now_.overrides.counter),
                          [&](CounterKernel kernel) { return refuse(now_, layout_, work, kernel); }));
    all_.push_back(decide("keys", key_candidates, choice.keys, key_sources, {},
                          [&](KeySource keys) { return refuse(layout_, work, choice.kernel, keys); }));
  }

  void explain_text() {
    const bool counts = mode_ == Mode::ctr || mode_ == Mode::gcm;
    const std::string forced =
        counts ? shown(variables::counter, now_.overrides.counter) : shown(variables::text, now_.overrides.text);
    if (mode_ == Mode::xts && shape_.keys == 1) {
      const SectorWork work{shape_.messages, shape_.size * shape_.messages};
      const SectorKernel kernel = choose_sectors(now_, work);
      all_.push_back(decide("data units", sector_candidates, kernel, sectors, forced,
                            [&](SectorKernel candidate) { return refuse(now_, work, candidate); }));
      if (kernel == SectorKernel::rows) return;
    }
    const TextWork work{mode_, shape_.messages == 1 && mode_ != Mode::xts, shape_.keys == 1, tiles_,
                        units_ * shape_.messages};
    all_.push_back(decide("text", text_candidates, choose_text(now_, work).kernel, texts, forced,
                          [&](TextKernel kernel) { return refuse(now_, layout_, work, kernel); }));
  }

  void explain_hash() {
    const ghash::Work work{shape_.messages, keys(), units_ * shape_.messages, units_};
    all_.push_back(decide("tags", ghash_candidates, choose_ghash(now_, work), hashes,
                          shown(variables::ghash, now_.overrides.ghash),
                          [&](GhashAlgorithm algorithm) { return refuse(now_, work, algorithm); }));
  }

  const Conditions& now_;
  const BatchShape& shape_;
  const Mode mode_;
  const std::uint64_t units_;  // of a message
  const std::uint64_t tiles_;  // of all messages
  const std::uint32_t rounds_;
  TableLayout layout_ = TableLayout::tables_128;
  std::vector<Decision> all_;
};

}  // namespace

std::vector<Decision> explain(const Conditions& now, const BatchShape& shape) {
  check(shape);
  return Explanation(now, shape).run();
}

}  // namespace warpcipher::cuda
