// SPDX-License-Identifier: Apache-2.0
// Page-locked host memory, kept between calls: the driver takes longer to lock pages than a GPU takes to encrypt them.
#pragma once

#include <cstddef>

#include "engine/device_engine.hpp"

namespace warpcipher::cuda {

// At least `size` bytes (with unified addressing every device can copy from and to them). Throws Error{out_of_memory,
// engine_failure}.
void* take_pinned(std::size_t size);

// Wipes the first `used` bytes and keeps the memory (`size` as given to take_pinned) for later, or frees it if enough
// is kept.
void give_pinned(void* memory, std::size_t size, std::size_t used) noexcept;

// True when both ends of the range are page-locked, by this library, by the application (cudaHostRegister) or by
// another library.
bool is_pinned(const void* memory, std::size_t size);

// The page-locked range around `memory` that kernels can access at the same address; empty if there is none.
AddressRange find_page_locked(const void* memory);

}  // namespace warpcipher::cuda
