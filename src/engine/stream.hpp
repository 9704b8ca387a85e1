// SPDX-License-Identifier: Apache-2.0
// A stream of a device, for code that needs nothing else of an engine.
#pragma once

namespace warpcipher {

// A CUDA stream, as cudaStream_t; nullptr is the legacy default stream. Engines of the host ignore it.
using Stream = void*;

}  // namespace warpcipher
