// SPDX-License-Identifier: Apache-2.0
// The choice of kernels on made-up devices. choice_cases.txt pins it: a line a case, with the choice that was measured
// to be best (choice_support.hpp has the format). Who changes a choice on purpose changes its line.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "choice_support.hpp"

namespace {

using namespace choice_cases;

TEST(Choice, IsAsPinned) {
  std::ifstream cases(WARPCIPHER_SOURCE_DIR "/tests/unit/choice_cases.txt");
  std::string line;
  int count = 0;
  while (std::getline(cases, line)) {
    const std::size_t arrow = line.find(" -> ");
    ASSERT_NE(arrow, std::string::npos) << line;
    EXPECT_EQ(answer(line), line.substr(arrow + 4)) << line;
    ++count;
  }
  EXPECT_GT(count, 300);
}

// How full the turns of 660 workers are, of messages of so many blocks.
double fullness(std::uint64_t of_message, std::uint64_t messages) {
  const ghash::Turns turns{660, 400, 1, 4096, 4096};
  const std::uint64_t chunk = ghash::even_chunk(turns, of_message * messages, messages);
  EXPECT_EQ(chunk % 4096, 0u);
  const std::uint64_t chunks = (of_message + chunk - 1) / chunk * messages;
  const double rounds = static_cast<double>((chunks + 659) / 660 * 660);
  return static_cast<double>(of_message * messages) / (rounds * static_cast<double>(std::min(chunk, of_message)));
}

TEST(Chunks, EndTogether) {
  for (const std::uint64_t messages : {128, 256, 384, 512, 1000, 1024, 4096}) {
    EXPECT_GT(fullness(131079, messages), 0.85) << messages;
    EXPECT_GT(fullness(40960, messages), 0.8) << messages;
  }
}

TEST(Chunks, OfOneTextAreOneForEachWorker) {
  const ghash::Turns turns{660, 400, 4, 64, 512};
  EXPECT_EQ(ghash::even_chunk(turns, std::uint64_t{1} << 30, 1), 406784u);
  EXPECT_EQ(ghash::even_chunk(turns, 0, 1), 512u);
  EXPECT_EQ(ghash::even_chunk(turns, 100, 1 << 20), 512u);
  // A long text among many short ones is not cut small.
  EXPECT_EQ(ghash::even_chunk(turns, std::uint64_t{1} << 30, 1 << 20), 406784u);
}

// The choice is the first candidate that is not refused, and each refusal has a text.
template <class Candidate, std::size_t N, class Refuse>
void expect_first(const std::array<Candidate, N>& candidates, Candidate chosen, Refuse&& refuse) {
  bool is_found = false;
  for (const Candidate candidate : candidates) {
    const Refusal refusal = refuse(candidate);
    EXPECT_EQ(to_text(refusal).empty(), !refusal);
    if (!is_found && !refusal) {
      EXPECT_EQ(candidate, chosen);
      is_found = true;
    }
  }
  EXPECT_TRUE(is_found);
}

TEST(Choice, IsTheFirstCandidateThatIsNotRefused) {
  for (const char* const text :
       {"7.5/40/65536", "8.0/108/166912", "8.6/84/101376", "9.0/132/232448", "10.0/148/232448", "12.0/170/101376"}) {
    const Device device = made_up_device(text);
    const Conditions now{device};
    const TableLayout layout = choose_table_layout(now);
    expect_first(layout_candidates, layout, [&](TableLayout candidate) { return refuse(now, candidate); });
    for (const std::uint64_t messages : {1, 1000, 200000}) {
      for (const std::uint64_t units : {4, 64, 300, 5000}) {
        const std::uint64_t tiles = (units + 255) / 256 * messages;
        for (const bool one_key : {true, false}) {
          const CounterWork counter{messages, tiles, units * messages, units, 10, one_key, !one_key};
          expect_first(counter_candidates, choose_counter(now, counter).kernel,
                       [&](CounterKernel candidate) { return refuse(now, layout, counter, candidate); });
          for (const Mode mode : {Mode::ecb, Mode::cfb8, Mode::ctr, Mode::xts}) {
            const TextWork work{mode, messages == 1, one_key, tiles, units * messages};
            expect_first(text_candidates, choose_text(now, work).kernel,
                         [&](TextKernel candidate) { return refuse(now, layout, work, candidate); });
          }
          const ghash::Work hash{messages, one_key ? 1 : messages, units * messages, units};
          expect_first(ghash_candidates, choose_ghash(now, hash),
                       [&](GhashAlgorithm candidate) { return refuse(now, hash, candidate); });
        }
        const StreamWork stream{messages, units * messages, units};
        expect_first(stream_candidates, choose_stream(now, stream),
                     [&](StreamKernel candidate) { return refuse(now, stream, candidate); });
        expect_first(aead_candidates, choose_aead(now, stream),
                     [&](AeadKernel candidate) { return refuse(now, stream, candidate); });
        const SectorWork sectors{messages, 16 * units * messages};
        expect_first(sector_candidates, choose_sectors(now, sectors),
                     [&](SectorKernel candidate) { return refuse(now, sectors, candidate); });
      }
      for (const std::uint32_t rounds : {10u, 14u}) {
        const SerialWork work{messages, rounds, false};
        expect_first(serial_candidates, choose_serial(now, work).warps,
                     [&](SerialWarps candidate) { return refuse(now, layout, work, candidate); });
      }
    }
  }
}

TEST(Choice, RefusalsTellTheFiguresThatDecide) {
  const Device device = made_up_device("9.0/132/232448");
  Conditions now{device};
  const CounterWork work{1000, 1000, 64000, 64, 10, true, false};
  const auto text = [&](CounterKernel kernel) { return to_text(refuse(now, TableLayout::tables_128, work, kernel)); };
  EXPECT_EQ(text(CounterKernel::packed), "needs work for 1056 warps to pay, there is work for 500");
  EXPECT_EQ(text(CounterKernel::hybrid), "most of its tiles would be partly empty");
  now.overrides.counter = PickedCounter::tiles;
  EXPECT_EQ(text(CounterKernel::packed), "WARPCIPHER_FORCE=counter=tiles asks for another");
}

TEST(Explain, NamesEachCandidateAndWhy) {
  const Device device = made_up_device("9.0/132/232448");
  Conditions now{device};
  const BatchShape shape{find_algorithm("aes-128-gcm"), Direction::encrypt, 1000, 65536, 1};
  const auto shown = [&] {
    std::string text;
    for (const Decision& decision : explain(now, shape)) {
      text += std::string(decision.subject) + "\n";
      for (const Candidate& candidate : decision.candidates) {
        text += std::string(candidate.is_chosen ? "> " : "  ") + std::string(candidate.name) + ": " + candidate.reason +
                "\n";
      }
    }
    return text;
  };
  EXPECT_EQ(shown(),
            "tables\n"
            "> 128 KiB: the first choice\n"
            "  64 KiB: 128 KiB comes first\n"
            "counter\n"
            "  hybrid packed: takes messages of up to 511 blocks, the longest has 4096\n"
            "  packed: takes messages of up to 511 blocks, the longest has 4096\n"
            "  hybrid: needs 16896 tiles of 256 blocks to pay, there are 16000\n"
            "> tiles: the first that is not refused\n"
            "keys\n"
            "> parameter: the first choice\n"
            "  key bytes: the kernel for this text makes no round keys\n"
            "  round keys: parameter comes first\n"
            "ghash\n"
            "  tensor warpgroups: needs 4194304 blocks to pay, there are 4096000\n"
            "  tensor rows: takes messages of up to 1023 blocks, the longest has 4096\n"
            "  few lanes: takes messages of up to 512 blocks, the longest has 4096\n"
            "> tensor one key: the first that is not refused\n"
            "  tensor many keys: is for more keys than one\n"
            "  scalar: tensor one key comes first\n");
  now.overrides.counter = PickedCounter::hybrid;
  EXPECT_NE(shown().find("> hybrid: with WARPCIPHER_FORCE=counter=hybrid\n"), std::string::npos) << shown();
}

// Each algorithm and direction on each device has an answer, with one candidate chosen a question.
TEST(Explain, KnowsEveryAlgorithm) {
  for (const char* const text : {"7.5/40/65536", "8.6/84/101376", "9.0/132/232448", "12.0/170/101376"}) {
    const Device device = made_up_device(text);
    for (const Algorithm& algorithm : algorithms()) {
      if (!has_kernels(algorithm)) {
        EXPECT_THROW(explain({device}, {algorithm}), Error) << algorithm.name;
        continue;
      }
      for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
        for (const std::uint64_t messages : {1, 2, 100000}) {
          for (const std::uint64_t size : {0, 16, 4096, 1 << 20}) {
            const BatchShape shape{algorithm, direction, messages, size, messages > 2 ? messages / 2 : 1};
            const std::vector<Decision> all = explain({device}, shape);
            EXPECT_FALSE(all.empty());
            for (const Decision& decision : all) {
              int chosen = 0;
              for (const Candidate& candidate : decision.candidates) {
                chosen += candidate.is_chosen;
                EXPECT_FALSE(candidate.reason.empty() || candidate.name.empty() || candidate.description.empty());
              }
              EXPECT_EQ(chosen, 1) << algorithm.name << ", " << decision.subject;
            }
          }
        }
      }
    }
  }
}

