// SPDX-License-Identifier: Apache-2.0
// Columns of the host on their way to the device. The runtime copies from pageable memory with one core, at 8 GB/s on
// the machine of docs/performance.md. Here all cores copy into page-locked memory, and the link moves the data from
// there at the same time.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/engine.hpp"

namespace warpcipher::cuda {

class ColumnUpload {
 public:
  explicit ColumnUpload(Stream stream) : stream_(stream) {}
  ColumnUpload(const ColumnUpload&) = delete;
  ColumnUpload& operator=(const ColumnUpload&) = delete;
  ~ColumnUpload();

  // Sends data that is not secret: the page-locked memory is not wiped. `host` may change once this returns; if the
  // application has locked its pages, only once the stream has passed the copy.
  void send(void* device, const void* host, std::size_t size);

  // Gives page-locked memory back; the stream must have passed all copies.
  void release() noexcept;

 private:
  Stream stream_;
  std::vector<void*> pieces_;
};

}  // namespace warpcipher::cuda
