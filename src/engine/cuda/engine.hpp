// SPDX-License-Identifier: Apache-2.0
// The engine of NVIDIA GPUs. In a build without CUDA it is listed all the same, and says why it cannot run
// (absent.cpp).
#pragma once

#include "engine/device_engine.hpp"

namespace warpcipher {

DeviceEngine& cuda_engine();

}  // namespace warpcipher
