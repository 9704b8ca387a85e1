// SPDX-License-Identifier: Apache-2.0
// The engine of NVIDIA GPUs: finds the device of a plan, hands each group to the family that runs it, and brings back
// the verdicts of AEAD decryption.
#include "engine/cuda/engine.hpp"

#include <cuda_runtime_api.h>

#include <optional>

#include "core/error.hpp"
#include "engine/cuda/batch/aes_batch.hpp"
#include "engine/cuda/batch/columns.hpp"
#include "engine/cuda/batch/padding.hpp"
#include "engine/cuda/batch/sectors.hpp"
#include "engine/cuda/bitslice/des.hpp"
#include "engine/cuda/check.hpp"
#include "engine/cuda/device.hpp"
#include "engine/cuda/ghash/ghash.hpp"
#include "engine/cuda/group_run.hpp"
#include "engine/cuda/host_copies.hpp"
#include "engine/cuda/lane_table/run.hpp"
#include "engine/cuda/memory.hpp"
#include "engine/cuda/pinned_pool.hpp"
#include "engine/cuda/policies.hpp"
#include "engine/cuda/stream.hpp"
#include "engine/cuda/stream_pool.hpp"

namespace warpcipher {
namespace {

using cuda::check;
using cuda::native;

// GCM decryption checks every tag before it writes any text, so what failed stays unread even in place; unless the tags
// are to be computed, for the caller to check.
void run_gcm(const cuda::GroupRun& run, std::span<Status> statuses) {
  std::optional<cuda::AesBatch> made;
  if (run.group.messages.size() > 1) made.emplace(run);
  const cuda::AesBatch* const batch = made ? &*made : nullptr;
  if (run.group.direction == Direction::encrypt) {
    cuda::lane_table::run_parallel(run, batch);
    cuda::ghash::authenticate(run, batch, nullptr);
    return;
  }
  if (run.message(0).compute_tag) {
    cuda::ghash::authenticate(run, batch, nullptr);
    cuda::lane_table::run_parallel(run, batch);
    return;
  }
  std::vector<std::uint32_t> verdicts(run.group.messages.size());
  const cuda::StreamBuffer device(verdicts.size() * sizeof verdicts[0], run.stream);
  auto* const device_verdicts = reinterpret_cast<std::uint32_t*>(device.data());
  cuda::ghash::authenticate(run, batch, device_verdicts);
  cuda::lane_table::run_parallel(run, batch, device_verdicts);
  check(cudaMemcpyAsync(verdicts.data(), device_verdicts, device.size(), cudaMemcpyDeviceToHost, native(run.stream)),
        "copy the verdicts of tags from the device");
  check(cudaStreamSynchronize(native(run.stream)), "wait for the verdicts of tags");
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    statuses[run.group.messages[i]] = verdicts[i] != 0 ? Status::ok : Status::invalid_tag;
  }
}

class CudaEngine final : public DeviceEngine {
 public:
  EngineId id() const override { return EngineId::cuda; }
  std::string_view name() const override { return "cuda"; }
  std::string_view description() const override { return "NVIDIA GPUs: lane tables for AES, bitslicing for DES"; }
  bool constant_time(const Algorithm&) const override { return true; }
  const std::string& unavailable_reason() const override { return cuda::devices().unavailable_reason; }
  std::uint32_t tile_units() const override { return cuda::lane_table::tile_units; }

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
    run_on(cuda::device_of(plan), plan, statuses, stream);
  }

  void run_allocated(const Plan& plan, std::span<Status> statuses, Stream stream) override {
    run_on(cuda::current_device(), plan, statuses, stream);
  }

  void run_sectors(const Message& first, std::size_t count, Stream stream) override {
    cuda::run_sectors(cuda::current_device(), first, count, stream);
  }

  std::optional<Status> run_columns(const Columns& columns, std::span<Result> results, Stream stream) override {
    require_device();
    return cuda::run_columns(columns, results, stream);
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
    cuda::choose_policy(device, name, value);
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
      throw Error(Status::engine_failure, "engine 'cuda' was given a plan with tiles of " +
                                              std::to_string(plan.tile_units) + " units, it runs " +
                                              std::to_string(tile_units()));
    }
    const cuda::DeviceScope scope(device.index);
    std::fill(statuses.begin(), statuses.end(), Status::ok);
    cuda::SideStreams sides(stream, plan.beside);
    for (std::size_t i = 0; i < plan.groups.size(); ++i) {
      const Group& group = plan.groups[i];
      const cuda::GroupRun run{plan, group, device, sides.of_group(i)};
      if (group.algorithm->mode.id == Mode::gcm) {
        run_gcm(run, statuses);
      } else if (!group.parallel) {
        cuda::lane_table::run_serial(run);
      } else if (is_aes(group.algorithm->cipher.id)) {
        cuda::lane_table::run_parallel(run);
      } else {
        cuda::bitslice::run_parallel(run);
      }
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
  static CudaEngine engine;
  return engine;
}

}  // namespace warpcipher