TEST(Explain, RefusesWhatNoBatchIs) {
  const Device device = made_up_device("9.0/132/232448");
  const Algorithm& algorithm = find_algorithm("aes-256-ctr");
  const auto error_of = [&](std::uint64_t messages, std::uint64_t size, std::uint64_t keys) {
    try {
      explain({device}, {algorithm, Direction::encrypt, messages, size, keys});
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_argument);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(error_of(0, 1, 1), "aes-256-ctr: messages is 0, expected 1 to 4294967294");
  EXPECT_EQ(error_of(UINT32_MAX, 1, 1), "aes-256-ctr: messages is 4294967295, expected 1 to 4294967294");
  EXPECT_EQ(error_of(3, 1, 4), "aes-256-ctr: keys is 4, expected 1 to the number of messages, 3");
  EXPECT_EQ(error_of(3, 1, 0), "aes-256-ctr: keys is 0, expected 1 to the number of messages, 3");
  EXPECT_EQ(error_of(1, std::uint64_t{4096} * most_tiles, 1), "");
  EXPECT_EQ(error_of(1, std::uint64_t{4096} * most_tiles + 1, 1),
            "aes-256-ctr: size is 17591917608961, expected at most 17591917608960 bytes for this number of messages");
}

TEST(Overrides, RefuseUnknownNames) {
  for (const char* const text : {"gash=rows", "ghash", "=rows", "ghash=rows,,text=tiles", "GHASH=rows"}) {
    setenv("WARPCIPHER_FORCE", text, 1);
    try {
      read_overrides();
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("expected"), std::string::npos) << error.what();
    }
  }
  setenv("WARPCIPHER_FORCE", "gash=rows", 1);
  try {
    read_overrides();
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "WARPCIPHER_FORCE: 'gash=rows' is unknown: expected name=value, with a name of tables, ghash, counter, "
        "text, poly1305, columns, copies");
  }
  unsetenv("WARPCIPHER_FORCE");
}

