// SPDX-License-Identifier: Apache-2.0
#include "search/searcher.hpp"

#include <cuda_runtime_api.h>

#include <bit>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "search/cuda/searches.hpp"

namespace warpcipher::search {

namespace cuda {
namespace {

using warpcipher::cuda::Device;
using warpcipher::cuda::DeviceScope;

// Compiling a kernel for the template takes a second the first time; with three passes, two or three seconds. The
// kernel of the library tests this many keys in a fraction of that time.
constexpr double least_log2_size = 34;
constexpr double least_log2_passes = 36;
constexpr std::uint64_t least_count = std::uint64_t{1} << 24;

// If the block is known in part, the AES kernel of the library computes every key in full. From this number of keys on,
// a kernel for the template is faster, if there is one.
constexpr std::uint32_t least_log2_masked = 20;

// Calls of the driver API need a current context. The runtime makes one current when a thread first needs it.
void bind_context() { cudaFree(nullptr); }

class CudaTask final : public SearchTask {
 public:
  CudaTask(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test, const Device& device)
      : device_(device) {
    const DeviceScope scope(device.index);
    bind_context();
    const bool aes = is_aes(space->cipher());
    const bool masked = aes && test->first_bits() != 128;
    const bool large = space->log2_size() >= (masked ? least_log2_masked : least_log2_size);
    UnitLoops loops;
    if (masked) loops.log2_many = least_log2_masked;
    if (!aes) {
      units_ = make_generic_des(space, test, des_units_of(device.multiprocessors));
    } else if (large && suits_fast_aes(*space, *test, loops)) {
      units_ = make_fast_aes_search(space, test, device.multiprocessors, loops, choose_aes_policy(device));
    } else {
      units_ = make_aes_search(space, test, device.multiprocessors);
    }
    const DesShape shape;
    passes_ = aes ? 0 : DesSearch::passes(*space, *test, shape);
    if (passes_ > 0 && space->log2_size() >= (passes_ > 1 ? least_log2_passes : least_log2_size)) {
      fast_.emplace(std::move(space), std::move(test), shape, des_policies(device));
    }
  }

  ~CudaTask() override {
    const DeviceScope scope(device_.index);
    bind_context();
    fast_.reset();
    units_.reset();
  }

  std::uint64_t preferred_count() const override {
    const int log2 = (!fast_        ? 27
                      : passes_ > 1 ? 28
                                    : 30) +
                     static_cast<int>(std::bit_width(device_.multiprocessors)) - 1;
    return std::uint64_t{1} << log2;
  }

  std::uint64_t run(const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits,
                    const std::atomic<bool>& cancel) override {
    const DeviceScope scope(device_.index);
    bind_context();
    return fast_ && count >= least_count ? fast_->run(first, count, hits, cancel)
                                         : units_->search(first, count, hits, cancel);
  }

 private:
  const Device device_;
  std::unique_ptr<UnitSearch> units_;  // AES, and all searches that fast_ cannot run
  std::optional<DesSearch> fast_;
  std::size_t passes_ = 0;  // of it
};

class CudaSearcher final : public Searcher {
 public:
  std::string_view name() const override { return "cuda"; }
  std::string_view description() const override { return "NVIDIA GPUs"; }
  const std::string& unavailable_reason() const override { return warpcipher::cuda::devices().unavailable_reason; }

  std::vector<std::string> devices() const override {
    std::vector<std::string> names;
    for (const Device& device : warpcipher::cuda::devices().list) names.push_back(device.name);
    return names;
  }

  std::unique_ptr<SearchTask> prepare(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test,
                                      std::size_t device) override {
    const auto& list = warpcipher::cuda::devices().list;
    if (device >= list.size()) {
      throw Error(Status::engine_unavailable, "searcher 'cuda' has ", list.size(), " devices, the one asked for is ",
                  device);
    }
    return std::make_unique<CudaTask>(std::move(space), std::move(test), list[device]);
  }
};

}  // namespace
}  // namespace cuda

Searcher& cuda_searcher() {
  static constinit FirstUse<cuda::CudaSearcher> searcher;
  return searcher.get();
}

}  // namespace warpcipher::search
