// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/searches.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <random>
#include <utility>

#include "cipher/des.hpp"
#include "cipher/des_bitslice.hpp"
#include "core/error.hpp"
#include "core/wipe.hpp"
#include "search/cuda/des_ptx.hpp"
#include "search/cuda/module.hpp"
#include "search/cuda/unit_search.hpp"

namespace warpcipher::search::cuda {
namespace {

namespace bitslice = des::bitslice;

// Half 12 or 11: the backward half is then so short that nearly all of it is hoisted. Which of the two needs fewer
// gates depends on the unknown bits: 2090 and 2110 if all are unknown. Half 13 needs 2110, half 14 needs 2200.
constexpr std::array meeting_halves{12, 11};

using Block = std::array<std::uint8_t, 8>;

// A kernel's cover: the lowest free bits, which vary in its launches, and the passes of the cipher that it runs.
// The host undoes the passes before and after these at each launch.
struct Target {
  std::size_t bits;
  int first_pass;
  std::vector<DesPass> passes;
};

std::size_t key_of(std::uint16_t key_bit) { return key_bit / 64u; }

// From the first to the last pass whose key has one of the lowest `bits` free bits. Passes after the last can be undone
// only if the whole block is known.
Target passes_of(const KeySpace& space, const KeyTest& test, std::size_t bits) {
  std::array<bool, most_des_keys> varying{};
  for (const std::uint16_t bit : space.free_bits().first(bits)) varying[key_of(bit)] = true;
  Target target{bits, 0, {}};
  const bool decrypt = test.pairs().front().decrypt;
  for (int i = 0; i < bitslice::pass_count(space.key_len()); ++i) {
    const bitslice::Pass pass = bitslice::pass_of(space.key_len(), decrypt, i);
    const auto key = static_cast<std::uint8_t>(pass.key_offset / 8);
    target.passes.push_back({key, pass.backwards, !varying[key]});
  }
  if (test.first_bits() == 64) {
    while (target.passes.back().known) target.passes.pop_back();
  }
  while (target.passes.front().known) {
    target.passes.erase(target.passes.begin());
    ++target.first_pass;
  }
  return target;
}

// If one key has enough of the lowest free bits, and that needs one pass only: the bits of this key, which is fastest.
// Else all bits that a launch has room for.
std::optional<Target> find_target(const KeySpace& space, const KeyTest& test, const DesShape& shape) {
  const auto free_bits = space.free_bits();
  const std::size_t room = shape.launch_bits();
  if (free_bits.size() < shape.fewest_bits() || test.first_bits() < static_cast<int>(loop_comparisons))
    return std::nullopt;
  std::size_t of_one_key = 0;
  while (of_one_key < free_bits.size() && key_of(free_bits[of_one_key]) == key_of(free_bits[0])) ++of_one_key;
  if (of_one_key >= shape.fewest_bits()) {
    Target target = passes_of(space, test, std::min(of_one_key, room));
    if (target.passes.size() == 1) return target;
  }
  return passes_of(space, test, std::min(free_bits.size(), room));
}

std::uint8_t position_of_key_bit(std::size_t bit) {
  const auto found = std::find(des::permuted_choice_1.begin(), des::permuted_choice_1.end(), bit % 64 + 1);
  const auto position = static_cast<std::size_t>(found - des::permuted_choice_1.begin());
  return static_cast<std::uint8_t>(des_key_bits * (bit / 64) + position);
}

// One pass over a block in lane 0.
void run_pass(Block& block, const std::uint8_t* key, bool backwards) {
  struct Masks {
    std::uint64_t words[bitslice::schedule_bits];
  };
  Secret<Masks> masks;
  bitslice::expand_masks(masks->words, key, backwards);
  std::uint64_t words[64] = {load_le64(block.data())};
  bitslice::transpose(words);
  bitslice::transform(words, bitslice::MaskSchedule<std::uint64_t>{masks->words}, 1);
  bitslice::transpose(words);
  store_le64(block.data(), words[0]);
  secure_wipe(words, sizeof words);
}

Block block_of(const std::array<std::uint8_t, max_block_len>& bytes) {
  Block block;
  std::copy_n(bytes.begin(), block.size(), block.begin());
  return block;
}

// IP of a block, as masks.
void set_inputs(std::uint32_t* inputs, const Block& block) {
  for (std::size_t i = 0; i < 64; ++i) {
    const auto plane = static_cast<std::size_t>(bitslice::plane_of_bit(des::initial_permutation[i]));
    inputs[i] = (block[plane / 8] >> plane % 8 & 1u) != 0 ? ~0u : 0u;
  }
}

std::uint64_t mask_of(const BlockPair& pair) { return load_le64(pair.mask.data()); }

// More than any kernel needs.
constexpr std::size_t most_spills = 250;

// Planted keys that a new kernel must find. A fault that shows for every second text goes unnoticed once in 16 times.
constexpr int self_tests = 4;

// The cost of a turn: its gates, adjusted because with fewer warps the pipe waits more. The figures are of kernels
// without masks for key bits (ncu: 84% busy with three granules, 79% with two; today's with three: 88 to 92%).
// Only their ratio counts, and it need not be exact. With an H200's shared memory kernels of three granules, with
// fewer spills, have 0.3 to 3.2% more gates than with two for bits of one key (DES, or a key that is used twice),
// and 11% more to 7 times as many for bits of several (36 templates each, 24 to 45 bits unknown): any ratio from 1.04
// to 1.11 chooses alike.
double work_of(const DesKernel& kernel) {
  constexpr std::array busy{0.6, 0.79, 0.84};
  return kernel.gates / busy[std::min<std::size_t>(kernel.granules, busy.size()) - 1];
}

}  // namespace

std::vector<DesPolicy> des_policies(const warpcipher::cuda::Device& device) {
  constexpr std::size_t granule_threads = 128;
  constexpr std::size_t fewest_spills = DesCheck::key_words;
  std::vector<DesPolicy> policies;
  for (std::uint32_t granules = 3; granules > 0; --granules) {
    const std::size_t fitting = device.shared_len / (4 * granule_threads * granules);
    if (fitting < fewest_spills && granules > 1) continue;
    DesPolicy policy;
    policy.granules = granules;
    // The shared memory that a granule's block bits need, in words of all its threads.
    policy.spills = static_cast<std::uint32_t>(std::min<std::size_t>(fitting - (granules > 1 ? 1 : 0), most_spills));
    policies.push_back(policy);
  }
  return policies;
}

// A unit is a granule: 2^granule_bits() consecutive keys.
class DesSearch::Run final : public LaunchRanges {
 public:
  Run(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test, const DesShape& shape,
      std::span<const DesPolicy> policies)
      : LaunchRanges(policies.front().granules << (shape.loop_bits + shape.thread_bits)),
        space_(std::move(space)),
        test_(std::move(test)),
        shape_(shape),
        target_(*find_target(*space_, *test_, shape)) {
    for (std::size_t i = 0; i < target_.bits; ++i) positions_.push_back(position_of_key_bit(space_->free_bits()[i]));
    const std::uint64_t mask = mask_of(test_->pairs().front());
    std::vector<DesCircuit> circuits;
    if (mask == ~std::uint64_t{0}) {
      for (const Meeting& meeting : meetings()) circuits.emplace_back(target_.passes, meeting);
    } else {
      circuits.emplace_back(target_.passes, mask);
    }
    layout_.cost = std::numeric_limits<double>::infinity();
    std::vector<Comparison> compared;
    const DesCircuit* chosen = nullptr;
    for (const DesCircuit& circuit : circuits) {
      std::vector<Comparison> its_own;
      const DesLayout layout = choose_layout(circuit, positions_, shape_, its_own);
      if (layout.cost >= layout_.cost) continue;
      chosen = &circuit;
      layout_ = layout;
      compared = std::move(its_own);
    }
    for (const DesPolicy& policy : policies) {
      DesKernel kernel = write_kernel(*chosen, compared, policy);
      if (kernel_.ptx.empty() || work_of(kernel) < work_of(kernel_)) kernel_ = std::move(kernel);
    }
    module_ = std::make_unique<Module>(kernel_.ptx, DesKernel::name, kernel_.shared_len);
    find_planted_keys();
  }

