// SPDX-License-Identifier: Apache-2.0
// The bindings' use of CUDA: the right device current, streams that wait for each other, and Python objects kept
// until a stream has passed them. Without the CUDA engine there is no device memory, and these functions do nothing.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "engine/engine.hpp"

namespace warpcipher::python {

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

// Whether work on the stream of the current device goes into a CUDA graph.
bool is_capturing(Stream stream);

// Keeps the objects (keys, IVs, AAD, arrays that arrived by DLPack) until all that is now on `stream` is done. Releases
// objects of earlier calls whose work is done. The GIL is held.
void keep_until_done(std::vector<nanobind::object> objects, int device, Stream stream);

}  // namespace warpcipher::python
