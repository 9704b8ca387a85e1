// SPDX-License-Identifier: Apache-2.0
// Leaks a key on purpose. In the build with sanitizers it must fail: the proof that every other test there would fail
// if the library leaked.
#include "warpcipher.h"

int main() {
  const unsigned char bytes[16] = {};
  wc_key* key = nullptr;
  const int failed = wc_key_new(&key, "aes-128-ctr", bytes, sizeof bytes) != WC_OK;
  *const_cast<wc_key* volatile*>(&key) = nullptr;
  return failed;
}
