// SPDX-License-Identifier: Apache-2.0
// The parts that module.cpp puts together: one function for each file of bindings.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <vector>

#include "engine/device_engine.hpp"

namespace warpcipher::python {

void bind_aead(nanobind::module_& m);
void bind_cipher(nanobind::module_& m);
void bind_columns(nanobind::module_& m);
void bind_device(nanobind::module_& m);
void bind_exchange(nanobind::module_& m);
void bind_file(nanobind::module_& m);
void bind_kv(nanobind::module_& m);
void bind_sealing(nanobind::module_& m);
void bind_lists(nanobind::module_& m);
void bind_messages(nanobind::module_& m);
void bind_parquet(nanobind::module_& m);
void bind_pinned(nanobind::module_& m);
void bind_prg(nanobind::module_& m);
void bind_queue(nanobind::module_& m);
void bind_random(nanobind::module_& m);
void bind_random_bits(nanobind::module_& m);
void bind_search(nanobind::module_& m);
void bind_signed(nanobind::module_& m);
void bind_span(nanobind::module_& m);
void bind_thrift(nanobind::module_& m);
void bind_tuning(nanobind::module_& m);

// The bindings' use of CUDA: the right device current, streams that wait for each other, and Python objects kept
// until a stream has passed them. Without the CUDA engine there is no device memory, and these functions do nothing.

// Makes a device current for this thread, and the former one again at the end of its life. host_device: neither.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  ~DeviceScope();

 private:
  int former_;
};

// The engine of GPUs. Throws Error{engine_unavailable}, which says why, where it cannot run.
DeviceEngine& usable_cuda_engine();

// Whether work on the stream of the current device goes into a CUDA graph.
bool is_capturing(Stream stream);

// Keeps the objects (keys, IVs, AAD, arrays that arrived by DLPack) until all that is now on `stream` is done. Releases
// objects of earlier calls whose work is done. The GIL is held.
void keep_until_done(std::vector<nanobind::object> objects, int device, Stream stream);

}  // namespace warpcipher::python
