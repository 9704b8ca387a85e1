// SPDX-License-Identifier: Apache-2.0
#include "sectors.hpp"

#include <cstdint>
#include <vector>

#include "columnar_batch.hpp"
#include "force.hpp"

using namespace warpcipher;
using conformance::force;

int test_sectors(const Algorithm& algorithm, bool quick, Stream stream, std::size_t& cases) {
  static constexpr std::size_t at = 33;
  struct Change {
    void (*change)(ColumnarBatch&);
    std::size_t sector = 512;
    bool in_place = false;
    const char* refusal = nullptr;
    std::size_t keys = 1;
  };
  const auto first_elsewhere = [](ColumnarBatch& b) {
    for (std::uint64_t& offset : b.in_offsets) offset += 48;
    for (std::uint64_t& offset : b.out_offsets) offset += 16;
  };
  const auto not_aligned = [](ColumnarBatch& b) {
    for (std::uint64_t& offset : b.out_offsets) offset += 5;
  };
  const auto last_out_of_line = [](ColumnarBatch& b) { b.in_offsets.back() += 16; };
  const auto last_written_out_of_line = [](ColumnarBatch& b) { b.out_offsets.back() += 16; };
  const auto gap = [](ColumnarBatch& b) {
    for (std::size_t i = at; i < b.in_offsets.size(); ++i) b.in_offsets[i] += 16;
  };
  const auto same_read_twice = [](ColumnarBatch& b) { b.in_offsets[at] = b.in_offsets[at - 1]; };
  const auto one_shorter = [](ColumnarBatch& b) { b.in_lengths[at] -= 16; };
  const auto last_steals = [](ColumnarBatch& b) { b.in_lengths.back() -= 1; };
  const auto last_longer = [](ColumnarBatch& b) { b.in_lengths.back() += 32; };
  const auto keys_named = [](ColumnarBatch& b) { b.key_index.assign(b.in_lengths.size(), 0); };
  const auto none = [](ColumnarBatch&) {};
  std::vector<Change> all{
      {first_elsewhere},
      {first_elsewhere, 1536},
      {not_aligned},
      {last_out_of_line},
      {last_written_out_of_line, 1024},
      {gap},
      {same_read_twice},
      {one_shorter},
      {one_shorter, 3584},
      {last_steals},
      {last_longer},
      {keys_named},
      {none, 512, false, nullptr, 2},
      {none, 528},
      {none, 513},
      {none, 4096},
      {[](ColumnarBatch& b) { b.key_index.assign(b.in_lengths.size(), 0), b.key_index[at] = 1; }, 512, false,
       "message 33: key index"},
      {[](ColumnarBatch& b) { b.in_lengths[at] = 15; }, 512, false, "takes a data unit of 16"},
      {[](ColumnarBatch& b) {
         b.aad_offsets.assign(b.in_lengths.size(), 0);
         b.aad_lengths.assign(b.in_lengths.size(), 0);
         b.aad_lengths[at] = 5;
       },
       512, false, "message 33: aad range"},
      {[](ColumnarBatch& b) { b.in_lengths[0] = 0; }, 512, false, "takes a data unit of 16"},
      {[](ColumnarBatch& b) { b.in_lengths[0] = std::uint64_t{1} << 63; }, 512, false, "message 0: in range"},
      {[](ColumnarBatch& b) { b.in_offsets[at] = std::uint64_t{0} - 512; }, 512, false, "message 33: in range"},
      {[](ColumnarBatch& b) { b.out_offsets[at] = std::uint64_t{1} << 40; }, 512, false, "message 33: out range"},
      {[](ColumnarBatch& b) { b.in_offsets[0] = std::uint64_t{1} << 40; }, 512, false, "message 0: in range"},
      {[](ColumnarBatch& b) {
         for (std::uint64_t& offset : b.in_offsets) offset += 80;
       },
       512, false, "message 39: in range"},
      {[](ColumnarBatch& b) {
         for (std::uint64_t& offset : b.out_offsets) offset += 80;
       },
       512, false, "message 39: out range"},
      {[](ColumnarBatch& b) { b.out_offsets[at] = b.out_offsets[at - 1]; }, 512, false,
       "message 33 writes where message 32"},
      {[](ColumnarBatch& b) { b.in_offsets[at] = b.in_offsets[at + 3]; }, 512, true, "reads where message"},
      {[](ColumnarBatch& b) {
         for (std::uint64_t& offset : b.in_offsets) offset += 16;
       },
       512, true, "overlap"},
  };
  int failures = 0;
  force("text", "hybrid");
  for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
    for (const std::size_t sector : {512, 1024, 1536, 3584, 4096, 528}) {
      Shape shape;
      shape.direction = direction;
      shape.count = 1 + random_below(quick ? 60 : 3000);
      shape.longest = sector;
      shape.one_length = true;
      shape.in_place = random_below(2) == 0;
      shape.device_columns = random_below(2) == 0;
      failures += test_shape(algorithm, shape, stream);
      shape.count = 1;
      failures += test_shape(algorithm, shape, stream);
      cases += 2;
    }
    for (const Change& c : all) {
      Shape shape;
      shape.direction = direction;
      shape.count = 40;
      shape.longest = c.sector;
      shape.one_length = shape.offsets = true;
      shape.gaps = false;
      shape.in_place = c.in_place;
      shape.keys = c.keys;
      shape.device_columns = random_below(2) == 0;
      ColumnarBatch batch(algorithm, shape);
      c.change(batch);
      failures +=
          c.refusal != nullptr ? test_refusal(batch, c.refusal, stream) : test_batch(batch, algorithm, shape, stream);
      ++cases;
    }
  }
  // Enough that a lane makes the tweaks of several at once, on the emulated GPU and on a real one.
  if (algorithm.name == "aes-128-xts") {
    Shape shape;
    shape.count = quick ? 12500 : 600000;
    shape.longest = 512;
    shape.one_length = shape.device_columns = true;
    failures += test_shape(algorithm, shape, stream);
    ++cases;
  }
  force("text", nullptr);
  return failures;
}
