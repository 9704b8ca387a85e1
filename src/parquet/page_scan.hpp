// SPDX-License-Identifier: Apache-2.0
// The modules of a chunk found in a file without reading its pages: for who reads these elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include "parquet/page_modules.hpp"

namespace warpcipher::parquet {

struct PageScan {
  Column positions;                 // of the modules, and the end
  std::vector<std::uint8_t> heads;  // the modules of the page headers, back to back
  Column head_positions;            // where each begins in `heads`
  int error = 0;                    // of the system, as errno: the file could not be read at `failed_at`
  std::uint64_t failed_at = 0;
};

// The modules between start and end of a file that takes pread(). Errors as of lay_out_chunks(), and where the file has
// ended.
PageScan scan_pages(int descriptor, std::uint64_t start, std::uint64_t end);

}  // namespace warpcipher::parquet
