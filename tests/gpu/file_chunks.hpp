// SPDX-License-Identifier: Apache-2.0
// Chunks of an encrypted file read into device memory: what must come out was encrypted here. Slots are forced to be
// small, so that every thread goes round its own many times.
#pragma once

#include <functional>
#include <string>

// Returns the number of failures. quick, only: as of test_cuda_engine. Takes a step for each algorithm whose turn it
// is.
int test_file_chunks(bool quick, const std::string& only, const std::function<bool()>& is_mine);
