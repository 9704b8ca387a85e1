// SPDX-License-Identifier: Apache-2.0
// Columnar batches of XTS that are sectors of a disk: data units of whole rows of 32 blocks, one key, one behind the
// other; those that are nearly so, or that only their buffers let take for such; and those that must be refused.
#pragma once

#include <cstddef>

#include "engine/stream.hpp"
#include "mode/algorithm.hpp"

// Returns the number of failures, and counts cases.
int test_sectors(const warpcipher::Algorithm& algorithm, bool quick, warpcipher::Stream stream, std::size_t& cases);
