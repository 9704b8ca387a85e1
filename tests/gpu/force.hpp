// SPDX-License-Identifier: Apache-2.0
// Forces a choice of kernels through the environment of this process.
#pragma once

#include <cstdlib>
#include <map>
#include <string>

#include "engine/cuda/runtime/refusal.hpp"

namespace conformance {

// In addition to what the environment forced at first; the later entry of a name holds. nullptr: no longer.
inline void force(const char* name, const char* value) {
  static const char* const given = std::getenv("WARPCIPHER_FORCE");
  static const std::string first = given != nullptr ? given : "";
  static std::map<std::string, std::string> forced;
  if (value != nullptr) {
    forced[name] = value;
  } else {
    forced.erase(name);
  }
  std::string all = first;
  for (const auto& [each, of_it] : forced) all += (all.empty() ? "" : ",") + each + "=" + of_it;
  setenv("WARPCIPHER_FORCE", all.c_str(), 1);
  warpcipher::cuda::reread_overrides();
}

}  // namespace conformance
