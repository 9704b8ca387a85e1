// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <utility>

#include "cipher/des_bitslice.hpp"
#include "core/bytes.hpp"
#include "core/fork.hpp"
#include "core/thread_pool.hpp"
#include "engine/cpu/lanes.hpp"
#include "search/cpu/lanes.hpp"
#include "search/cpu/scanner.hpp"
#include "search/key_test.hpp"
#include "search/searcher.hpp"

namespace warpcipher::search {

namespace cpu {
namespace {

// Takes any search, key by key; AES on processors without AES instructions.
class PlainScanner final : public Scanner {
 public:
  PlainScanner(SpacePointer space, TestPointer test) : space_(std::move(space)), test_(std::move(test)) {}

  std::string name() const override { return "plain code"; }
  std::uint64_t grain() const override { return 1u << 12; }
  void run(const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits) const override {
    KeyCursor cursor(*space_, first);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i > 0) cursor.next();
      if (test_->passes(cursor.key())) hits.push_back(first + KeyNumber(i));
    }
  }

 private:
  SpacePointer space_;
  TestPointer test_;
};

}  // namespace

std::unique_ptr<Scanner> make_plain_scanner(const SpacePointer& space, const TestPointer& test) {
  return std::make_unique<PlainScanner>(space, test);
}

std::vector<std::unique_ptr<Scanner>> scanners(const SpacePointer& space, const TestPointer& test) {
  std::vector<std::unique_ptr<Scanner>> all;
  for (const auto make : {des_meet_scanners, des_scanners, aes_scanners}) {
    for (std::unique_ptr<Scanner>& made : make(space, test)) all.push_back(std::move(made));
  }
  all.push_back(make_plain_scanner(space, test));
  return all;
}

}  // namespace cpu

namespace {

class CpuTask final : public SearchTask {
 public:
  explicit CpuTask(std::unique_ptr<cpu::Scanner> scanner) : scanner_(std::move(scanner)) {}

  // About half a second of all cores.
  std::uint64_t preferred_count() const override {
    return std::bit_ceil(std::uint64_t{64} * scanner_->grain() * ThreadPool::instance().threads() / 2);
  }

  std::uint64_t run(const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits,
                    const std::atomic<bool>& cancel) override {
    // A turn runs to its end or not at all, so that a cancelled run has tested one range without gaps.
    ThreadPool& pool = ThreadPool::instance();
    const std::uint64_t grain = scanner_->grain();
    const std::uint64_t turn = 4 * pool.threads() * grain;
    for (std::uint64_t done = 0; done < count;) {
      if (cancel.load(std::memory_order_relaxed)) return done;
      const KeyNumber begin = first + KeyNumber(done);
      // The first part ends at a multiple of the grain; all others are whole grains.
      const std::uint64_t skew = begin.low64() % grain;
      const std::uint64_t taken = std::min(turn - skew, count - done);
      const auto pieces = static_cast<std::size_t>((skew + taken + grain - 1) / grain);
      std::vector<KeyNumber> found;
      std::mutex mutex;
      pool.parallel_for(pieces, 1, [&](std::size_t piece, std::size_t) {
        if (cancel.load(std::memory_order_relaxed)) return;
        const std::uint64_t low = piece == 0 ? 0 : piece * grain - skew;
        const std::uint64_t high = std::min((piece + 1) * grain - skew, taken);
        std::vector<KeyNumber> mine;
        scanner_->run(begin + KeyNumber(low), high - low, mine);
        if (mine.empty()) return;
        const std::lock_guard lock(mutex);
        found.insert(found.end(), mine.begin(), mine.end());
      });
      if (cancel.load(std::memory_order_relaxed)) return done;
      hits.insert(hits.end(), found.begin(), found.end());
      done += taken;
    }
    return count;
  }

 private:
  std::unique_ptr<cpu::Scanner> scanner_;
};

class CpuSearcher final : public Searcher {
 public:
  std::string_view name() const override { return "cpu"; }
  std::string_view description() const override {
    return "all cores: DES bitsliced on vectors, AES by the processor's instructions";
  }
  const std::string& unavailable_reason() const override { return reason_; }
  std::vector<std::string> devices() const override {
    const std::size_t cores = ThreadPool::instance().threads();
    return {std::to_string(cores) + (cores == 1 ? " core" : " cores")};
  }
  std::unique_ptr<SearchTask> prepare(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test,
                                      std::size_t) override {
    return std::make_unique<CpuTask>(std::move(cpu::scanners(space, test).front()));
  }

