// SPDX-License-Identifier: Apache-2.0
// The CUDA searcher against the test of keys on the host: every key of a range exactly once, whatever the template, the
// known bits of the text, the range and the kernel. A plain program, because the machines with GPUs have nothing but
// the toolkit:
//
//   test_cuda_search [--seed N]     the tests; on a GPU also with the kernels as they are used, not just small ones
//   test_cuda_search --quick 1      only small ones
//   test_cuda_search --few 1        one of each kind, small, for compute-sanitizer
//   test_cuda_search --rate SECS    keys a second: of each cipher a large search for SECS on the first GPU, of
//                                   --templates N (20) random templates a twentieth of that, of all GPUs half of it;
//                                   a search that is over sooner is repeated; --cipher NAME: only of that one
//
// Exits 1 when anything differs.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "search/cuda/searches.hpp"
#include "search/searcher.hpp"
#include "search_cases.hpp"

namespace {

using namespace warpcipher;
using namespace warpcipher::search;
using namespace warpcipher::search::test;
using warpcipher::search::cuda::AesPolicy;
using warpcipher::search::cuda::DesPolicy;
using warpcipher::search::cuda::DesSearch;
using warpcipher::search::cuda::DesShape;
using warpcipher::search::cuda::UnitLoops;
using warpcipher::search::cuda::UnitSearch;

const std::atomic<bool> go_on{false};

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

std::vector<KeyNumber> expected_hits(const KeySpace& space, const KeyTest& test, const KeyNumber& first,
                                     std::uint64_t count) {
  std::vector<KeyNumber> hits;
  KeyCursor cursor(space, first);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i > 0) cursor.next();
    if (test.passes(cursor.key())) hits.push_back(first + KeyNumber(i));
  }
  return hits;
}

template <class Search>
std::uint64_t run(Search& search, const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits) {
  return search.run(first, count, hits, go_on);
}
std::uint64_t run(UnitSearch& search, const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits) {
  return search.search(first, count, hits, go_on);
}

// Everything in a range is found, once, and nothing else.
template <class Search>
void check_range(Search& search, const KeySpace& space, const KeyTest& test, const KeyNumber& first,
                 std::uint64_t count, const std::string& what) {
  std::vector<KeyNumber> hits;
  require(run(search, first, count, hits) == count, what + ": the range was not finished");
  std::sort(hits.begin(), hits.end());
  const std::vector<KeyNumber> expected = expected_hits(space, test, first, count);
  require(hits == expected, what + ": " + std::to_string(hits.size()) + " hits, expected " +
                                std::to_string(expected.size()) + ", range from " + std::to_string(first.low64()) +
                                ", " + std::to_string(count) + " keys");
}

// A few keys are known to be in the range; the reference would take too long.
template <class Search>
void check_planted(Search& search, const KeyNumber& first, std::uint64_t count, const KeyNumber& planted,
                   const std::string& what) {
  std::vector<KeyNumber> hits;
  require(run(search, first, count, hits) == count, what + ": the range was not finished");
  require(hits == std::vector<KeyNumber>{planted},
          what + ": planted key " + std::to_string(planted.low64()) + ": " + std::to_string(hits.size()) + " hits");
}

struct FastCase {
  CipherId cipher;
  unsigned keys;  // that have unknown bits: bit i for key i
  bool decrypt;
  int known_bits;
};

// Kernels with few loops and threads, so that the emulated GPU and the reference end soon.
void check_small_kernels(const FastCase& c, const DesPolicy& policy) {
  const DesShape shape{3, 5, 3, 0};
  const std::size_t granule_bits = shape.granule_bits();
  const auto space =
      std::make_shared<const KeySpace>(random_keys(c.cipher, c.keys, granule_bits + 2 + random_below(30)));
  const std::string what = std::string(cipher_info(c.cipher).name) + " keys " + std::to_string(c.keys) +
                           (c.decrypt ? " decrypt" : " encrypt") + ", " + std::to_string(c.known_bits) + " bits, " +
                           std::to_string(policy.granules) + " granules";
  const std::uint64_t granule = std::uint64_t{1} << granule_bits;
  const KeyNumber first(granule * random_below(3) + random_below(granule));
  const auto test = make_test(*space, first, c.decrypt, c.known_bits);
  require(DesSearch::passes(*space, *test, shape) > 0, what + ": no kernel");
  if (c.known_bits < 20) {
    DesSearch search(space, test, shape, std::span(&policy, 1));
    return check_range(search, *space, *test, first, granule + random_below(granule), what);
  }

  // The first, the last, and each lane, turn, thread and block.
  const std::uint64_t range = 2 * granule;
  const auto plant = [&](std::uint64_t number) {
    const auto planted = make_test(*space, number, c.decrypt, c.known_bits);
    DesSearch one(space, planted, shape, std::span(&policy, 1));
    check_planted(one, 0, range, number, what);
  };
  plant(random_below(2) == 0 ? 0 : range - 1);
  plant(random_below(range));
}

