// SPDX-License-Identifier: Apache-2.0
// Kernels of the CUDA engine that take messages of one kind, forced or with messages that suit them. Each prints a line
// and returns the number of messages that differ.
#pragma once

#include "cases.hpp"

namespace conformance {

// Short messages of the counter modes, packed into warps in groups of lanes of every size: lengths around the average
// that decides the size, counters that carry anywhere, some tags that do not match, one key and several.
int test_packed(const Algorithm& algorithm, const Options& options, Stream stream);

// Messages of serial modes, a lane each, whose warps load and store chunks of 128 bytes together: lengths around the
// edges of chunks, with some lanes of a warp done long before the others, or not aligned, or not there.
int test_serial(const Algorithm& algorithm, const Options& options, Stream stream);

// Long messages of parallel modes, each alone, by two kinds of warps at once: whole tiles and odd ends, counters that
// carry past 32 bits and past all, tags that do not match. Batches of one key of CTR, GCM
// and XTS.
int test_hybrid_warps(const Algorithm& algorithm, const Options& options, Stream stream);

// Short messages most of which have one length, packed into warps, and by two kinds of warps where one key allows it:
// every number of messages in a tile, some with a length of their own, counters that carry anywhere.
int test_packed_alike(const Algorithm& algorithm, const Options& options, Stream stream);

// Messages of about whole segments of GHASH by warpgroups (warpgroup_sm90a.cu), of one key and of a key each.
int test_ghash_segments(const Algorithm& algorithm, const Options& options, Stream stream);

// A key for each message, more of them than a warp has lanes, and keys shared at random: what batches derive on the
// GPU.
int test_many_keys(const Algorithm& algorithm, const Options& options, Stream stream);

}  // namespace conformance
