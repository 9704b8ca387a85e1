// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/lane_table/form.hpp"

#include <cstdlib>
#include <string>

#include "core/error.hpp"
#include "engine/cuda/policies.hpp"

namespace warpcipher::cuda::lane_table {

Form choose_form(const Device& device) {
  const char* variable = std::getenv("WARPCIPHER_LANE_TABLE");
  const std::string_view chosen = chosen_value(device, Tunable::lane_table);
  const std::string forced(variable == nullptr || *variable == '\0' ? chosen : variable);
  if (!forced.empty() && forced != "128" && forced != "64") {
    throw Error(Status::invalid_argument,
                "WARPCIPHER_LANE_TABLE is '" + forced.substr(0, 16) + "': expected 128, 64 or nothing");
  }
  const bool fits = device.shared_len >= Tables128::shared_len;
  if (forced == "64" || (forced.empty() && !fits)) {
    if (device.shared_len >= Tables64::shared_len) return Form::tables_64;
  } else if (fits) {
    return Form::tables_128;
  }
  throw Error(Status::engine_failure, device.name + " has " + std::to_string(device.shared_len) +
                                          " bytes of shared memory a block, too few for lane tables of " +
                                          (forced.empty() ? "64" : forced) + " KiB");
}

}  // namespace warpcipher::cuda::lane_table
