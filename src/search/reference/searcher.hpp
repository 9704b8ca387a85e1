// SPDX-License-Identifier: Apache-2.0
// The searcher that tests one key after the other: slow and obvious, what the others are tested against.
#pragma once

#include "search/searcher.hpp"

namespace warpcipher::search {

Searcher& reference_searcher();

}  // namespace warpcipher::search
