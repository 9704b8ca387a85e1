// SPDX-License-Identifier: Apache-2.0
// Columnar batches that are planned on the GPU, against the oracle. The GPU refuses a wrong batch with the error that
// the host gives.
#pragma once

#include <functional>
#include <string>

#include "engine/engine.hpp"

// Returns the number of failures. quick, only: as of test_cuda_engine. Takes a step for each algorithm whose turn it
// is.
int test_columns(bool quick, const std::string& only, const std::function<bool()>& is_mine, warpcipher::Stream stream);