 private:
  std::string reason_;
};

}  // namespace

Searcher& cpu_searcher() {
  static constinit FirstUse<CpuSearcher> searcher;
  return searcher.get();
}

}  // namespace warpcipher::search

namespace warpcipher::search::cpu {

LaneKeys::LaneKeys(const KeySpace& space, std::size_t lanes, std::size_t most_loop_bits)
    : space_(space), lanes_(lanes) {
  const std::size_t lane_bits = static_cast<std::size_t>(std::countr_zero(lanes));
  const std::span<const std::uint16_t> free_bits = space.free_bits();
  by_bits_ = free_bits.size() >= lane_bits;
  loop_bits_ = by_bits_ ? std::min(most_loop_bits, free_bits.size() - lane_bits) : free_bits.size();
  if (!by_bits_) return;
  const std::size_t key_len = space.key_len();
  patterns_ = SecretBytes(lanes * key_len);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    for (std::size_t i = 0; i < lane_bits; ++i) {
      if ((lane >> i & 1u) == 0) continue;
      const std::size_t bit = free_bits[loop_bits_ + i];
      patterns_.data()[key_len * lane + bit / 8] |= static_cast<std::uint8_t>(0x80u >> bit % 8);
    }
  }
}

KeyNumber LaneKeys::base_of(const KeyNumber& number) const {
  const std::size_t low_bits = by_bits_ ? loop_bits_ + static_cast<std::size_t>(std::countr_zero(lanes_)) : loop_bits_;
  return (number >> low_bits) << low_bits;
}

LaneKeys::Walk::Walk(const LaneKeys& lane_keys, const KeyNumber& base) : lane_keys_(lane_keys), base_(base) {
  if (lane_keys.by_bits_) return;
  cursor_.emplace(lane_keys.space_, base);  // all free bits are loop bits, which are zero in base
  combinations_left_ = (lane_keys.space_.size() - base) >> lane_keys.loop_bits_;
}

void LaneKeys::Walk::fill(std::uint8_t* keys) {
  const std::size_t key_len = lane_keys_.space_.key_len();
  if (lane_keys_.by_bits_) {
    const std::uint8_t* patterns = lane_keys_.patterns_.data();
    Secret<std::array<std::uint8_t, max_key_len>> key;
    lane_keys_.space_.key_at(base_, key->data());
    for (std::size_t lane = 0; lane < lane_keys_.lanes_; ++lane) {
      for (std::size_t i = 0; i < key_len; ++i) keys[key_len * lane + i] = (*key)[i] ^ patterns[key_len * lane + i];
    }
    return;
  }
  const KeyNumber one(1);
  for (std::size_t lane = 0; lane < lane_keys_.lanes_; ++lane) {
    std::memcpy(keys + key_len * lane, cursor_->key(), key_len);
    if (combinations_left_ <= one) continue;
    combinations_left_ -= one;
    cursor_->next_combination();
  }
}

void LaneKeys::Walk::next() { base_ += KeyNumber(lane_keys_.block_len()); }

