// SPDX-License-Identifier: Apache-2.0
// The searcher that tests one key after another: slow and obvious. The others are tested against it.
#pragma once

#include "search/searcher.hpp"

namespace warpcipher::search {

Searcher& reference_searcher();

}  // namespace warpcipher::search
