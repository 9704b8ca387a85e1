// SPDX-License-Identifier: Apache-2.0
// Texts that begin at any byte.
#pragma once

#include "cases.hpp"

namespace conformance {

// Every pair of places of text and output modulo 16, lengths at the edges of blocks, rows and tiles, in place and not,
// in batches of one key and of several, alone and at the very ends of allocations, by each kind of kernel. Prints a
// line and returns the number of messages that differ.
int test_alignments(const Algorithm& algorithm, const Options& options, Stream stream);

}  // namespace conformance