void check_fast(std::uint32_t granules) {
  DesPolicy policy;
  policy.granules = granules;
  policy.barriers = 1 + granules;
  const CipherId des = CipherId::des;
  check_small_kernels({des, 1, false, 64}, policy);
  check_small_kernels({des, 1, true, 41}, policy);
  check_small_kernels({des, 1, false, 9}, policy);
  policy.spills = 60;
  check_small_kernels({des, 1, true, 8}, policy);
  check_small_kernels({CipherId::des_ede3, 1u << random_below(3), false, 64}, policy);
  policy.levels = 8;
  check_small_kernels({CipherId::des_ede2, 2, false, 64}, policy);
  policy.multiply = false;
  check_small_kernels({CipherId::des_ede3, 1, true, 11}, policy);
}

// Triple DES with unknown bits of a key that is used twice, or of several keys: kernels of two or three passes.
void check_several_passes(const DesPolicy& policy) {
  for (const bool decrypt : {false, true}) {
    for (const int known_bits : {64, decrypt ? 33 : 9}) {
      for (const unsigned keys : {1u, 3u}) check_small_kernels({CipherId::des_ede2, keys, decrypt, known_bits}, policy);
      const auto keys = static_cast<unsigned>(1 + random_below(7));
      for (const unsigned other : {5u, keys})
        check_small_kernels({CipherId::des_ede3, other, decrypt, known_bits}, policy);
    }
  }
}

// Two of three keys, so that a pass with a known key lies between: what it makes is read in loops further in, whichever
// bits they have. A new kernel finds planted keys by itself.
void check_known_pass_outside(const DesPolicy& policy) {
  const DesShape shape{3, 5, 3, 0};
  const auto compile = [&](const KeyTemplate& key_template) {
    const auto space = std::make_shared<const KeySpace>(key_template);
    DesSearch(space, make_test(*space, 0, false, 64), shape, std::span(&policy, 1));
  };
  // The loop further out has a bit of a key that is added to what the one further in reads.
  KeyTemplate found = random_keys(CipherId::des_ede3, 5, 0);
  for (const int bit : {6, 19, 27, 40, 43, 61, 130, 140, 141, 149, 157, 164, 168, 174, 180, 182})
    found.known[static_cast<std::size_t>(bit / 8)] ^= static_cast<std::uint8_t>(0x80 >> bit % 8);
  compile(found);
  for (int i = 0; i < 8; ++i) compile(random_keys(CipherId::des_ede3, 5, 16 + random_below(8)));
}

// More than a launch has room for: it is done again in parts. (Room for 64 keys, and 256 of 2^16 pass.)
void check_many_hits() {
  const DesShape shape{1, 5, 5, 0};
  DesPolicy policy;
  policy.granules = 1;
  const auto space = std::make_shared<const KeySpace>(random_template(CipherId::des, 20, 0, 8));
  const auto test = make_test(*space, 0, false, 8);
  DesSearch search(space, test, shape, std::span(&policy, 1));
  check_range(search, *space, *test, 100, 30u << shape.granule_bits(), "eight bits known");
}

void check_generic(CipherId cipher, std::size_t unknown, bool lists, bool decrypt, int known_bits) {
  KeyTemplate key_template = random_template(cipher, unknown, 0, cipher_info(cipher).key_len);
  if (lists) {
    for (const std::size_t byte : {std::size_t{1}, std::size_t{6}}) {
      CandidateList list{byte, {}};
      for (unsigned i = 0; i < 20; ++i) {
        list.candidates.push_back({static_cast<std::uint8_t>(2 * i), static_cast<std::uint8_t>(random_below(9))});
      }
      key_template.lists.push_back(list);
    }
  }
  const auto space = std::make_shared<const KeySpace>(key_template);
  const KeyNumber most(~std::uint64_t{0});
  const std::uint64_t size = std::min(space->size(), most).low64();
  const std::uint64_t count = std::min<std::uint64_t>(size, 1 + random_below(3000));
  const KeyNumber first(size == count ? 0 : random_below(std::min<std::uint64_t>(size - count, 1u << 20)));
  const auto test = make_test(*space, first + KeyNumber(count - 1), decrypt, known_bits);
  const auto search = is_aes(cipher) ? warpcipher::search::cuda::make_aes_search(space, test, 3)
                                     : warpcipher::search::cuda::make_generic_des(space, test, {3, 8192});
  check_range(*search, *space, *test, first, count,
              std::string("generic ") + std::string(cipher_info(cipher).name) + ", " + std::to_string(unknown) +
                  " bits" + (lists ? " and lists" : ""));
}

