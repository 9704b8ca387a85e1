// SPDX-License-Identifier: Apache-2.0
// Triple DES of which two keys are known is a search for one DES key: the known keys are taken off the plaintext and
// the ciphertext. E(K3) D(K2) E(K1) X = Y means
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

// A search for a DES key that stands for one of triple DES. Numbers of keys are the same in both. The test has the
// first pair alone: a key that passes it is to be tested in the original search.
struct Peeled {
  std::shared_ptr<const KeySpace> space;
  std::shared_ptr<const KeyTest> test;
};

// None where the cipher is not triple DES, two keys have unknown bits, K1 of two-key triple DES has, or the unknown
// bits of the first pair lie on a side from which a known key would have to be taken off.
std::optional<Peeled> peel(const KeySpace& space, const KeyTest& test);

}  // namespace warpcipher::search
