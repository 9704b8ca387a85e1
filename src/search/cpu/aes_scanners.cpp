// SPDX-License-Identifier: Apache-2.0
// AES by the processor's instructions. They compare one column of the result: if all of it is known, one wrong key in
// 2^32 passes. Keys that pass get the whole test.
#include <bit>
#include <cstring>

#include "search/cpu/lane_scanner.hpp"
#include "search/cpu/lanes.hpp"

namespace warpcipher::search::cpu {

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

}  // namespace warpcipher::search::cpu
