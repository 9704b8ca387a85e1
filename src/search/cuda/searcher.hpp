// SPDX-License-Identifier: Apache-2.0
// The searcher of NVIDIA GPUs. In a build without CUDA it is listed all the same, and says why it cannot run
// (absent.cpp).
#pragma once

#include "search/searcher.hpp"

namespace warpcipher::search {

Searcher& cuda_searcher();

}  // namespace warpcipher::search
