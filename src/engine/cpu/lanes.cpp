// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/lanes.hpp"

#include "core/processor.hpp"

namespace warpcipher::cpu {

std::span<const AesLanes* const> aes_lanes_list() { return runnable<&Lanes::aes>(); }
std::span<const GcmLanes* const> gcm_lanes_list() { return runnable<&Lanes::gcm>(); }
std::span<const ChaChaLanes* const> chacha_lanes_list() { return runnable<&Lanes::chacha>(); }
std::span<const DesLanes* const> des_lanes_list() { return runnable<&Lanes::des>(); }

const SerialCode* serial_code() {
  const auto found = runnable<&Lanes::serial>();
  return found.empty() ? nullptr : found.front();
}

}  // namespace warpcipher::cpu
