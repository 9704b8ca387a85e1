// SPDX-License-Identifier: Apache-2.0
// The engine of NVIDIA GPUs: finds the device of the messages, and has their groups run there.
#include "engine/device_engine.hpp"

#include <cuda_runtime_api.h>

#include <numeric>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "engine/cuda/execution/columns.hpp"
#include "engine/cuda/execution/launch_plan.hpp"
#include "engine/cuda/execution/message_batch.hpp"
#include "engine/cuda/inputs/texts.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "engine/cuda/runtime/stream_pool.hpp"

namespace warpcipher {
namespace {

using cuda::check;
using cuda::native;

class CudaEngine final : public DeviceEngine {
 public:
  EngineId id() const override { return EngineId::cuda; }
  std::string_view name() const override { return "cuda"; }
  std::string_view description() const override { return "NVIDIA GPUs: lane tables for AES, bitslicing for DES"; }
  bool constant_time(const Algorithm&) const override { return true; }
  bool offers(const Algorithm& algorithm) const override { return cuda::has_kernels(algorithm); }
  const std::string& unavailable_reason() const override { return cuda::devices().unavailable_reason; }
  std::uint32_t tile_units() const override { return cuda::tile_units; }

  std::vector<std::string> devices() const override {
    std::vector<std::string> lines;
    const int driver = cuda::devices().driver_version;
    for (const cuda::Device& device : cuda::devices().list) {
      lines.push_back(std::string(device.name) + ", " + std::to_string(device.memory >> 20) +
                      " MiB, compute capability " + std::to_string(device.major) + "." + std::to_string(device.minor) +
                      ", " + std::to_string(device.multiprocessors) + " multiprocessors, driver for CUDA " +
                      std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10));
    }
    return lines;
  }

  void run(const Plan& plan, std::span<Status> statuses, Stream stream) override {
    require_device();
    run_on(cuda::device_of(plan.messages), plan, statuses, stream);
  }

  Status run_one(const Message& message, Stream stream) override {
    require_device();
    const cuda::Device& device = cuda::device_of({&message, 1});
    const cuda::DeviceScope scope(device.index);
    return cuda::run_message(message, device, stream);
  }

  void run_allocated(const Plan& plan, std::span<Status> statuses, Stream stream) override {
    run_on(cuda::current_device(), plan, statuses, stream);
  }

  void run_sectors(const Message& first, std::size_t count, Stream stream) override {
    cuda::run_sectors(cuda::current_device(), first, count, stream);
  }

  std::size_t least_columns() const override { return cuda::least_columns(cuda::overrides()); }
  std::optional<Status> run_columns(const Columns& columns, std::span<Result> results, Stream stream) override {
    require_device();
    return cuda::run_columns(columns, results, stream);
  }

