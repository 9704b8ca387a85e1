// SPDX-License-Identifier: Apache-2.0
// Messages of more than 4 GiB: offsets and counters past 32 bits.
#pragma once

#include <string>

#include "engine/engine.hpp"

// Returns the number of checks that failed; prints a line for each. Needs 9 GiB of device memory. only: an algorithm's
// name, or empty for all.
int test_large(warpcipher::Stream stream, const std::string& only);
