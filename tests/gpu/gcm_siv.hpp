// SPDX-License-Identifier: Apache-2.0
// Tests that only AES-GCM-SIV needs: counters that begin with a tag, nonces that repeat.
#pragma once

#include "cases.hpp"

namespace conformance {

int test_gcm_siv(const Algorithm& algorithm, const Options& options, Stream stream);

}  // namespace conformance
