// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/des_search.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <random>
#include <utility>

#include "cipher/des_bitslice.hpp"
#include "cipher/des_tables.hpp"
#include "core/error.hpp"
#include "core/wipe.hpp"
#include "search/cuda/des_check.hpp"
#include "search/cuda/des_ptx.hpp"
#include "search/cuda/module.hpp"
#include "search/cuda/pieces.hpp"

namespace warpcipher::search::cuda {

namespace {

namespace bitslice = des::bitslice;

// Half 12 or 11: the backward half is short enough to be hoisted nearly whole. Which of the two takes fewer gates is
// up to the bits that are unknown: 2090 and 2110 where all are; half 13: 2110, 14: 2200.
constexpr std::array meetings{12, 11};

using Block = std::array<std::uint8_t, 8>;

// Which pass of the cipher the search is about.
struct Target {
  std::size_t key_offset;  // bytes
  int pass;
  int passes;
  bool backwards;
};

// The pass that all of the lowest `bits` free bits belong to, if there is one and it is the only one of its key.
std::optional<Target> find_target(const KeySpace& space, const KeyTest& test, std::size_t bits) {
  const auto free_bits = space.free_bits();
  if (free_bits.size() < bits || test.first_bits() < static_cast<int>(loop_comparisons)) return std::nullopt;
  const std::size_t key_len = space.key_len();
  const std::size_t key = free_bits.front() / 64u;
  for (std::size_t i = 0; i < bits; ++i) {
    if (free_bits[i] / 64u != key) return std::nullopt;
  }
  std::optional<Target> target;
  const int passes = bitslice::pass_count(key_len);
  const bool decrypt = test.pairs().front().decrypt;
  for (int i = 0; i < passes; ++i) {
    const bitslice::Pass pass = bitslice::pass_of(key_len, decrypt, i);
    if (pass.key_offset != 8 * key) continue;
    if (target) return std::nullopt;
    target = Target{pass.key_offset, i, passes, pass.backwards};
  }
  // Passes behind it can be undone where the whole block is known.
  if (target->pass + 1 < passes && test.first_bits() != 64) return std::nullopt;
  return target;
}

std::size_t target_bits(const KeySpace& space) {  // the lowest free bits that lie in one key
  const auto free_bits = space.free_bits();
  std::size_t count = 0;
  while (count < free_bits.size() && free_bits[count] / 64u == free_bits[0] / 64u) ++count;
  return count;
}

std::uint8_t position_of_key_bit(std::size_t bit) {
  const auto found = std::find(des::permuted_choice_1.begin(), des::permuted_choice_1.end(), bit % 64 + 1);
  return static_cast<std::uint8_t>(found - des::permuted_choice_1.begin());
}

// One pass over a block in lane 0.
void run_pass(Block& block, const std::uint8_t* key, bool backwards) {
  struct Masks {
    std::uint64_t words[bitslice::schedule_bits];
  };
  Secret<Masks> masks;
  bitslice::expand_masks(masks->words, key, backwards);
  std::uint64_t rows[64] = {load_le64(block.data())};
  bitslice::transpose(rows);
  bitslice::transform(rows, bitslice::MaskSchedule<std::uint64_t>{masks->words}, 1);
  bitslice::transpose(rows);
  store_le64(block.data(), rows[0]);
  secure_wipe(rows, sizeof rows);
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

}  // namespace

DesPolicy choose_des_policy(const warpcipher::cuda::Device& device) {
  constexpr std::size_t granule_threads = 128;
  constexpr std::size_t fewest_slots = DesCheck::key_words;
  DesPolicy policy;
  for (policy.granules = 3; policy.granules > 1; --policy.granules) {
    if (device.shared_len / (4 * granule_threads * policy.granules) >= fewest_slots) break;
  }
  // What a granule's block bits take, as if they were slots of all its threads.
  const std::size_t slots = device.shared_len / (4 * granule_threads * policy.granules) - (policy.granules > 1 ? 1 : 0);
  policy.slots = static_cast<std::uint32_t>(std::min<std::size_t>(slots, 200));
  return policy;
}

// A unit is a granule: 2^granule_bits() consecutive keys.
class DesSearch::Run final : public Pieces {
 public:
  Run(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test, const DesShape& shape,
      const DesPolicy& policy)
      : Pieces(policy.granules << (shape.loop_bits + shape.thread_bits)),
        space_(std::move(space)),
        test_(std::move(test)),
        shape_(shape),
        target_(*find_target(*space_, *test_, shape.granule_bits())) {
    const std::size_t bits = std::min(target_bits(*space_), shape.launch_bits());
    for (std::size_t i = 0; i < bits; ++i) positions_.push_back(position_of_key_bit(space_->free_bits()[i]));
    const std::uint64_t mask = mask_of(test_->pairs().front());
    std::vector<DesCircuit> circuits;
    if (mask == ~std::uint64_t{0}) {
      for (const int meeting : meetings) circuits.emplace_back(target_.backwards, meeting);
    } else {
      circuits.emplace_back(target_.backwards, mask);
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
    kernel_ = write_des_kernel(*chosen, compared, positions_, layout_, policy);
    module_ = std::make_unique<Module>(kernel_.ptx, DesKernel::name, kernel_.shared_len);
    find_planted_key();
  }

  std::uint64_t search(const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits,
                       const std::atomic<bool>& cancel) {
    first_ = first;
    end_ = first + KeyNumber(count);
    first_granule_ = first >> shape_.granule_bits();
    hits_ = &hits;
    const std::uint64_t granules = (((end_ - 1) >> shape_.granule_bits()) - first_granule_).low64() + 1;
    constexpr std::uint64_t blocks = 256;  // that fill the device
    const std::uint64_t tested =
        Pieces::run(granules, kernel_.granules * blocks, std::uint64_t{1} << block_bits(), cancel);
    if (tested == 0) return 0;
    const KeyNumber tested_end = (first_granule_ + KeyNumber(tested)) << shape_.granule_bits();
    return std::min(KeyNumber(count), tested_end - first).low64();
  }

 private:
  std::size_t block_bits() const { return layout_.blocks.size(); }

  // Bits above those of a launch are fixed for it.
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
    for (int i = 0; i < target_.pass; ++i) {
      const bitslice::Pass pass = bitslice::pass_of(key_len, decrypt, i);
      run_pass(in, key->data() + pass.key_offset, pass.backwards);
    }
    for (int i = target_.passes - 1; i > target_.pass; --i) {
      const bitslice::Pass pass = bitslice::pass_of(key_len, decrypt, i);
      run_pass(expected, key->data() + pass.key_offset, !pass.backwards);
    }

    Secret<DesParameters> parameters;
    for (std::size_t position = 0; position < des_key_bits; ++position) {
      const std::size_t bit = des::permuted_choice_1[position] - 1u;
      const bool one = ((*key)[target_.key_offset + bit / 8] >> (7 - bit % 8) & 1u) != 0;
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

  // The numbers of a hit that lie in `count` granules from `granule` on.
  template <class Use>
  void each_number(const KeyNumber& granule, std::uint64_t count, const HitWords& words, Use&& use) const {
    const auto hit = std::bit_cast<DesHit>(words);
    if (hit.granule >= count) return;  // the last block has some to spare
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

  // The kernel was compiled here and now, by this driver: it must show what it can do.
  void find_planted_key() {
    std::random_device random;
    const std::uint64_t low = random();
    const KeyNumber number(low & ((std::uint64_t{1} << std::min<std::size_t>(positions_.size(), 32)) - 1));
    Secret<std::array<std::uint8_t, max_key_len>> key;
    space_->key_at(number, key->data());
    const BlockPair& pair = test_->pairs().front();
    Block expected;
    transform_block(space_->cipher(), key->data(), pair.decrypt, pair.in.data(), expected.data());
    HitBuffer buffer(kernel_.granules << (shape_.loop_bits + shape_.thread_bits));
    const KeyNumber granule = number >> shape_.granule_bits();
    launch(buffer, granule, 1, block_of(pair.in), expected);
    std::vector<HitWords> hits;
    bool found = false;
    buffer.take(hits);
    for (const HitWords& hit : hits) {
      each_number(granule, 1, hit, [&](const KeyNumber& candidate) { found = found || candidate == number; });
    }
    if (!found) throw Error(Status::engine_failure, "the DES search kernel missed a planted key in its self-test");
  }

  const std::shared_ptr<const KeySpace> space_;
  const std::shared_ptr<const KeyTest> test_;
  const DesShape shape_;
  const Target target_;
  std::vector<std::uint8_t> positions_;
  DesLayout layout_;
  DesKernel kernel_;
  std::unique_ptr<Module> module_;
  KeyNumber first_, end_, first_granule_;
  std::vector<KeyNumber>* hits_ = nullptr;
};

bool DesSearch::suits(const KeySpace& space, const KeyTest& test, const DesShape& shape) {
  return find_target(space, test, shape.granule_bits()).has_value();
}

DesSearch::DesSearch(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test, const DesShape& shape,
                     const DesPolicy& policy)
    : run_(std::make_unique<Run>(std::move(space), std::move(test), shape, policy)) {}

DesSearch::~DesSearch() = default;

std::uint64_t DesSearch::run(const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits,
                             const std::atomic<bool>& cancel) {
  return run_->search(first, count, hits, cancel);
}

}  // namespace warpcipher::search::cuda
