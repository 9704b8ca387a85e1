// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/searches.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <utility>

#include "cipher/aes_tables.hpp"
#include "core/error.hpp"
#include "core/wipe.hpp"
#include "engine/cuda/aes/choose.hpp"
#include "engine/cuda/aes/table_layout.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "search/cuda/module.hpp"
#include "search/cuda/unit_search.hpp"
#include "search/cuda/units.hpp"

namespace warpcipher::search::cuda {
namespace {

namespace lane_table = warpcipher::cuda::lane_table;

bool tests_all_bits(const KeyTest& test) { return !test.pairs().front().decrypt && test.first_bits() == 128; }

class AesSearch : public UnitSearch {
 public:
  AesSearch(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test, std::uint32_t multiprocessors,
            const UnitLoops& loops)
      : UnitSearch(std::move(space), std::move(test), 1u << 16,
                   {std::uint64_t{multiprocessors} * 4 * AesUnits::threads,
                    std::bit_ceil(std::uint64_t{multiprocessors}) * 8 * AesUnits::threads},
                   loops) {}

 protected:
  void start(HitBuffer& buffer, const std::uint8_t* keys, std::uint32_t units) override {
    Secret<AesUnits> secret;
    AesUnits& p = *secret;
    for (std::uint32_t i = 0; i < loops(); ++i) {
      const std::size_t bit = space().free_bits()[i];
      p.toggles[i][bit / 32] = 1u << (bit % 32 / 8 * 8 + 7 - bit % 8);
    }
    std::memcpy(p.in, pair().in.data(), sizeof p.in);
    std::memcpy(p.expected, pair().expected.data(), sizeof p.expected);
    std::memcpy(p.mask, pair().mask.data(), sizeof p.mask);
    p.keys = keys;
    p.hits = reinterpret_cast<std::uint32_t*>(buffer.address());
    p.units = units;
    p.loops = loops();
    p.capacity = buffer.capacity();
    p.early = tests_all_bits(test());
    launch_aes_units(p, space().key_len(), pair().decrypt, buffer.stream());
  }
};

// The kernel of aes_ptx.hpp for the lowest free bits of the space.
class FastAesSearch final : public AesSearch {
 public:
  FastAesSearch(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test,
                std::uint32_t multiprocessors, const UnitLoops& loops, const AesPolicy& policy)
      : AesSearch(std::move(space), std::move(test), multiprocessors, loops),
        policy_(policy),
        loop_bits_(loops.many),
        entries_(aes::te0) {
    choose_loops();
    find_planted_key();
  }

 private:
  static constexpr std::size_t levels = 3;

  // A loop has bits first to first + count - 1 of the key number.
  struct Loop {
    AesGroup group;
    std::uint32_t bits, first, count;
  };

  void choose_loops() {
    for (std::uint32_t i = 0; i < loop_bits_; ++i) {
      const std::size_t bit = space().free_bits()[i];
      const AesGroup group{static_cast<std::uint8_t>(bit / 32), static_cast<std::uint8_t>(bit % 32 / 8), 0};
      if (loops_.empty() || loops_.back().group.word != group.word || loops_.back().group.byte != group.byte) {
        loops_.push_back({group, 0, i, 0});
      }
      loops_.back().bits |= 1u << (8 * group.byte + 7 - bit % 8);
      ++loops_.back().count;
    }
    std::vector<AesGroup> groups;
    std::vector<double> turns;
    for (const Loop& loop : loops_) {
      groups.push_back(loop.group);
      turns.push_back(static_cast<double>(1u << loop.count));
    }
    const std::size_t key_words = space().key_len() / 4;
    choose_levels(key_words, groups, turns, levels);
    for (std::size_t i = 0; i < loops_.size(); ++i) loops_[i].group = groups[i];
    const auto further_in = [](const auto& a, const auto& b) { return a.group.level < b.group.level; };
    std::stable_sort(loops_.begin(), loops_.end(), further_in);
    for (std::size_t i = 0; i < loops_.size(); ++i) groups[i] = loops_[i].group;
    const AesKernel kernel = write_aes_kernel(key_words, groups, levels, choose_aes_bytes(pair().mask), policy_);
    shared_len_ = kernel.shared_len;
    module_.emplace(kernel.ptx, AesKernel::name, shared_len_);
  }

  std::uint32_t number_of(std::uint32_t turn) const override {
    return loops() == loop_bits_ ? turn_number(turn) : turn;
  }

  bool divisible() const override { return false; }

