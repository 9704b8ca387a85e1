// SPDX-License-Identifier: Apache-2.0
// The CUDA engine of a build without CUDA: listed, so that an error can say why it cannot run.
#include "core/error.hpp"
#include "core/fork.hpp"
#include "engine/device_engine.hpp"

namespace warpcipher {
namespace {

class AbsentCudaEngine final : public DeviceEngine {
 public:
  EngineId id() const override { return EngineId::cuda; }
  std::string_view name() const override { return "cuda"; }
  std::string_view description() const override { return "NVIDIA GPUs (not in this build)"; }
  bool constant_time(const Algorithm&) const override { return true; }
  bool offers(const Algorithm&) const override { return false; }
  const std::string& unavailable_reason() const override { return reason_; }
  std::vector<std::string> devices() const override { return {}; }
  std::uint32_t tile_units() const override { return 256; }

  void run(const Plan&, std::span<Status>, Stream) override { refuse(); }
  std::vector<int> devices_for_host_data() const override { refuse(); }
  int current_device() const override { refuse(); }
  int select_device(int) override { refuse(); }
  std::vector<Policy> policies(int) const override { return {}; }
  void choose_policy(int, std::string_view, std::string_view) override {}
  std::vector<Decision> explain(const BatchShape&, int) const override { refuse(); }
  Stream create_stream() override { refuse(); }
  void destroy_stream(Stream) noexcept override {}
  void wait(Stream) override { refuse(); }
  bool is_done(Stream) override { refuse(); }
  Status run_one(const Message&, Stream) override { refuse(); }
  void run_allocated(const Plan&, std::span<Status>, Stream) override { refuse(); }
  void run_sectors(const Message&, std::size_t, Stream) override { refuse(); }
  void take_padding_off(std::span<const Message* const>, std::span<std::uint32_t>, Stream) override { refuse(); }
  void* allocate(std::size_t, Stream) override { refuse(); }
  void deallocate(void*, std::size_t, std::size_t, Stream) noexcept override {}
  void* allocate_pinned(std::size_t) override { refuse(); }
  void free_pinned(void*, std::size_t, std::size_t) noexcept override {}
  bool is_pinned(const void*, std::size_t) const override { return false; }
  AddressRange find_page_locked(const void*) const override { return {}; }
  void copy_to_device(void*, const void*, std::size_t, Stream) override { refuse(); }
  void copy_to_host(void*, const void*, std::size_t, Stream) override { refuse(); }
  void copy_on_device(void*, const void*, std::size_t, Stream) override { refuse(); }
  void copy_all_to_device(std::span<const DeviceCopy>, Stream) override { refuse(); }
  void copy_all_to_host(std::span<const DeviceCopy>, Stream) override { refuse(); }
  void copy_many(const DeviceCopy*, std::size_t, Pace, Stream) override { refuse(); }
  void clear(void*, std::size_t, Stream) override { refuse(); }

 private:
  [[noreturn]] void refuse() const {
    throw Error(Status::engine_unavailable, "engine 'cuda' cannot run here: " + reason_);
  }

  const std::string reason_ = "built without CUDA: install a build with it, or use engine 'cpu'";
};

}  // namespace

DeviceEngine& cuda_engine() {
  static constinit FirstUse<AbsentCudaEngine> engine;
  return engine.get();
}

}  // namespace warpcipher
