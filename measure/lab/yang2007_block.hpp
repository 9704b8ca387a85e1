// SPDX-License-Identifier: Apache-2.0
// The block-based part of yang2007 (section 6): jobs of yang2007_block.cu for the list in yang2007.cu.
#pragma once

#include <memory>

#include "lab.hpp"

namespace warpcipher::lab::yang {

// How a processor without integers adds bytes in GF(2) (Table 3).
enum class Xor { arithmetic, table256, table16, hybrid };

// AES-128 ECB decryption by T-tables on one CPU thread.
std::unique_ptr<Job> make_block_cpu(const Setting& setting);

#if WARPCIPHER_HAS_CUDA
// The same on the GPU, with integers (section 6.2), and with floating point alone (section 6.1).
std::unique_ptr<Job> make_block_integer(const Setting& setting);
template <Xor How>
std::unique_ptr<Job> make_block_float(const Setting& setting);

// Additions alone (Table 3): parameter `xors`, their number for each thread. Thread t starts with a = t % 256 and b = t
// / 256 % 256; each turn adds b to a and counts b up by 37. Its result is a, in 4 bytes.
template <Xor How>
std::unique_ptr<Job> make_xors(const Setting& setting);
#endif

}  // namespace warpcipher::lab::yang