  std::uint32_t turn_number(std::uint32_t turn) const {
    std::uint32_t number = 0;
    for (const Loop& loop : loops_) {
      number |= (turn & ((1u << loop.count) - 1)) << loop.first;
      turn >>= loop.count;
    }
    return number;
  }

  void start(HitBuffer& buffer, const std::uint8_t* keys, std::uint32_t units) override {
    if (loops() != loop_bits_) return AesSearch::start(buffer, keys, units);
    run_kernel(buffer, keys, units, pair().expected.data());
  }

  void run_kernel(const HitBuffer& buffer, const std::uint8_t* keys, std::uint32_t units,
                  const std::uint8_t* expected) {
    Secret<AesParameters> secret;
    AesParameters& p = *secret;
    p.keys = reinterpret_cast<std::uint64_t>(keys);
    p.entries = reinterpret_cast<std::uint64_t>(entries_.data());
    p.hits = buffer.address();
    p.units = units;
    p.capacity = buffer.capacity();
    std::memcpy(p.in, pair().in.data(), sizeof p.in);
    std::memcpy(p.expected, expected, sizeof p.expected);
    std::memcpy(p.mask, pair().mask.data(), sizeof p.mask);
    for (std::size_t i = 0; i < loops_.size(); ++i) p.bits[i] = loops_[i].bits;
    module_->launch((units + policy_.threads - 1) / policy_.threads, policy_.threads, shared_len_, p, buffer.stream());
  }

  // This driver has just compiled the kernel, so the kernel must pass a self-test.
  void find_planted_key() {
    std::random_device random;
    const std::size_t bits = std::min<std::size_t>(space().free_bits().size(), 32);
    const KeyNumber number(random() & ((std::uint64_t{1} << bits) - 1));
    const KeyNumber first = number >> loop_bits_ << loop_bits_;
    Secret<std::array<std::uint8_t, max_key_len>> key;
    space().key_at(number, key->data());
    std::array<std::uint8_t, max_block_len> expected;
    transform_block(space().cipher(), key->data(), false, pair().in.data(), expected.data());
    space().key_at(first, key->data());
    HitBuffer buffer(1u << loop_bits_);
    const warpcipher::cuda::StreamBuffer keys(space().key_len(), buffer.stream());
    warpcipher::cuda::check(cudaMemcpyAsync(keys.data(), key->data(), keys.size(), cudaMemcpyHostToDevice,
                                            static_cast<cudaStream_t>(buffer.stream())),
                            "copy keys to the device");
    buffer.clear();
    run_kernel(buffer, keys.data(), 1, expected.data());
    std::vector<HitWords> hits;
    buffer.take(hits);
    const std::uint32_t wanted = static_cast<std::uint32_t>((number - first).low64());
    const bool found = std::any_of(hits.begin(), hits.end(), [&](const HitWords& words) {
      return turn_number(std::bit_cast<AesHit>(words).turn) == wanted;
    });
    if (!found) throw Error(Status::engine_failure, "the AES search kernel missed a planted key in its self-test");
  }

  const AesPolicy policy_;
  const std::uint32_t loop_bits_;
  const DeviceTable<decltype(aes::te0)> entries_;
  std::vector<Loop> loops_;  // the innermost first
  std::optional<Module> module_;
  std::size_t shared_len_ = 0;
};

}  // namespace

std::unique_ptr<UnitSearch> make_aes_search(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test,
                                            std::uint32_t multiprocessors) {
  return std::make_unique<AesSearch>(std::move(space), std::move(test), multiprocessors, UnitLoops{});
}

AesPolicy choose_aes_policy(const warpcipher::cuda::Device& device) {
  AesPolicy policy;
  policy.tables = warpcipher::cuda::choose_table_layout(warpcipher::cuda::conditions_of(device)) ==
                          lane_table::TableLayout::tables_128
                      ? 4
                      : 2;
  return policy;
}

bool suits_fast_aes(const KeySpace& space, const KeyTest& test, const UnitLoops& loops) {
  constexpr int fewest_bits = 24;  // of the ciphertext: keys that pass go to the host
  return !test.pairs().front().decrypt && test.first_bits() >= fewest_bits && space.free_bits().size() >= loops.many;
}

std::unique_ptr<UnitSearch> make_fast_aes_search(std::shared_ptr<const KeySpace> space,
                                                 std::shared_ptr<const KeyTest> test, std::uint32_t multiprocessors,
                                                 const UnitLoops& loops, const AesPolicy& policy) {
  return std::make_unique<FastAesSearch>(std::move(space), std::move(test), multiprocessors, loops, policy);
}

}  // namespace warpcipher::search::cuda
