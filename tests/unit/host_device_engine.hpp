// SPDX-License-Identifier: Apache-2.0
// A device engine whose device is the host: the reference engine behind copies, so that what brings data to a device
// can be tested without one. It checks that memory is freed with the size it was allocated with, and counts.
#pragma once

#include <cstring>
#include <map>
#include <vector>

#include "engine/device_engine.hpp"
#include "engine/reference/engine.hpp"

namespace warpcipher::test {

class HostDeviceEngine final : public DeviceEngine {
 public:
  EngineId id() const override { return EngineId::cuda; }
  std::string_view name() const override { return "host-device"; }
  std::string_view description() const override { return "a device made of host memory"; }
  bool constant_time(const Algorithm&) const override { return false; }
  const std::string& unavailable_reason() const override {
    static const std::string none;
    return none;
  }
  std::vector<std::string> devices() const override { return {}; }
  std::uint32_t tile_units() const override { return 256; }

  void run(const Plan& plan, std::span<Status> statuses, Stream stream) override {
    ++runs;
    most_messages = std::max(most_messages, plan.messages.size());
    for (const Message& m : plan.messages) {
      if (m.memory != Memory::device) throw Error(Status::engine_failure, "a host message reached the device");
    }
    if (fail_on_run == runs) throw Error(Status::engine_failure, "planted failure");
    reference_engine().run(plan, statuses, stream);
  }

  Stream create_stream() override {
    ++streams;
    return nullptr;
  }
  void destroy_stream(Stream) noexcept override { --streams; }
  void wait(Stream) override {}
  void* allocate(std::size_t size, Stream) override { return take(size); }
  void deallocate(void* memory, std::size_t size, Stream) noexcept override { give(memory, size); }
  void* allocate_pinned(std::size_t size) override { return take(size); }
  void free_pinned(void* memory, std::size_t size) noexcept override { give(memory, size); }
  void copy_to_device(void* device, const void* host, std::size_t size, Stream) override {
    std::memcpy(device, host, size);
  }
  void copy_to_host(void* host, const void* device, std::size_t size, Stream) override {
    std::memcpy(host, device, size);
  }
  void clear(void* device, std::size_t size, Stream) override { std::memset(device, 0, size); }

  int runs = 0;
  int fail_on_run = 0;
  int streams = 0;
  std::size_t most_messages = 0;
  std::size_t most_allocated = 0;
  bool balanced() const { return memory_.empty() && streams == 0 && !wrong_size_; }

 private:
  void* take(std::size_t size) {
    std::vector<std::uint8_t> bytes(size, 0xee);
    void* pointer = bytes.data();
    memory_.emplace(pointer, std::move(bytes));
    allocated_ += size;
    most_allocated = std::max(most_allocated, allocated_);
    return pointer;
  }
  void give(void* pointer, std::size_t size) noexcept {
    const auto found = memory_.find(pointer);
    if (found == memory_.end() || found->second.size() != size) {
      wrong_size_ = true;
      return;
    }
    allocated_ -= size;
    memory_.erase(found);
  }

  std::map<void*, std::vector<std::uint8_t>> memory_;
  std::size_t allocated_ = 0;
  bool wrong_size_ = false;
};

}  // namespace warpcipher::test
