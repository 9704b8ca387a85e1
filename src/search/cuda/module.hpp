// SPDX-License-Identifier: Apache-2.0
// A kernel from PTX, which the driver compiles at run time. The driver library is loaded when it is first needed, as
// the CUDA runtime does. The driver keeps compiled kernels on disk (in CUDA_CACHE_PATH).
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "engine/engine.hpp"

namespace warpcipher::search::cuda {

class Module {
 public:
  // For the current device, on which the runtime has been used. parameters: one struct, by value. Throws
  // Error{engine_failure}.
  Module(const std::string& ptx, const char* name, std::size_t shared_len) {
    check(driver().load(&module_, ptx.c_str(), 0, nullptr, nullptr), "compile a search kernel");
    try {
      check(driver().get_function(&function_, module_, name), "find a search kernel");
      check(driver().set_attribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                   static_cast<int>(shared_len)),
            "reserve shared memory for a search kernel");
    } catch (...) {
      driver().unload(module_);
      throw;
    }
  }
  ~Module() {
    if (!warpcipher::cuda::is_lost_at_fork()) driver().unload(module_);
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  template <class Parameters>
  void launch(std::uint32_t blocks, std::uint32_t threads, std::size_t shared_len, const Parameters& parameters,
              Stream stream) const {
    void* arguments[] = {const_cast<Parameters*>(&parameters)};
    check(driver().launch(function_, blocks, 1, 1, threads, 1, 1, static_cast<unsigned>(shared_len),
                          static_cast<CUstream>(stream), arguments, nullptr),
          "start a search kernel");
  }

 private:
  struct Driver {
    decltype(&cuModuleLoadDataEx) load;
    decltype(&cuModuleUnload) unload;
    decltype(&cuModuleGetFunction) get_function;
    decltype(&cuFuncSetAttribute) set_attribute;
    decltype(&cuLaunchKernel) launch;
    decltype(&cuGetErrorString) error_string;
  };

  template <class Function>
  static void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) throw Error(Status::engine_failure, "the NVIDIA driver has no ", name);
  }

  static const Driver& driver() {
    static constinit FirstUse<Driver> found;
    return found.get([] {
      const NotAtFork scope;  // the loader holds a lock
      void* const library = dlopen("libcuda.so.1", RTLD_NOW);
      if (library == nullptr) throw Error(Status::engine_failure, "libcuda.so.1 cannot be loaded");
      Driver functions{};
      find(library, "cuModuleLoadDataEx", functions.load);
      find(library, "cuModuleUnload", functions.unload);
      find(library, "cuModuleGetFunction", functions.get_function);
      find(library, "cuFuncSetAttribute", functions.set_attribute);
      find(library, "cuLaunchKernel", functions.launch);
      find(library, "cuGetErrorString", functions.error_string);
      return functions;
    });
  }

  static void check(CUresult result, const char* doing) {
    if (result == CUDA_SUCCESS) return;
    const char* text = nullptr;
    if (driver().error_string(result, &text) != CUDA_SUCCESS || text == nullptr) text = "unknown error";
    throw Error(Status::engine_failure, "CUDA failed to ", doing, ": ", text);
  }

  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

}  // namespace warpcipher::search::cuda
