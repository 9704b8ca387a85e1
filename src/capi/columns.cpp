// SPDX-License-Identifier: Apache-2.0
// The C ABI: messages as columns, an array of each of their properties.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "capi/boundary.hpp"
#include "dispatch/columns.hpp"
#include "message/columns.hpp"
#include "mode/algorithm.hpp"
#include "warpcipher.h"

using warpcipher::capi::bytes;
using warpcipher::capi::column;
using warpcipher::capi::engine_name;
using warpcipher::capi::guarded;
using warpcipher::capi::report;
using warpcipher::capi::require;
using warpcipher::capi::to_direction;
using warpcipher::capi::to_memory;
using warpcipher::capi::to_padding;

wc_status wc_run_columns(const char* engine, wc_result* results, const wc_columns* columns, void* stream) {
  return guarded([&] {
    require(columns != nullptr, "columns is a null pointer");
    const wc_columns& c = *columns;
    require(c.count == 0 || results != nullptr, "results is a null pointer");
    require(c.algorithm != nullptr || (c.keys != nullptr && c.key_count != 0),
            "keys is a null pointer or key_count is 0");
    require(c.algorithm == nullptr || c.keys == nullptr, "keys are given twice: as handles and as bytes");
    require(c.algorithm == nullptr || c.key_bytes != nullptr, "key_bytes is a null pointer");
    require(c.count == 0 || c.in_lengths != nullptr, "in_lengths is a null pointer");
    require(c.in != nullptr || c.in_len == 0, "in is a null pointer");
    require(c.out != nullptr || c.out_len == 0, "out is a null pointer");
    require(c.aad != nullptr || c.aad_len == 0, "aad is a null pointer");
    require(c.iv_len == 0 || c.ivs != nullptr || c.count == 0, "ivs is a null pointer");
    warpcipher::check_message_count(c.count);
    warpcipher::check_buffer_len("an IV", c.iv_len);
    require(c.iv_len == 0 || c.count <= SIZE_MAX / c.iv_len, "count times iv_len is too large");
    require(c.key_count <= UINT32_MAX, "key_count is above 2^32 - 1");
    std::vector<const warpcipher::Key*> keys;
    if (c.algorithm == nullptr) keys.reserve(c.key_count);
    for (std::size_t i = 0; c.algorithm == nullptr && i < c.key_count; ++i) {
      require(c.keys[i] != nullptr, "one of keys is a null pointer");
      keys.push_back(&c.keys[i]->key);
    }
    warpcipher::Columns converted;
    converted.direction = to_direction(c.direction);
    converted.padding = to_padding(c.padding);
    converted.memory = to_memory(c.memory);
    converted.columns_memory = to_memory(c.columns_memory);
    converted.keys = keys;
    if (c.algorithm != nullptr) {
      converted.algorithm = &warpcipher::find_algorithm(c.algorithm);
      converted.key_bytes = {bytes(c.key_bytes), c.key_bytes_len};
    }
    converted.key_index = column(c.key_index, c.count);
    converted.count = c.count;
    converted.in = {bytes(c.in), c.in_len};
    converted.in_offsets = column(c.in_offsets, c.count);
    converted.in_lengths = column(c.in_lengths, c.count);
    converted.out = {bytes(c.out), c.out_len};
    converted.out_offsets = column(c.out_offsets, c.count);
    converted.ivs = {bytes(c.ivs), c.count * c.iv_len};
    converted.iv_len = c.iv_len;
    converted.aad = {bytes(c.aad), c.aad_len};
    converted.aad_offsets = column(c.aad_offsets, c.count);
    converted.aad_lengths = column(c.aad_lengths, c.count);
    converted.tag_len = c.tag_len;
    // Results are written in place, by the device where they lie there.
    static_assert(sizeof(wc_result) == sizeof(warpcipher::Result) &&
                  offsetof(wc_result, status) == offsetof(warpcipher::Result, status) &&
                  offsetof(wc_result, written) == offsetof(warpcipher::Result, written));
    const std::span outcome(reinterpret_cast<warpcipher::Result*>(results), c.count);
    return report(warpcipher::run_columns(engine_name(engine), converted, outcome, stream));
  });
}
