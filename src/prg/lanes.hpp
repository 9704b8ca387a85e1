// SPDX-License-Identifier: Apache-2.0
// Vector code for generators: aes_code.hpp, chacha_code.hpp and reduce_code.hpp, compiled for each instruction set by
// src/instruction_sets/. Pointers may have any alignment. Time depends only on counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "prg/point_keys.hpp"

namespace warpcipher::prg {

struct Code {
  // `children` children of each of `count` seeds, from number `first` on. out: children * count blocks, elsewhere; or
  // the seeds themselves where `children` is 1.
  void (*expand)(Generator generator, const std::uint8_t* seeds, std::size_t count, int first, int children,
                 std::uint8_t* out);

  // The corrected children of nodes: 2 * count blocks, elsewhere.
  void (*grow)(Generator generator, const std::uint8_t* nodes, std::size_t count, const LevelCorrection& correction,
               std::uint8_t* out);

  // The output of nodes of the last level: Domain::blocks() of each.
  void (*finish)(Generator generator, const std::uint8_t* nodes, std::size_t count, const LeafCorrection& correction,
                 std::uint8_t* out);
};

// Adds the records of a table, each times its share of a function, to `sum`, which is as long as a record.
struct Records {
  const std::uint8_t* table;
  std::size_t record_len;  // GF(2): any; otherwise whole integers
  std::size_t count;
};
using Accumulate = void (*)(Group group, const std::uint8_t* shares, const Records& records, std::uint8_t* sum);

struct Lanes {
  const char* name;
  const Code* aes = nullptr;
  const Code* chacha = nullptr;
  Accumulate accumulate = nullptr;

  static const Lanes baseline, avx2, avx512, aesni, vaes, vaes512;
};

// Those that this processor can run, the fastest first. AES: maybe nothing.
std::span<const Code* const> codes_of(Generator generator);
std::span<const Accumulate> accumulate_codes();

// The first of them. AES: without AES instructions the definition itself, in constant time.
const Code& code_of(Generator generator);

// The definition, for seeds and nodes one by one.
extern const Code definition;

}  // namespace warpcipher::prg
