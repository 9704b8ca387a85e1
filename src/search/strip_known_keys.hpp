// SPDX-License-Identifier: Apache-2.0
// Known-key stripping. Where two of the keys of triple DES are known, the search is one for a single DES key: the known
// keys are removed from the plaintext and the ciphertext beforehand. E(K3) D(K2) E(K1) X = Y means
//
//   K1 unknown   E(K1) X                = E(K2) D(K3) Y
//   K2 unknown   E(K2) D(K3) Y          = E(K1) X
//   K3 unknown   E(K3) (D(K2) E(K1) X)  = Y
#pragma once

#include <memory>
#include <optional>

#include "search/key_space.hpp"
#include "search/key_test.hpp"

namespace warpcipher::search {

// A search for a DES key that replaces one of triple DES. Both number their keys alike. The test has the first pair
// and no other: the original search must test a key that passes.
struct StrippedSearch {
  std::shared_ptr<const KeySpace> space;
  std::shared_ptr<const KeyTest> test;
};

// None where the cipher is not triple DES, where two keys have unknown bits or K1 of two-key triple DES has some, or
// where the first pair has unknown bits on a side from which a known key would have to be removed.
std::optional<StrippedSearch> strip_known_keys(const KeySpace& space, const KeyTest& test);

}  // namespace warpcipher::search
