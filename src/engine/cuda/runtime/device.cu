// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/runtime/device.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "engine/cuda/runtime/check.hpp"

namespace warpcipher::cuda {
namespace {

constexpr int least_major = 7;
constexpr int least_minor = 5;

std::string capability(int major, int minor) { return std::to_string(major) + "." + std::to_string(minor); }

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

constexpr const char* lost_reason =
    "this process was forked after the NVIDIA driver had started, which does not work in the child: start processes "
    "with exec (in Python the start method 'spawn'), or use engine 'cpu'";

std::string no_device_reason(cudaError_t error, int driver_version) {
  if (error == cudaErrorInitializationError && fork_count() != 0) return lost_reason;  // started by other code
  if (driver_version == 0) return "no NVIDIA driver found: install one, or use engine 'cpu'";
  if (error == cudaErrorInsufficientDriver) {
    return "the NVIDIA driver supports CUDA " + version_text(driver_version) + " and this build needs CUDA " +
           version_text(CUDART_VERSION / 1000 * 1000) + ": update the driver, or use engine 'cpu'";
  }
  if (error == cudaSuccess || error == cudaErrorNoDevice) {
    return "no GPU: the driver sees none (is one hidden by CUDA_VISIBLE_DEVICES or from this container?)";
  }
  return std::string("the NVIDIA driver does not start: ") + cudaGetErrorString(error) + " (" +
         cudaGetErrorName(error) + ")";
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  return cudaDeviceGetAttribute(&value, which, device) == cudaSuccess ? value : 0;
}

// The process in which look() asked the driver: 1 + fork_count(); 0: the driver has not been started.
std::atomic<unsigned> process_of_driver{0};

Devices look() {
  process_of_driver = 1 + fork_count();
  Devices found;
  if (cudaDriverGetVersion(&found.driver_version) != cudaSuccess) found.driver_version = 0;
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    cudaGetLastError();
    found.unavailable_reason = no_device_reason(error, found.driver_version);
    process_of_driver = 0;
    return found;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) continue;
    const bool supported =
        properties.major > least_major || (properties.major == least_major && properties.minor >= least_minor);
    if (!supported) {
      found.unavailable_reason = std::string(properties.name) + " has compute capability " +
                                 capability(properties.major, properties.minor) + ", this library needs " +
                                 capability(least_major, least_minor) + " or newer";
      continue;
    }
    if (attribute(cudaDevAttrMemoryPoolsSupported, i) == 0) {
      found.unavailable_reason = std::string(properties.name) + ": its driver offers no memory pools (cudaMallocAsync)";
      continue;
    }
    Device device{i,
                  {},
                  properties.totalGlobalMem,
                  properties.major,
                  properties.minor,
                  static_cast<std::uint32_t>(properties.multiProcessorCount),
                  properties.sharedMemPerBlockOptin};
    std::string_view(properties.name).copy(device.name, sizeof device.name - 1);
    found.list.push_back(device);
  }
  cudaGetLastError();
  if (!found.list.empty()) found.unavailable_reason.clear();
  return found;
}

}  // namespace

void enter_context() {
  thread_local bool entered = false;
  if (entered) return;
  // Creating an object makes the context current. cudaSetDevice would do so too, but would replace a context that the
  // application has made.
  cudaEvent_t event = nullptr;
  if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) {
    cudaGetLastError();
    return;
  }
  cudaEventDestroy(event);
  entered = true;
}

// The runtime has no such function, so the driver's is looked up.
AddressRange find_allocation(const void* pointer) {
  enter_context();
  using GetAddressRange = int (*)(unsigned long long*, std::size_t*, unsigned long long);  // cuMemGetAddressRange
  static constinit FirstUse<GetAddressRange> found_function;
  const GetAddressRange get_address_range = found_function.get([] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
    constexpr unsigned version = 3020;  // of the form with 64-bit addresses
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &found, version, cudaEnableDefault, &result);
#else
    const cudaError_t error = cudaGetDriverEntryPoint("cuMemGetAddressRange", &found, cudaEnableDefault, &result);
#endif
    if (error != cudaSuccess) cudaGetLastError();
    const bool good = error == cudaSuccess && result == cudaDriverEntryPointSuccess;
    return good ? reinterpret_cast<GetAddressRange>(found) : nullptr;
  });
  unsigned long long begin = 0;
  std::size_t size = 0;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (get_address_range == nullptr || get_address_range(&begin, &size, address) != 0) return {};
  return {static_cast<std::uintptr_t>(begin), static_cast<std::uintptr_t>(begin) + size};
}

