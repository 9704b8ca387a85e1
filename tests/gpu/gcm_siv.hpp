// SPDX-License-Identifier: Apache-2.0
// What AES-GCM-SIV alone has: counters that begin with a tag, nonces that repeat.
#pragma once

#include "cases.hpp"

namespace conformance {

int test_gcm_siv(const Algorithm& algorithm, const Options& options, Stream stream);

}  // namespace conformance
