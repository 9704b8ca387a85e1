// SPDX-License-Identifier: Apache-2.0
// Chunks of an encrypted file read into device memory; the test encrypted them. It forces small slots, so that every
// thread reuses its own many times.
#pragma once

#include <functional>
#include <string>

// Returns the number of failures. quick, only: as of test_cuda_engine. Takes a step for each algorithm whose turn it
// is.
int test_file_chunks(bool quick, const std::string& only, const std::function<bool()>& is_mine);
