// SPDX-License-Identifier: Apache-2.0
// Chunks of Parquet files, encrypted and plain, opened into device memory.
#pragma once

// Returns the number of failures.
int test_parquet_chunks();
