// SPDX-License-Identifier: Apache-2.0
// Every algorithm on the CUDA engine: lengths at the edges of blocks and tiles, counters that carry, and all of them in
// one plan. Each prints a line and returns the number of cases that differ.
#pragma once

#include "cases.hpp"

namespace conformance {

// thin: another form of the tables or another key size was tested in full. Then each length runs once alone, by turns
// in place and not.
int test_algorithm(const Algorithm& algorithm, const Options& options, Stream stream, bool thin = false);

// Every algorithm and both directions in one plan.
int test_mixed(const Options& options, Stream stream);

}  // namespace conformance
