// SPDX-License-Identifier: Apache-2.0
// Texts of device and host memory encrypted on the device and written to a file as chunks: they are read back and
// decrypted by the host. Slots are forced to be small, so that every thread goes round its own many times.
#pragma once

#include <functional>
#include <string>

// Returns the number of failures. quick, only, is_mine: as of test_file_chunks().
int test_file_writes(bool quick, const std::string& only, const std::function<bool()>& is_mine);