// Every launch takes too long, even of one unit: units get shorter, and every key is tested once all the same.
void check_shorter_units() {
  const auto space = std::make_shared<const KeySpace>(random_keys(CipherId::des_ede2, 1, 30));
  const KeyNumber first(random_below(5000));
  const auto test = make_test(*space, first, false, 7);
  const auto search = warpcipher::search::cuda::make_generic_des(space, test, {1, 1}, {0, 0});
  for (int i = 0; i < 2; ++i) check_range(*search, *space, *test, first, 3000, "units that get shorter");
}

// The kernel for an AES template: every hit of a short test of one column, by 32-bit luck none but the planted.
void check_fast_aes(CipherId cipher, std::size_t unknown, bool lists, std::uint32_t loops, AesPolicy policy,
                    int known_bits = 128) {
  KeyTemplate key_template = random_template(cipher, unknown, 0, cipher_info(cipher).key_len);
  if (lists) key_template.lists.push_back({3, {{7, 0}, {9, 1}, {200, 2}}});
  const auto space = std::make_shared<const KeySpace>(key_template);
  const UnitLoops unit_loops{loops, loops, 0};
  const std::uint64_t count = (policy.threads + random_below(policy.threads)) << loops;
  const KeyNumber first(random_below(1u << 10));
  for (const std::uint64_t at : {std::uint64_t{0}, count - 1, random_below(count)}) {
    const auto test = make_test(*space, first + KeyNumber(at), false, known_bits);
    require(warpcipher::search::cuda::suits_fast_aes(*space, *test, unit_loops), "no AES kernel");
    const auto search = warpcipher::search::cuda::make_fast_aes_search(space, test, 1, unit_loops, policy);
    check_planted(*search, first, count, first + KeyNumber(at),
                  std::string(cipher_info(cipher).name) + ", kernel of its own");
  }
}

void check_searcher() {
  Searcher& searcher = find_searcher("cuda");
  for (std::size_t device = 0; device < searcher.devices().size(); ++device) {
    const auto space = std::make_shared<const KeySpace>(random_template(CipherId::des, 30, 0, 8));
    const KeyNumber planted(random_below(5000));
    const auto test = make_test(*space, planted, false, 64);
    const auto task = searcher.prepare(space, test, device);
    check_planted(*task, 0, 5000, planted, "task");
    std::vector<KeyNumber> hits;
    const std::atomic<bool> cancelled{true};
    require(task->run(0, 5000, hits, cancelled) == 0 && hits.empty(), "a cancelled run tested keys");
  }
}

// The kernels as they are used: on a GPU.
void check_large(const KeyTemplate& key_template, bool decrypt, int known_bits) {
  const auto space = std::make_shared<const KeySpace>(key_template);
  const std::string name(cipher_info(space->cipher()).name);
  const KeyNumber size = space->size();
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t count = (std::uint64_t{1} << 34) + random_below(std::uint64_t{1} << 33);
    const std::uint64_t slack = (size - KeyNumber(count)).low64();
    const KeyNumber first(i == 0 ? 0 : i == 1 ? slack : random_below(slack));
    const KeyNumber planted = first + KeyNumber(i == 0 ? 0 : i == 1 ? count - 1 : random_below(count));
    const auto test = make_test(*space, planted, decrypt, known_bits);
    const auto task = find_searcher("cuda").prepare(space, test, 0);
    check_planted(*task, first, count, planted, "large " + name);
  }
}

// A kernel of each kind, with all it does, in as few instructions as may be.
void run_few() {
  const auto des_space = std::make_shared<const KeySpace>(random_template(CipherId::des, 20, 0, 8));
  const DesShape shape{2, 5, 2, 0};
  const std::uint64_t range = std::uint64_t{2} << shape.granule_bits();
  const KeyNumber planted(random_below(range));
  const DesPolicy policy;
  DesSearch des(des_space, make_test(*des_space, planted, false, 64), shape, std::span(&policy, 1));
  check_planted(des, 0, range, planted, "des");
  check_fast_aes(CipherId::aes_128, 30, false, 3, {64, 4});
  check_generic(CipherId::des_ede3, 40, false, false, 64);
  check_generic(CipherId::aes_128, 40, false, false, 128);
}

