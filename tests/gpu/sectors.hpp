// SPDX-License-Identifier: Apache-2.0
// Columnar batches of XTS that are sectors of a disk: data units of whole rows of 32 blocks, one key, one after
// another. Also batches that differ from this in one point, or that only look so by their buffers, and those that must
// be refused.
#pragma once

#include <cstddef>

#include "engine/stream.hpp"
#include "mode/algorithm.hpp"

// Returns the number of failures, and counts cases.
int test_sectors(const warpcipher::Algorithm& algorithm, bool quick, warpcipher::Stream stream, std::size_t& cases);
