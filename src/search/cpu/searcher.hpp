// SPDX-License-Identifier: Apache-2.0
// The searcher that uses all cores of the processor, and its vector and AES instructions.
#pragma once

#include "search/searcher.hpp"

namespace warpcipher::search {

Searcher& cpu_searcher();

}  // namespace warpcipher::search
