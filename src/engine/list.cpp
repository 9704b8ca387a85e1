// SPDX-License-Identifier: Apache-2.0
// The list of engines.
#include <array>
#include <string>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "engine/device_engine.hpp"
#include "engine/engine.hpp"

namespace warpcipher {
std::span<Engine* const> engines() {
  using List = std::array<Engine*, engine_count>;
  static constinit FirstUse<List> list;
  return list.get([] { return List{&cpu_engine(), &cuda_engine(), &reference_engine()}; });
}

Engine& find_engine(std::string_view name) {
  std::string known = "auto";
  for (Engine* engine : engines()) {
    if (engine->name() == name) {
      const std::string& reason = engine->unavailable_reason();
      if (!reason.empty()) {
        throw Error(Status::engine_unavailable, "engine '", name, "' cannot run here: ", reason);
      }
      return *engine;
    }
    known += ", " + std::string(engine->name());
  }
  throw Error(Status::engine_unavailable, "unknown engine '", name.substr(0, 64), "': expected one of ", known);
}

}  // namespace warpcipher
