// SPDX-License-Identifier: Apache-2.0
// The GPUs of this machine, looked up once without throwing; and on which of them messages lie.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "engine/cuda/runtime/gpu.hpp"
#include "engine/device_engine.hpp"
#include "message/message.hpp"

namespace warpcipher::cuda {

struct Devices {
  std::vector<Device> list;
  std::string unavailable_reason;  // empty when at least one device can run this library
  int driver_version = 0;          // as cudaDriverGetVersion: 1000 major + 10 minor
};

// Asks the driver on the first call. Creates no context. None where is_lost_at_fork().
const Devices& devices();

// True in the child of a process that had started the driver. There the driver does not work, and memory that the
// parent page-locked does not exist. Destructors then free nothing.
bool is_lost_at_fork() noexcept;

// The device of that index; throws Error{engine_failure} when it is older than this library supports.
const Device& find_device(int index);

// The device that holds the text and tags of messages. Throws Error{invalid_argument} that names the message
// when a pointer is not device memory or two messages lie on different GPUs. The current device when no message has
// text.
const Device& device_of(std::span<const Message> messages);

// Makes the context of this thread's device current, as allocations and launches do. Without a context the driver does
// not recognise memory: page-locked memory in the first payload of a new thread was taken for pageable. Does nothing if
// that fails.
void enter_context();

// The allocation that contains a pointer to device memory or to page-locked host memory; empty if the driver does not
// know.
AddressRange find_allocation(const void* pointer);

// The device of many pointers. Most lie in a few allocations, so those seen last are cached: asking the driver costs
// more than the rest of the host's work for a short message.
class TextLocator {
 public:
  // Throws Error{invalid_argument} that names `what` of the message when it is not device memory, or lies on another
  // GPU than those before it.
  void add(const void* pointer, const char* what, std::size_t message);

  int device() const { return device_; }  // -1: no pointer so far

 private:
  std::array<AddressRange, 4> seen_{};
  int device_ = -1;
};

// The device of a few buffers that should lie in device memory.
class BufferLocator {
 public:
  // Throws Error{invalid_argument} that names `what` when it does not, or lies on another GPU than those before it.
  void add(const void* buffer, const char* what);

  // The current device when no buffer was added.
  const Device& device() const;

 private:
  int device_ = -1;
};

// The calling thread's current device; throws Error{engine_failure} when it is too old.
const Device& current_device();

// The devices among which large host data are divided, as WARPCIPHER_DEVICES says: "all", or numbers such as "0,2" (as
// cudaSetDevice takes them, so after CUDA_VISIBLE_DEVICES). Unset or empty: only the current device. Using another
// device would make a context there, and processes that share a machine often have a device each. The current device
// comes first if it is among them. Throws Error{invalid_argument}.
std::vector<int> devices_for_host_data();

// Makes a device current until the end of the scope.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int previous_ = 0;
};

}  // namespace warpcipher::cuda
