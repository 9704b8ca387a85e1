// SPDX-License-Identifier: Apache-2.0
// Every algorithm on the CUDA engine: lengths at the edges of blocks and tiles, counters that carry, and all of them in
// one plan. Each prints a line and returns the number of cases that differ.
#pragma once

#include "cases.hpp"

namespace conformance {

// thin: what differs from another form of the tables or size of the key was tested there. Then each length runs once
// alone, in place or not in turn.
int test_algorithm(const Algorithm& algorithm, const Options& options, Stream stream, bool thin = false);

// Every algorithm and both directions in one plan.
int test_mixed(const Options& options, Stream stream);

}  // namespace conformance
