// SPDX-License-Identifier: Apache-2.0
// The list of engines.
#include <array>
#include <string>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "engine/engine.hpp"

namespace warpcipher {
std::span<Engine* const> engines() {
  using List = std::array<Engine*, engine_count>;
  static constinit FirstUse<List> list;
  return list.get([] { return List{&cpu_engine(), &listed_cuda_engine(), &reference_engine()}; });
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

Way find_way(std::string_view engine, Memory memory) {
  if (memory == Memory::device) {
    if (engine == "auto" || engine == "cuda") return Way::device;
    refuse("engine is '", engine.substr(0, 64), "': expected auto or cuda, for arrays in device memory");
  }
  if (engine == "auto" || engine == "cpu") return Way::threads;
  if (engine == "reference") return Way::definition;
  refuse("engine is '", engine.substr(0, 64), "': expected auto, cpu or reference, for arrays in host memory");
}

}  // namespace warpcipher
