// SPDX-License-Identifier: Apache-2.0
// The C ABI: version, algorithms and engines of this build.
#include <cstddef>
#include <string>

#include "capi/boundary.hpp"
#include "engine/engine.hpp"
#include "mode/algorithm.hpp"
#include "warpcipher.h"

#ifndef WARPCIPHER_VERSION
#error "the build defines WARPCIPHER_VERSION"
#endif

using warpcipher::capi::guarded;
using warpcipher::capi::require;

const char* wc_version(void) { return WARPCIPHER_VERSION; }

size_t wc_algorithm_count(void) { return warpcipher::algorithms().size(); }

wc_status wc_algorithm_at(wc_algorithm_info* info, size_t index) {
  return guarded([&] {
    require(info != nullptr, "info is a null pointer");
    require(index < warpcipher::algorithms().size(), "index is not below wc_algorithm_count()");
    const warpcipher::Algorithm& a = warpcipher::algorithms()[index];
    *info = {.name = a.name.data(),
             .key_len = a.key_len(),
             .block_len = a.block_len(),
             .iv_rule = static_cast<wc_iv_rule>(a.mode.iv),
             .is_aead = a.is_aead(),
             .whole_blocks = a.mode.whole_blocks,
             .takes_padding = a.takes_padding(),
             .parallel_encrypt = a.mode.parallel_encrypt,
             .parallel_decrypt = a.mode.parallel_decrypt,
             .iv_len = a.iv_len};
    return WC_OK;
  });
}

size_t wc_engine_count(void) { return warpcipher::engines().size(); }

wc_status wc_engine_at(wc_engine_info* info, size_t index) {
  return guarded([&] {
    require(info != nullptr, "info is a null pointer");
    require(index < warpcipher::engines().size(), "index is not below wc_engine_count()");
    const warpcipher::Engine& engine = *warpcipher::engines()[index];
    const std::string& reason = engine.unavailable_reason();
    *info = {.name = engine.name().data(),
             .description = engine.description().data(),
             .usable = reason.empty(),
             .reason = reason.c_str(),
             .memory = static_cast<wc_memory>(engine.memory())};
    return WC_OK;
  });
}

wc_status wc_engine_constant_time(int* constant_time, const char* engine, const char* algorithm) {
  return guarded([&] {
    require(constant_time != nullptr, "constant_time is a null pointer");
    require(engine != nullptr && algorithm != nullptr, "engine or algorithm is a null pointer");
    const warpcipher::Algorithm& found = warpcipher::find_algorithm(algorithm);
    for (const warpcipher::Engine* candidate : warpcipher::engines()) {
      if (candidate->name() != engine) continue;
      *constant_time = candidate->constant_time(found);
      return WC_OK;
    }
    throw warpcipher::Error(warpcipher::Status::invalid_argument, "unknown engine: wc_engine_at() lists them");
  });
}