  std::uint64_t search(const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits,
                       const std::atomic<bool>& cancel) {
    first_ = first;
    end_ = first + KeyNumber(count);
    first_granule_ = first >> shape_.granule_bits();
    hits_ = &hits;
    const std::uint64_t granules = (((end_ - 1) >> shape_.granule_bits()) - first_granule_).low64() + 1;
    const std::uint64_t fewest = std::uint64_t{kernel_.granules} << shape_.fill_bits;
    const std::uint64_t tested = LaunchRanges::run(granules, fewest, std::uint64_t{1} << block_bits(), cancel);
    if (tested == 0) return 0;
    const KeyNumber tested_end = (first_granule_ + KeyNumber(tested)) << shape_.granule_bits();
    return std::min(KeyNumber(count), tested_end - first).low64();
  }

 private:
  std::size_t block_bits() const { return layout_.blocks.size(); }

  // In the last pass, or in the one before: if the loops have bits of that key, the last pass is hoisted.
  std::vector<Meeting> meetings() const {
    std::vector<Meeting> found;
    for (std::size_t pass = target_.passes.size() > 1 ? 1 : 0; pass < target_.passes.size(); ++pass) {
      if (target_.passes[pass].known) continue;
      for (const int half : meeting_halves) found.push_back({pass, half});
    }
    return found;
  }