void run_tests(bool large) {
  for (const std::uint32_t granules : {1u, 3u}) check_fast(granules);
  check_several_passes({});
  DesPolicy little;  // a granule, and spills for as little as may be
  little.granules = 1;
  little.spills = 60;
  check_several_passes(little);
  check_known_pass_outside(little);
  check_many_hits();
  for (const CipherInfo& info : cipher_list) {
    const CipherId cipher = info.id;
    check_generic(cipher, 40, false, false, 8 * static_cast<int>(info.block_len));
    check_generic(cipher, 11, false, true, 9);
    check_generic(cipher, 8, false, true, 8 * static_cast<int>(info.block_len) - 7);
    check_generic(cipher, 7, true, false, 6);
    check_generic(cipher, 0, true, true, 5);
  }
  check_generic(CipherId::des, 0, false, false, 64);
  check_shorter_units();
  check_fast_aes(CipherId::aes_128, 30, false, 5, {64, 4});
  check_fast_aes(CipherId::aes_128, 128, false, 5, {32, 2});
  check_fast_aes(CipherId::aes_192, 40, true, 5, {64, 4});
  check_fast_aes(CipherId::aes_256, 60, false, 5, {64, 2});
  check_fast_aes(CipherId::aes_256, 250, true, 5, {64, 4});
  check_fast_aes(CipherId::aes_128, 50, false, 4, {32, 4}, 45);
  check_fast_aes(CipherId::aes_192, 70, false, 4, {32, 2}, 100);
  check_searcher();
  if (!large) return;
  check_large(random_template(CipherId::des, 56, 0, 8), false, 64);
  check_large(random_template(CipherId::des, 36, 0, 8), false, 64);
  check_large(random_template(CipherId::des, 40, 0, 8), true, 56);
  check_large(random_keys(CipherId::des_ede3, 2, 44), false, 64);
  check_large(random_keys(CipherId::des_ede2, 1, 35), false, 64);
  for (const bool decrypt : {false, true}) {
    check_large(random_keys(CipherId::des_ede2, 1, 36 + random_below(8)), decrypt, decrypt ? 50 : 64);
    check_large(random_keys(CipherId::des_ede2, 3, 36 + random_below(30)), decrypt, decrypt ? 50 : 64);
    check_large(random_keys(CipherId::des_ede3, 7, 36 + random_below(60)), decrypt, decrypt ? 50 : 64);
    check_large(random_keys(CipherId::des_ede3, 5, 36 + random_below(60)), decrypt, decrypt ? 50 : 64);
  }
  check_large(random_template(CipherId::aes_128, 40, 3, 8), false, 128);
  check_large(random_template(CipherId::aes_128, 40, 5, 8), false, 70);
  check_large(random_template(CipherId::aes_192, 40, 13, 8), false, 128);
  check_large(random_template(CipherId::aes_256, 40, 20, 8), false, 128);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::uint64_t seed = 1;
    double seconds = 0;
    bool quick = false;
    bool few = false;
    std::string cipher;
    std::size_t templates = 20;
    for (int i = 1; i + 1 < argc; i += 2) {
      quick = quick || std::strcmp(argv[i], "--quick") == 0;
      few = few || std::strcmp(argv[i], "--few") == 0;
      if (std::strcmp(argv[i], "--cipher") == 0) cipher = argv[i + 1];
      if (std::strcmp(argv[i], "--templates") == 0) templates = std::strtoul(argv[i + 1], nullptr, 10);
      if (std::strcmp(argv[i], "--seed") == 0)
        seed = std::strtoull(argv[i + 1], nullptr, 10);
      else if (std::strcmp(argv[i], "--rate") == 0)
        seconds = std::strtod(argv[i + 1], nullptr);
    }
    warpcipher::search::test::generator().seed(seed);
    const auto begin = std::chrono::steady_clock::now();
    const auto& devices = warpcipher::cuda::devices();
    require(devices.unavailable_reason.empty(), devices.unavailable_reason);
    if (seconds > 0)
      print_rates(seconds, cipher, templates, begin);
    else if (few)
      run_few();
    else
      run_tests(!quick && devices.list.front().name != std::string_view("emulated GPU"));
    std::printf("ok\n");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "FAILED: %s\n", error.what());
    return 1;
  }
}