  void run_pieces(std::span<const Message> messages, const Pieces& pieces, std::uint32_t* verdicts,
                  Stream stream) override {
    require_device();
    std::vector<std::uint32_t> numbers(messages.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    const cuda::MessageGroup group{messages, numbers, {}};
    cuda::MessageBatch(group, cuda::current_device(), stream, &pieces).run_pieces(verdicts);
  }

  void take_padding_off(std::span<const Message* const> messages, std::span<std::uint32_t> lengths,
                        Stream stream) override {
    cuda::take_padding_off(messages, lengths, stream);
  }

  std::vector<int> devices_for_host_data() const override {
    require_device();
    return cuda::devices_for_host_data();
  }
  int current_device() const override {
    int device = 0;
    check(cudaGetDevice(&device), "find the current device");
    return device;
  }
  int select_device(int device) override {
    const int former = current_device();
    if (device != former) check(cudaSetDevice(device), "select a device");
    return former;
  }

  std::vector<Policy> policies(int device) const override { return cuda::policies(cuda::find_device(device)); }
  void choose_policy(int device, std::string_view name, std::string_view value) override {
    for (const cuda::Device& each : cuda::devices().list) {
      if (each.index == device) cuda::choose_policy(each, name, value);
    }
  }

  std::vector<Decision> explain(const BatchShape& shape, int device) const override {
    require_device();
    return cuda::explain(cuda::conditions_of(cuda::find_device(device)), shape);
  }

  Stream create_stream() override {
    require_device();
    return cuda::take_stream();
  }
  void destroy_stream(Stream stream) noexcept override { cuda::give_stream(stream); }
  void wait(Stream stream) override { check(cudaStreamSynchronize(native(stream)), "finish its work"); }
  bool is_done(Stream stream) override {
    const cudaError_t error = cudaStreamQuery(native(stream));
    if (error == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    check(error, "finish its work");
    return true;
  }

  void* allocate(std::size_t size, Stream stream) override {
    require_device();
    return cuda::allocate(size, stream);
  }
  void deallocate(void* memory, std::size_t size, std::size_t used, Stream stream) noexcept override {
    cuda::deallocate(memory, size, used, stream);
  }

  void* allocate_pinned(std::size_t size) override {
    require_device();
    return cuda::take_pinned(size);
  }
  void free_pinned(void* memory, std::size_t size, std::size_t used) noexcept override {
    cuda::give_pinned(memory, size, used);
  }
  bool is_pinned(const void* memory, std::size_t size) const override { return cuda::is_pinned(memory, size); }
  AddressRange find_page_locked(const void* memory) const override { return cuda::find_page_locked(memory); }

  void copy_to_device(void* device, const void* host, std::size_t size, Stream stream) override {
    check(cudaMemcpyAsync(device, host, size, cudaMemcpyHostToDevice, native(stream)), "copy to the device");
  }
  void copy_to_host(void* host, const void* device, std::size_t size, Stream stream) override {
    check(cudaMemcpyAsync(host, device, size, cudaMemcpyDeviceToHost, native(stream)), "copy from the device");
  }
  void copy_rows_to_host(void* host, const void* rows, std::size_t step, std::size_t len, std::size_t count,
                         Stream stream) override {
    cuda::copy_rows(static_cast<std::uint8_t*>(host), static_cast<const std::uint8_t*>(rows), step, len, count, stream);
  }
  void copy_on_device(void* to, const void* from, std::size_t size, Stream stream) override {
    // Memory of another GPU's pool is not mapped here: only the peer copy takes it (CUDA Programming Guide, Stream
    // Ordered Memory Allocator).
    cudaPointerAttributes source{}, target{};
    check(cudaPointerGetAttributes(&source, from), "cudaPointerGetAttributes");
    check(cudaPointerGetAttributes(&target, to), "cudaPointerGetAttributes");
    if (source.type == cudaMemoryTypeDevice && source.device != target.device) {
      check(cudaMemcpyPeerAsync(to, target.device, from, source.device, size, native(stream)), "copy between GPUs");
      return;
    }
    check(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, native(stream)), "copy on the device");
  }
  void copy_all_to_device(std::span<const DeviceCopy> copies, Stream stream) override {
    cuda::copy_all(copies, cudaMemcpyHostToDevice, stream);
  }
  void copy_all_to_host(std::span<const DeviceCopy> copies, Stream stream) override {
    cuda::copy_all(copies, cudaMemcpyDeviceToHost, stream);
  }
  void copy_many(const DeviceCopy* copies, std::size_t count, Pace pace, Stream stream) override {
    cuda::copy_many(copies, count, pace, stream);
  }
  void clear(void* device, std::size_t size, Stream stream) override {
    check(cudaMemsetAsync(device, 0, size, native(stream)), "clear device memory");
  }

 private:
  void run_on(const cuda::Device& device, const Plan& plan, std::span<Status> statuses, Stream stream) {
    if (plan.tile_units != tile_units()) {
      throw Error(Status::engine_failure, "engine 'cuda' was given a plan with tiles of ", plan.tile_units,
                  " units, it runs ", tile_units());
    }
    const cuda::DeviceScope scope(device.index);
    std::fill(statuses.begin(), statuses.end(), Status::ok);
    cuda::SideStreams sides(stream, plan.concurrent);
    for (std::size_t i = 0; i < plan.groups.size(); ++i) {
      const Group& group = plan.groups[i];
      const Stream own = sides.of_group(i);
      if (group.messages.size() == 1) {
        statuses[group.messages[0]] = cuda::run_message(plan.messages[group.messages[0]], device, own);
        continue;
      }
      const cuda::MessageGroup messages{plan.messages, group.messages, group.first_tile};
      cuda::MessageBatch(messages, device, own).run(statuses);
    }
  }

  void require_device() const {
    if (!unavailable_reason().empty()) {
      throw Error(Status::engine_unavailable, "engine 'cuda' cannot run here: " + unavailable_reason());
    }
  }
};

}  // namespace

DeviceEngine& cuda_engine() {
  static constinit FirstUse<CudaEngine> engine;
  return engine.get();
}

Engine& listed_cuda_engine() { return cuda_engine(); }

}  // namespace warpcipher