// AES by the processor's instructions. They compare one column of the result: if all of it is known, one wrong key in
// 2^32 passes. Keys that pass get the whole test.
namespace {

std::uint32_t load_word(const std::uint8_t* bytes) {
  std::uint32_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

class AesSearchCode {
 public:
  AesSearchCode(const AesSearch& lanes, const BlockPair& pair) : lanes_(&lanes) {
    for (int column = 0; column < 4; ++column) {
      plan_.in[column] = load_word(pair.in.data() + 4 * column);
      const std::uint32_t mask = load_word(pair.mask.data() + 4 * column);
      if (column > 0 && std::popcount(mask) <= std::popcount(plan_.mask)) continue;
      plan_.column = column;
      plan_.mask = mask;
      plan_.expected = load_word(pair.expected.data() + 4 * column);
    }
    plan_.decrypt = pair.decrypt;
  }

  void prepare(const LaneKeys& keys, const KeySpace& space) {
    key_words_ = space.key_len() / 4;
    plan_.loop_bits = keys.loop_bits();
    for (std::size_t i = 0; i < plan_.loop_bits; ++i) {
      const std::size_t bit = space.free_bits()[i];
      std::uint8_t bytes[4] = {};
      bytes[bit / 8 % 4] = static_cast<std::uint8_t>(0x80u >> bit % 8);
      plan_.loop_words[i] = static_cast<std::uint8_t>(bit / 32);
      plan_.loop_masks[i] = load_word(bytes);
    }
  }

  std::uint64_t grain() const { return std::uint64_t{1} << 21; }
  std::size_t workspace_len() const { return 64; }

  std::size_t search(const std::uint8_t* keys, void*, std::uint32_t* candidates) const {
    return lanes_->search[key_words_ / 2 - 2](plan_, keys, candidates);
  }

 private:
  const AesSearch* lanes_;
  std::size_t key_words_ = 4;
  AesPlan plan_{};
};

}  // namespace

std::vector<std::unique_ptr<Scanner>> aes_scanners(const SpacePointer& space, const TestPointer& test) {
  std::vector<std::unique_ptr<Scanner>> found;
  if (!is_aes(space->cipher())) return found;
  for (const AesSearch* lanes : aes_search_list()) {
    found.push_back(std::make_unique<LaneScanner<AesSearchCode>>(
        std::string("AES instructions, ") + lanes->name, space, space, test,
        AesSearchCode(*lanes, test->pairs().front()), lanes->lanes, most_aes_loop_bits));
  }
  return found;
}

// DES and triple DES, bitsliced. With one unknown DES key and a fully known pair, the search works from both ends
// (lanes.hpp). Otherwise (several unknown keys, or a partly known block) it computes the whole cipher by the code of
// the `cpu` engine.
namespace {

namespace bitslice = des::bitslice;

constexpr std::size_t block_len = 8;
constexpr std::size_t best_loop_bits = 6;  // more gain less than a percent

class MeetCode {
 public:
  MeetCode(const DesMeetLanes& lanes, const BlockPair& pair)
      : lanes_(&lanes), plaintext_(load_le64(pair.in.data())), ciphertext_(load_le64(pair.expected.data())) {}

  void prepare(const LaneKeys& keys, const KeySpace& space) {
    plan_ = plan_des_meet(plaintext_, ciphertext_, space.free_bits().first(keys.loop_bits()));
  }

  std::uint64_t grain() const { return std::uint64_t{1} << 21; }
  std::size_t workspace_len() const { return lanes_->workspace_len; }

  std::size_t search(const std::uint8_t* keys, void* workspace, std::uint32_t* candidates) const {
    return lanes_->search(plan_, keys, workspace, candidates);
  }

 private:
  const DesMeetLanes* lanes_;
  std::uint64_t plaintext_;
  std::uint64_t ciphertext_;
  DesMeetPlan plan_{};
};

class WholeCode {
 public:
  WholeCode(const warpcipher::cpu::DesLanes& lanes, const BlockPair& pair)
      : lanes_(&lanes),
        decrypt_(pair.decrypt),
        in_(lanes.lanes * block_len),
        expected_(load_le64(pair.expected.data())),
        mask_(load_le64(pair.mask.data())) {
    for (std::size_t lane = 0; lane < lanes.lanes; ++lane) {
      std::memcpy(in_.data() + block_len * lane, pair.in.data(), block_len);
    }
  }

  void prepare(const LaneKeys& keys, const KeySpace& space) {
    key_len_ = space.key_len();
    passes_ = bitslice::pass_count(key_len_);
    const auto bits = space.free_bits().first(keys.loop_bits());
    loop_bits_.assign(bits.begin(), bits.end());
  }

  std::uint64_t grain() const { return std::uint64_t{1} << 19; }

  // The planes of each pass, then room for the blocks.
  std::size_t workspace_len() const { return (static_cast<std::size_t>(passes_) + 1) * pass_len(); }

