// SPDX-License-Identifier: Apache-2.0
// The benchmarks of the CUDA engine share this: memory, and times of a stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/device_engine.hpp"
#include "engine/engine.hpp"
#include "frame.hpp"
#include "message/plan.hpp"

namespace warpcipher::bench {

inline void must(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

// Throws where the engine cannot run.
inline void print_devices() {
  const std::string& reason = cuda_engine().unavailable_reason();
  if (!reason.empty()) throw std::runtime_error(reason);
  for (const std::string& device : cuda_engine().devices()) std::printf("%s\n", device.c_str());
}

// ---- memory ---------------------------------------------------------------------------------------------------------

// Memory of the current device.
class Bytes {
 public:
  explicit Bytes(std::size_t len) {
    must(cudaMalloc(reinterpret_cast<void**>(&data_), len != 0 ? len : 1), "cudaMalloc");
    must(cudaMemset(data_, 0x5a, len), "cudaMemset");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // other streams do not wait for it
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() { cudaFree(data_); }

  std::uint8_t* data() const { return data_; }

 private:
  std::uint8_t* data_ = nullptr;
};

inline std::vector<std::uint8_t> read(const std::uint8_t* from, std::size_t len) {
  std::vector<std::uint8_t> bytes(len);
  must(cudaMemcpy(bytes.data(), from, len, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return bytes;
}

// A text of `len` bytes on the current device, as much room for results, and a stream.
class Buffers {
 public:
  explicit Buffers(std::size_t len) : in_(len), out_(len) {}
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() { cuda_engine().destroy_stream(stream_); }

  std::uint8_t* in() const { return in_.data(); }
  std::uint8_t* out() const { return out_.data(); }
  Stream stream() const { return stream_; }
  cudaStream_t native() const { return static_cast<cudaStream_t>(stream_); }

 private:
  const Bytes in_, out_;
  const Stream stream_ = cuda_engine().create_stream();
};

// ---- times ----------------------------------------------------------------------------------------------------------

// Time on a device between two points of a stream.
class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream) {
    must(cudaEventCreate(&start_), "cudaEventCreate");
    must(cudaEventCreate(&stop_), "cudaEventCreate");
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }

  // Milliseconds that the work which `enqueue` puts on the stream takes. Waits for it.
  template <class Enqueue>
  double milliseconds(Enqueue&& enqueue) {
    must(cudaEventRecord(start_, stream_), "cudaEventRecord");
    enqueue();
    must(cudaEventRecord(stop_, stream_), "cudaEventRecord");
    must(cudaEventSynchronize(stop_), "cudaEventSynchronize");
    float ms = 0;
    must(cudaEventElapsedTime(&ms, start_, stop_), "cudaEventElapsedTime");
    return static_cast<double>(ms);
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};

inline constexpr std::size_t tag_len = 16;

}  // namespace warpcipher::bench
