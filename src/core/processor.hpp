// SPDX-License-Identifier: Apache-2.0
// What this processor can do that not every compiler's __builtin_cpu_supports knows by name.
#pragma once

namespace warpcipher {

// AES rounds, and carry-less products, on vectors of more than 128 bits; as wide as AVX2 and AVX-512 allow, which are
// asked for apart. False on processors other than x86-64.
bool has_vaes();
bool has_vpclmulqdq();

}  // namespace warpcipher
