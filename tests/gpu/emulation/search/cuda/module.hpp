// SPDX-License-Identifier: Apache-2.0
// Stands in for the header of the same name on the emulated GPU: PTX is played through (ptx.hpp).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "ptx.hpp"

namespace warpcipher::search::cuda {

class Module {
 public:
  Module(const std::string& ptx, const char* name, std::size_t) : kernel_(std::make_shared<emulation::PtxKernel>(ptx)) {
    if (kernel_->name() != name) throw std::runtime_error("emulated GPU: no such kernel");
  }

  template <class Parameters>
  void launch(std::uint32_t blocks, std::uint32_t threads, std::size_t shared_len, const Parameters& parameters,
              Stream stream) const {
    if (sizeof parameters != kernel_->parameter_len()) throw std::runtime_error("emulated GPU: other parameters");
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&parameters);
    const auto error = emulation::enqueue(static_cast<cudaStream_t>(stream),
                                          [kernel = kernel_, blocks, threads, shared_len,
                                           copy = std::vector<std::uint8_t>(bytes, bytes + sizeof parameters)] {
                                            kernel->run(blocks, threads, shared_len, copy.data());
                                          });
    if (error != cudaSuccess) throw std::runtime_error("emulated GPU: a launch on a stream of another device");
  }

 private:
  std::shared_ptr<const emulation::PtxKernel> kernel_;
};

}  // namespace warpcipher::search::cuda
