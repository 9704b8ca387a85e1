// SPDX-License-Identifier: Apache-2.0
// The words of the key schedule in an AES search kernel. Each sum is computed in the innermost loop that changes it,
// from sums that exist already.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "search/cuda/aes_circuit.hpp"
#include "search/cuda/aes_ptx_text.hpp"

namespace warpcipher::search::cuda {

class AesScheduleWriter {
 public:
  using Register = AesText::Register;

  // Both must outlive the writer.
  AesScheduleWriter(const AesCircuit& circuit, AesText& text)
      : circuit_(circuit), text_(text), values_(circuit.levels() + 1) {}

  // The terms of a sum that change in no loop further in than `level`.
  Sum outside(const Sum& sum, std::size_t level) const;

  // The register of a sum. It is made from up to three other sums and from terms, with the fewest operations.
  Register write(const Sum& sum);

  // The register of its term: a key word, a loop's bits, or a word of the text.
  static Register plain_term(std::size_t term);

  // A register with the S-box value `term` in the byte where the sum needs it.
  Register sbox_entry(std::size_t term);

 private:
  struct Value {
    Sum sum;
    Register name;
  };

  std::optional<Register> find_value(const Sum& sum) const;
  std::vector<Sum> cheapest_parts(const Sum& sum, std::size_t level) const;

  const AesCircuit& circuit_;
  AesText& text_;
  std::vector<std::vector<Value>> values_;  // by level
  std::map<std::size_t, Register> entries_;
};

}  // namespace warpcipher::search::cuda
