// SPDX-License-Identifier: Apache-2.0
// The CUDA engine of a build without CUDA: listed, so that an error can say why it cannot run.
#include "core/error.hpp"
#include "core/fork.hpp"
#include "engine/engine.hpp"

namespace warpcipher {
namespace {

class AbsentCudaEngine final : public Engine {
 public:
  EngineId id() const override { return EngineId::cuda; }
  std::string_view name() const override { return "cuda"; }
  std::string_view description() const override { return "NVIDIA GPUs (not in this build)"; }
  Memory memory() const override { return Memory::device; }
  bool constant_time(const Algorithm&) const override { return true; }
  bool offers(const Algorithm&) const override { return false; }
  const std::string& unavailable_reason() const override { return reason_; }
  std::vector<std::string> devices() const override { return {}; }
  std::uint32_t tile_units() const override { return 256; }
  void run(const Plan&, std::span<Status>, Stream) override {
    throw Error(Status::engine_unavailable, "engine 'cuda' cannot run here: " + reason_);
  }

 private:
  const std::string reason_ = "built without CUDA: install a build with it, or use engine 'cpu'";
};

}  // namespace

Engine& listed_cuda_engine() {
  static constinit FirstUse<AbsentCudaEngine> engine;
  return engine.get();
}

}  // namespace warpcipher
