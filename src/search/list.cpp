// SPDX-License-Identifier: Apache-2.0
// The list of searchers.
#include <array>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "search/searcher.hpp"

namespace warpcipher::search {

std::span<Searcher* const> searchers() {
  using List = std::array<Searcher*, 3>;
  static constinit FirstUse<List> list;
  return list.get([] { return List{&cuda_searcher(), &cpu_searcher(), &reference_searcher()}; });
}

Searcher& find_searcher(std::string_view name) {
  std::string known;
  for (Searcher* searcher : searchers()) {
    if (searcher->name() == name) {
      const std::string& reason = searcher->unavailable_reason();
      if (!reason.empty()) {
        throw Error(Status::engine_unavailable, "searcher '", name, "' cannot run here: ", reason);
      }
      return *searcher;
    }
    known += (known.empty() ? "" : ", ") + std::string(searcher->name());
  }
  throw Error(Status::engine_unavailable, "unknown searcher '", name.substr(0, 64), "': expected one of ", known);
}

}  // namespace warpcipher::search