  // Keys need shared memory besides spills, how much is known when the kernel has been written.
  DesKernel write_kernel(const DesCircuit& circuit, std::span<const Comparison> compared, DesPolicy policy) const {
    const std::size_t word_len = 4 * (std::size_t{policy.granules} << shape_.thread_bits);  // of all threads
    const std::size_t room = word_len * (policy.spills + (policy.granules > 1 ? 1 : 0));
    while (true) {
      DesKernel kernel = write_des_kernel(circuit, compared, positions_, layout_, policy);
      if (kernel.shared_len <= room || policy.spills == 0) return kernel;
      const std::size_t over = (kernel.shared_len - room + word_len - 1) / word_len;
      policy.spills -= static_cast<std::uint32_t>(std::min<std::size_t>(over, policy.spills));
    }
  }

  // Bits above a launch's own are constant for it.
  std::uint64_t room(std::uint64_t at) const override {
    const std::uint64_t all = std::uint64_t{1} << block_bits();
    return all - ((first_granule_ + KeyNumber(at)).low64() & (all - 1));
  }

  void launch(HitBuffer& buffer, std::uint64_t at, std::uint64_t count) override {
    const BlockPair& pair = test_->pairs().front();
    launch(buffer, first_granule_ + KeyNumber(at), count, block_of(pair.in), block_of(pair.expected));
  }

  void launch(HitBuffer& buffer, const KeyNumber& granule, std::uint64_t count, Block in, Block expected) {
    Secret<std::array<std::uint8_t, max_key_len>> key;
    const KeyNumber high = granule >> block_bits();
    space_->key_at(high << (block_bits() + shape_.granule_bits()), key->data());
    const std::size_t key_len = space_->key_len();
    const bool decrypt = test_->pairs().front().decrypt;
    for (int i = 0; i < target_.first_pass; ++i) {
      const bitslice::Pass pass = bitslice::pass_of(key_len, decrypt, i);
      run_pass(in, key->data() + pass.key_offset, pass.backwards);
    }
    const int passes = bitslice::pass_count(key_len);
    const int end = target_.first_pass + static_cast<int>(target_.passes.size());
    for (int i = passes - 1; i >= end; --i) {
      const bitslice::Pass pass = bitslice::pass_of(key_len, decrypt, i);
      run_pass(expected, key->data() + pass.key_offset, !pass.backwards);
    }

    Secret<DesParameters> parameters;
    for (std::size_t position = 0; position < 7 * key_len; ++position) {
      const std::size_t bit = des::permuted_choice_1[position % des_key_bits] - 1u;
      const bool one = ((*key)[8 * (position / des_key_bits) + bit / 8] >> (7 - bit % 8) & 1u) != 0;
      parameters->planes[position] = one ? ~0u : 0u;
    }
    for (const std::uint8_t position : positions_) parameters->planes[position] = 0;
    set_inputs(parameters->inputs, in);
    set_inputs(parameters->inputs + 64, expected);
    parameters->granule = static_cast<std::uint32_t>((granule - (high << block_bits())).low64());
    parameters->capacity = buffer.capacity();
    parameters->hits = buffer.address();
    buffer.clear();
    const auto blocks = static_cast<std::uint32_t>((count + kernel_.granules - 1) / kernel_.granules);
    module_->launch(blocks, kernel_.threads, kernel_.shared_len, *parameters, buffer.stream());
  }

