// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/lane_table/table_layout.hpp"

#include <string>

#include "core/error.hpp"
#include "engine/cuda/choice/tunable.hpp"
#include "engine/cuda/runtime/environment.hpp"

namespace warpcipher::cuda::lane_table {

TableLayout choose_table_layout(const Device& device) {
  std::string_view forced = forced_value("WARPCIPHER_LANE_TABLE", {"128", "64"});
  if (forced.empty()) forced = chosen_value(device, Tunable::lane_table);
  const bool fits = device.shared_len >= Tables128::shared_len;
  if (forced == "64" || (forced.empty() && !fits)) {
    if (device.shared_len >= Tables64::shared_len) return TableLayout::tables_64;
  } else if (fits) {
    return TableLayout::tables_128;
  }
  throw Error(Status::engine_failure, std::string(device.name) + " has " + std::to_string(device.shared_len) +
                                          " bytes of shared memory a block, too few for lane tables of " +
                                          std::string(forced.empty() ? "64" : forced) + " KiB");
}

}  // namespace warpcipher::cuda::lane_table
