// SPDX-License-Identifier: Apache-2.0
// The CUDA searcher of a build without CUDA: listed, so that an error can say why it cannot run.
#include "core/error.hpp"
#include "core/fork.hpp"
#include "search/searcher.hpp"

namespace warpcipher::search {
namespace {

class AbsentCudaSearcher final : public Searcher {
 public:
  std::string_view name() const override { return "cuda"; }
  std::string_view description() const override { return "NVIDIA GPUs (not in this build)"; }
  const std::string& unavailable_reason() const override { return reason_; }
  std::vector<std::string> devices() const override { return {}; }
  std::unique_ptr<SearchTask> prepare(std::shared_ptr<const KeySpace>, std::shared_ptr<const KeyTest>,
                                      std::size_t) override {
    throw Error(Status::engine_unavailable, "searcher 'cuda' cannot run here: " + reason_);
  }

 private:
  const std::string reason_ = "built without CUDA: install a build with it, or use another searcher";
};

}  // namespace

Searcher& cuda_searcher() {
  static constinit FirstUse<AbsentCudaSearcher> searcher;
  return searcher.get();
}

}  // namespace warpcipher::search