  // The numbers of a hit that lie in the `count` granules of a launch.
  template <class Use>
  void each_number(const KeyNumber& granule, std::uint64_t count, const HitWords& words, Use&& use) const {
    const auto hit = std::bit_cast<DesHit>(words);
    if (hit.granule >= count) return;  // the last block has spare granules
    std::uint64_t bits = scatter(layout_.threads, hit.thread) | scatter(layout_.loops, hit.turn);
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      if ((hit.lanes >> lane & 1u) == 0) continue;
      use(((granule + KeyNumber(hit.granule)) << shape_.granule_bits()) +
          KeyNumber(bits | scatter(layout_.lanes, lane)));
    }
  }

  static std::uint64_t scatter(const std::vector<std::uint8_t>& bits, std::uint32_t value) {
    std::uint64_t result = 0;
    for (std::size_t i = 0; i < bits.size(); ++i) result |= std::uint64_t{value >> i & 1u} << bits[i];
    return result;
  }

  void report(std::uint64_t at, std::uint64_t count, const HitWords& hit) override {
    each_number(first_granule_ + KeyNumber(at), count, hit, [&](const KeyNumber& number) {
      if (number < first_ || number >= end_) return;
      Secret<std::array<std::uint8_t, max_key_len>> key;
      space_->key_at(number, key->data());
      if (test_->passes(key->data())) hits_->push_back(number);
    });
  }

  // The kernel was written and compiled just now, so it must pass a self-test. The test uses several texts, because a
  // faulty gate gives wrong results for some texts only.
  void find_planted_keys() {
    std::random_device random;
    HitBuffer buffer(kernel_.granules << (shape_.loop_bits + shape_.thread_bits));
    for (int i = 0; i < self_tests; ++i) {
      const std::uint64_t low = random();
      const KeyNumber number(low & ((std::uint64_t{1} << std::min<std::size_t>(positions_.size(), 32)) - 1));
      Block in;
      for (std::uint8_t& byte : in) byte = static_cast<std::uint8_t>(random());
      if (!finds(number, in, buffer))
        throw Error(Status::engine_failure, "the DES search kernel missed a planted key in its self-test");
    }
  }

  bool finds(const KeyNumber& number, const Block& in, HitBuffer& buffer) {
    Secret<std::array<std::uint8_t, max_key_len>> key;
    space_->key_at(number, key->data());
    Block expected;
    transform_block(space_->cipher(), key->data(), test_->pairs().front().decrypt, in.data(), expected.data());
    const KeyNumber granule = number >> shape_.granule_bits();
    launch(buffer, granule, 1, in, expected);
    std::vector<HitWords> hits;
    bool found = false;
    buffer.take(hits);
    for (const HitWords& hit : hits) {
      each_number(granule, 1, hit, [&](const KeyNumber& candidate) { found = found || candidate == number; });
    }
    return found;
  }

  const std::shared_ptr<const KeySpace> space_;
  const std::shared_ptr<const KeyTest> test_;
  const DesShape shape_;
  const Target target_;
  std::vector<std::uint8_t> positions_;
  DesLayout layout_;
  DesKernel kernel_{};
  std::unique_ptr<Module> module_;
  KeyNumber first_, end_, first_granule_;
  std::vector<KeyNumber>* hits_ = nullptr;
};

std::size_t DesSearch::passes(const KeySpace& space, const KeyTest& test, const DesShape& shape) {
  const std::optional<Target> target = find_target(space, test, shape);
  return target ? target->passes.size() : 0;
}

DesSearch::DesSearch(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test, const DesShape& shape,
                     std::span<const DesPolicy> policies)
    : run_(std::make_unique<Run>(std::move(space), std::move(test), shape, policies)) {}

DesSearch::~DesSearch() = default;

std::uint64_t DesSearch::run(const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits,
                             const std::atomic<bool>& cancel) {
  return run_->search(first, count, hits, cancel);
}

}  // namespace warpcipher::search::cuda
