// SPDX-License-Identifier: Apache-2.0
// Messages whose texts lie in pieces of device memory (src/message/pieces.hpp), against the oracle over gathered texts.
#pragma once

#include "cases.hpp"

namespace conformance {

// Returns the number of failures.
int test_pieces(const Algorithm& algorithm, const Options& options, Stream stream);

}  // namespace conformance