  std::size_t search(const std::uint8_t* keys, void* workspace, std::uint32_t* candidates) const {
    auto* planes = static_cast<std::uint8_t*>(workspace);
    std::uint8_t* out = planes + static_cast<std::size_t>(passes_) * pass_len();
    for (int pass = 0; pass < passes_; ++pass) {
      const std::size_t offset = bitslice::pass_of(key_len_, decrypt_, pass).key_offset;
      for (std::size_t lane = 0; lane < lanes_->lanes; ++lane) {
        std::memcpy(out + block_len * lane, keys + key_len_ * lane + offset, block_len);
      }
      lanes_->expand_keys(out, planes + static_cast<std::size_t>(pass) * pass_len());
    }
    const std::uint8_t* indices = bitslice::subkey_planes.data() + (decrypt_ ? bitslice::schedule_bits : 0);
    std::size_t found = 0;
    for (std::size_t loop = 0; loop < std::size_t{1} << loop_bits_.size(); ++loop) {
      for (std::size_t i = 0; i < loop_bits_.size(); ++i) set_plane(planes, loop_bits_[i], (loop >> i & 1u) != 0);
      lanes_->transform_keyed(planes, indices, passes_, in_.data(), out);
      for (std::size_t lane = 0; lane < lanes_->lanes; ++lane) {
        if (((load_le64(out + block_len * lane) ^ expected_) & mask_) == 0) {
          candidates[found++] = static_cast<std::uint32_t>(lane << loop_bits_.size() | loop);
        }
      }
    }
    return found;
  }

 private:
  std::size_t pass_len() const { return lanes_->lanes * block_len; }

  // Sets the bit in each pass that uses it.
  void set_plane(std::uint8_t* planes, std::size_t bit, bool value) const {
    const std::size_t word_len = lanes_->lanes / 8;
    const auto plane = static_cast<std::size_t>(bitslice::plane_of_bit(static_cast<int>(bit % 64) + 1));
    for (int pass = 0; pass < passes_; ++pass) {
      if (bitslice::pass_of(key_len_, decrypt_, pass).key_offset != block_len * (bit / 64)) continue;
      std::memset(planes + static_cast<std::size_t>(pass) * pass_len() + word_len * plane, value ? 0xff : 0, word_len);
    }
  }

  const warpcipher::cpu::DesLanes* lanes_;
  bool decrypt_;
  SecretBytes in_;
  std::uint64_t expected_;
  std::uint64_t mask_;
  std::size_t key_len_ = 0;
  int passes_ = 0;
  std::vector<std::uint16_t> loop_bits_;
};

}  // namespace

std::vector<std::unique_ptr<Scanner>> des_meet_scanners(const SpacePointer& space, const TestPointer& test) {
  std::vector<std::unique_ptr<Scanner>> found;
  if (is_aes(space->cipher())) return found;
  StrippedSearch single{space, test};
  if (space->cipher() != CipherId::des) {
    const auto stripped = strip_known_keys(*space, *test);
    if (!stripped) return found;
    single = *stripped;
  }
  if (single.test->first_bits() != 8 * static_cast<int>(block_len)) return found;
  for (const DesMeetLanes* lanes : des_meet_list()) {
    found.push_back(std::make_unique<LaneScanner<MeetCode>>(
        std::string("bitsliced from both ends, ") + lanes->name, single.space, space, test,
        MeetCode(*lanes, single.test->pairs().front()), lanes->lanes, best_loop_bits));
  }
  return found;
}

std::vector<std::unique_ptr<Scanner>> des_scanners(const SpacePointer& space, const TestPointer& test) {
  std::vector<std::unique_ptr<Scanner>> found;
  if (is_aes(space->cipher())) return found;
  const auto stripped = strip_known_keys(*space, *test);
  const SpacePointer& searched = stripped ? stripped->space : space;
  const BlockPair& pair = (stripped ? *stripped->test : *test).pairs().front();
  for (const warpcipher::cpu::DesLanes* lanes : warpcipher::cpu::des_lanes_list()) {
    found.push_back(std::make_unique<LaneScanner<WholeCode>>(std::string("bitsliced, ") + lanes->name, searched, space,
                                                             test, WholeCode(*lanes, pair), lanes->lanes,
                                                             best_loop_bits));
  }
  return found;
}

}  // namespace warpcipher::search::cpu