namespace {

// The device that `pointer` lies on; `before`, the device of the pointers before (-1: none), if all devices can access
// it. `what` names the memory in an error.
int find_device_of(const void* pointer, const std::string& what, int before) {
  cudaPointerAttributes attributes{};
  const cudaError_t error = cudaPointerGetAttributes(&attributes, pointer);
  if (error != cudaSuccess && error != cudaErrorInvalidValue) throw_error(error, "look a pointer up");
  if (error != cudaSuccess) cudaGetLastError();
  const bool on_device =
      error == cudaSuccess && (attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged);
  if (!on_device) {
    throw Error(Status::invalid_argument, what + " was given as device memory, but it is not memory of a GPU");
  }
  if (attributes.type == cudaMemoryTypeManaged) return before;
  if (before >= 0 && attributes.device != before) {
    throw Error(Status::invalid_argument, what, " lies on GPU ", attributes.device, ", what came before it on GPU ",
                before, ": run one batch a GPU");
  }
  return attributes.device;
}

}  // namespace

const Devices& devices() {
  static constinit FirstUse<Devices> found, lost;
  if (!is_lost_at_fork()) return found.get(look);
  return lost.get([] {
    Devices none;
    none.unavailable_reason = lost_reason;
    return none;
  });
}

bool is_lost_at_fork() noexcept {
  const unsigned process = process_of_driver.load();
  return process != 0 && process != 1 + fork_count();
}

const Device& find_device(int index) {
  for (const Device& device : devices().list) {
    if (device.index == index) return device;
  }
  throw Error(Status::engine_failure, "GPU ", index, " cannot run this library: it needs compute ", "capability ",
              capability(least_major, least_minor), " or newer");
}

void TextLocator::add(const void* pointer, const char* what, std::size_t message) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  for (const AddressRange& range : seen_) {
    if (address >= range.begin && address < range.end) return;
  }
  device_ = find_device_of(pointer, "message " + std::to_string(message) + ": " + what, device_);
  std::rotate(seen_.begin(), seen_.end() - 1, seen_.end());
  seen_[0] = find_allocation(pointer);
}

const Device& device_of(std::span<const Message> messages) {
  TextLocator locator;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    if (message.in_len != 0) locator.add(message.in, "in", i);
    if (message.output_len() != 0 && message.out != message.in) locator.add(message.out, "out", i);
    if (message.algorithm().is_aead()) locator.add(message.tag, "tag", i);
  }
  return locator.device() < 0 ? current_device() : find_device(locator.device());
}

void BufferLocator::add(const void* buffer, const char* what) { device_ = find_device_of(buffer, what, device_); }

const Device& BufferLocator::device() const { return device_ < 0 ? current_device() : find_device(device_); }

const Device& current_device() {
  int index = 0;
  check(cudaGetDevice(&index), "find the current device");
  return find_device(index);
}

std::vector<int> devices_for_host_data() {
  int current = 0;
  check(cudaGetDevice(&current), "find the current device");
  const char* const variable = std::getenv("WARPCIPHER_DEVICES");
  const std::string wanted = variable == nullptr ? "" : variable;
  std::vector<int> chosen;
  if (wanted.empty()) {
    chosen.push_back(current);
  } else if (wanted == "all") {
    for (const Device& device : devices().list) chosen.push_back(device.index);
  } else {
    const char* const end = wanted.data() + wanted.size();
    for (const char* at = wanted.data(); at <= end; ++at) {
      int index = -1;
      const auto [after, error] = std::from_chars(at, end, index);
      const bool known = std::any_of(devices().list.begin(), devices().list.end(),
                                     [&](const Device& device) { return device.index == index; });
      if (error != std::errc() || !known || (after != end && *after != ',')) {
        throw Error(Status::invalid_argument, "WARPCIPHER_DEVICES is '", wanted.substr(0, 64),
                    "': expected all, or numbers of usable GPUs such as 0,1");
      }
      if (std::find(chosen.begin(), chosen.end(), index) == chosen.end()) chosen.push_back(index);
      at = after;
    }
  }
  const auto own = std::find(chosen.begin(), chosen.end(), current);
  if (own != chosen.end()) std::rotate(chosen.begin(), own, own + 1);
  return chosen;
}

DeviceScope::DeviceScope(int device) {
  check(cudaGetDevice(&previous_), "find the current device");
  if (device != previous_) check(cudaSetDevice(device), "select a device");
}

DeviceScope::~DeviceScope() { cudaSetDevice(previous_); }

}  // namespace warpcipher::cuda
