// SPDX-License-Identifier: Apache-2.0
// The C ABI: a batch that runs in the background.
#include <cstddef>
#include <string>
#include <utility>

#include "capi/boundary.hpp"
#include "dispatch/batch.hpp"
#include "warpcipher.h"

using warpcipher::capi::engine_name;
using warpcipher::capi::guarded;
using warpcipher::capi::report;
using warpcipher::capi::require;
using warpcipher::capi::to_message;
using warpcipher::capi::to_result;

struct wc_batch {
  explicit wc_batch(std::string engine) : batch(std::move(engine)) {}
  warpcipher::Batch batch;
};

wc_status wc_batch_new(wc_batch** out, const char* engine) {
  return guarded([&] {
    require(out != nullptr, "out is a null pointer");
    *out = nullptr;
    *out = new wc_batch{std::string(engine_name(engine))};
    return WC_OK;
  });
}

wc_status wc_batch_add(wc_batch* batch, size_t* index, const wc_message* message) {
  return guarded([&] {
    require(batch != nullptr && message != nullptr, "batch or message is a null pointer");
    const std::size_t number = batch->batch.add(to_message(*message));
    if (index != nullptr) *index = number;
    return WC_OK;
  });
}

wc_status wc_batch_start(wc_batch* batch, void* stream) {
  return guarded([&] {
    require(batch != nullptr, "batch is a null pointer");
    batch->batch.start(stream);
    return WC_OK;
  });
}

wc_status wc_batch_query(int* done, const wc_batch* batch) {
  return guarded([&] {
    require(done != nullptr && batch != nullptr, "done or batch is a null pointer");
    *done = batch->batch.is_done();
    return WC_OK;
  });
}

wc_status wc_batch_wait(wc_batch* batch) {
  return guarded([&] {
    require(batch != nullptr, "batch is a null pointer");
    return report(batch->batch.wait());
  });
}

wc_status wc_batch_result(wc_result* result, const wc_batch* batch, size_t index) {
  return guarded([&] {
    require(result != nullptr && batch != nullptr, "result or batch is a null pointer");
    *result = to_result(batch->batch.result(index));
    return WC_OK;
  });
}

void wc_batch_free(wc_batch* batch) { delete batch; }
