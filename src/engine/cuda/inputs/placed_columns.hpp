// SPDX-License-Identifier: Apache-2.0
// The columns of a batch in device memory: columns of the host are copied there; columns of a device are used where
// they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/cuda/inputs/summary.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"
#include "engine/engine.hpp"
#include "engine/stream.hpp"
#include "message/message.hpp"

namespace warpcipher::cuda {

// --- Columns of the host on their way to the device. The runtime copies from pageable memory with one core, at 8 GB/s
// on the machine of docs/performance.md. Here all cores copy into page-locked memory, and the link moves the data from
// there at the same time.
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

class PlacedColumns {
 public:
  // Enqueues the copies of all columns but keys.
  PlacedColumns(const Columns& columns, Stream stream);

  const ColumnView& view() const { return view_; }
  void set_chunk_blocks(std::uint64_t blocks) { view_.chunk_blocks = blocks; }
  void set_least_chunked(std::uint64_t blocks) { view_.least_chunked = blocks; }
  void leave_ends() { view_.lacks_ends = true; }

  // The bytes of the keys, one after another; enqueues their copy. Call it at most once.
  const std::uint8_t* place_key_bytes();

  // Gives page-locked memory back; the stream must have passed all copies.
  void release() noexcept { upload_.release(); }

 private:
  template <class T>
  const T* place(std::span<const T> column);
  void describe();

  const Columns& c_;
  const Stream stream_;
  ColumnUpload upload_;
  ColumnView view_{};
  std::vector<std::unique_ptr<StreamBuffer>> copies_;
  std::unique_ptr<StreamBuffer> key_copy_;
};

}  // namespace warpcipher::cuda
