// SPDX-License-Identifier: Apache-2.0
// Point functions in device memory, before their shares are summed or copied.
#pragma once

#include "prg/prg.hpp"

namespace warpcipher::prg::cuda {

// Keys in device memory.
struct DeviceKeys {
  Domain domain;
  int party;
  const std::uint8_t* records;
  std::uint64_t count;
};

// The blocks of all leaves, Domain::blocks() << depth for each key.
void evaluate_blocks(const DeviceKeys& keys, std::uint8_t* out, Stream stream);

}  // namespace warpcipher::prg::cuda
