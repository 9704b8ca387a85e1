// SPDX-License-Identifier: Apache-2.0
// Bytes of a plain file read into device memory, as file_chunks.hpp does those of encrypted ones, texts of device
// and host memory written to one, and whole files encrypted and read by one call, as from C.
#pragma once

// Returns the number of failures. quick: as of test_cuda_engine.
int test_file_plain(bool quick);