TEST(Overrides, AreReadOnceAndAgainWhenAsked) {
  const Picks before = overrides();
  Forced forced;
  forced.set("counter", "hybrid-packed");
  EXPECT_EQ(overrides(), before);
  reread_overrides();
  EXPECT_EQ(overrides().counter, PickedCounter::hybrid_packed);
  forced.set("ghash", "matrix");
  EXPECT_THROW(reread_overrides(), Error);
  EXPECT_EQ(overrides().counter, PickedCounter::hybrid_packed);
  EXPECT_EQ(overrides().ghash, PickedGhash::none);
  forced.clear();
  reread_overrides();
  EXPECT_EQ(overrides(), before);
}

// Names of enums and names of values lie in lists of their own: each must meet the right one.
TEST(Overrides, HaveTheNameOfEachValue) {
  Forced forced;
  forced.set("tables", "64");
  forced.set("ghash", "warpgroups");
  forced.set("counter", "hybrid");
  forced.set("text", "tiles");
  forced.set("columns", "host");
  forced.set("poly1305", "lanes");
  forced.set("copies", "calls");
  const Picks all = read_overrides();
  EXPECT_EQ(all, (Picks{PickedTables::tables_64, PickedGhash::warpgroups, PickedCounter::hybrid, PickedText::tiles,
                        PickedPoly1305::lanes, PickedColumns::host, PickedCopies::calls}));
  EXPECT_EQ(choices::counter.value_of(all.counter), "hybrid");
  EXPECT_EQ(choices::counter.value_of(PickedCounter::none), "");
  EXPECT_EQ(least_columns(all), SIZE_MAX);
  EXPECT_EQ(least_columns({}), 512u);
}

TEST(Policies, AreWhatTheTunerChose) {
  const Device device = made_up_device("9.0/132/232448");
  choose_policy(device, "counter", "tiles");
  choose_policy(device, "ghash", "scalar");
  choose_policy(device, "counter", "of another kind");
  EXPECT_EQ(tuned_of(device), (Picks{.ghash = PickedGhash::scalar, .counter = PickedCounter::tiles}));
  for (const Policy& policy : policies(device)) {
    const bool is_tuned = policy.name == "counter" || policy.name == "ghash";
    EXPECT_EQ(policy.reason == "measured on this machine", is_tuned) << policy.name << ": " << policy.reason;
    choose_policy(device, policy.name, "");
  }
  EXPECT_EQ(tuned_of(device), Picks{});
}

TEST(Policies, AreNotWhatTheDeviceCannotRun) {
  const Device device = made_up_device("7.5/40/65536");
  choose_policy(device, "tables", "128");
  choose_policy(device, "ghash", "tensor");
  choose_policy(device, "text", "hybrid");
  EXPECT_EQ(tuned_of(device), Picks{});
}

}  // namespace
