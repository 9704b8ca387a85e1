// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/runtime/bounds.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine/cuda/runtime/bounds_kernels.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "engine/cuda/runtime/memory.hpp"

namespace warpcipher::cuda {
namespace {

template <class Value>
Value median(std::vector<Value> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

PipeRate measure_pipe(Pipe pipe, std::uint32_t operations, Stream stream) {
  using namespace bounds;
  int index = 0;
  check(cudaGetDevice(&index), "find the current device");
  const Device& device = find_device(index);
  const std::uint32_t blocks = device.multiprocessors;
  const std::uint32_t loops = std::max<std::uint32_t>(1, (operations + loop_operations - 1) / loop_operations);
  const StreamBuffer results(blocks * sizeof(Elapsed), stream);
  const StreamBuffer sink(std::size_t{blocks} * threads * sizeof(std::uint32_t), stream);
  auto* const elapsed = reinterpret_cast<Elapsed*>(results.data());
  auto* const rest = reinterpret_cast<std::uint32_t*>(sink.data());
  // More than half of the shared memory: so no two blocks share a multiprocessor.
  launch_pipe(pipe, blocks, device.shared_len, elapsed, rest, loops, stream);
  std::vector<Elapsed> host(blocks);
  const auto native = static_cast<cudaStream_t>(stream);
  check(cudaMemcpyAsync(host.data(), elapsed, results.size(), cudaMemcpyDeviceToHost, native), "copy a measurement");
  check(cudaStreamSynchronize(native), "wait for a measurement");
  std::vector<double> rates;
  std::vector<double> clocks;
  for (const Elapsed& block : host) {
    rates.push_back(double{threads} * loops * loop_operations / static_cast<double>(block.clocks));
    clocks.push_back(static_cast<double>(block.clocks) / static_cast<double>(block.nanoseconds) * 1e9);
  }
  return {median(rates), median(clocks)};
}

}  // namespace warpcipher::cuda
