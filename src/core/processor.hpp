// SPDX-License-Identifier: Apache-2.0
// Abilities of this processor that not every compiler's __builtin_cpu_supports knows.
#pragma once

namespace warpcipher {

// AES rounds, and carry-less products, on vectors of more than 128 bits. How wide, AVX2 and AVX-512 decide: ask for
// these too. False on processors other than x86-64.
bool has_vaes();
bool has_vpclmulqdq();

}  // namespace warpcipher
