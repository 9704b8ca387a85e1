// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "engine/cuda/choice/tunable.hpp"
#include "engine/cuda/ghash/tensor.hpp"
#include "engine/cuda/ghash/warpgroup.hpp"
#include "engine/cuda/runtime/environment.hpp"

namespace warpcipher::cuda::ghash {
namespace {

// H200: of one message, 64 KiB take 42.6 us by tensor cores and 44.0 by the scalar kernel, everything counted. Of texts
// with a key each the kernel alone hashed 169 GB/s of 4 KiB and 574 of 16 KiB, the scalar one 301 and 418.
constexpr std::uint64_t least_blocks = 4096;
constexpr std::uint64_t least_blocks_of_key = 512;
constexpr std::size_t least_short_of_multiprocessor = 128;  // 512 lanes: enough for it to work while others wait
constexpr std::uint64_t least_blocks_of_warpgroups = std::uint64_t{1} << 22;  // 64 MiB

}  // namespace

GhashAlgorithm choose_ghash(const Device& device, const Work& work) {
  std::string_view forced = forced_value("WARPCIPHER_GHASH", {"lanes", "rows", "scalar", "tensor", "warpgroups"});
  if (forced == "warpgroups" && !has_warpgroup_products(device)) {
    throw Error(Status::engine_failure,
                std::string(device.name) + " cannot run GHASH by warpgroups: it needs compute capability 9.0");
  }
  const bool fits = has_tensor_ghash(device, work.keys);
  if ((forced == "tensor" || (forced == "rows" && work.keys == 1)) && !fits) {
    throw Error(Status::engine_failure,
                std::string(device.name) + " cannot run GHASH on tensor cores for " + std::to_string(work.keys) +
                    " keys: it needs compute capability 8.x or 9.x and " +
                    std::to_string(tensor_shared_len(work.keys)) + " bytes of shared memory a block");
  }
  const bool is_short = work.most_blocks <= most_blocks_of_short;
  const bool many_short = is_short && work.messages >= device.multiprocessors * least_short_of_multiprocessor;
  const bool pays = work.blocks >= least_blocks && (work.keys == 1 || work.blocks / work.keys >= least_blocks_of_key);
  const bool chosen_scalar = chosen_value(device, Tunable::ghash) == "scalar";
  const bool is_long = work.blocks >= least_blocks_of_warpgroups && has_warpgroup_products(device) && !chosen_scalar;
  if (work.keys == 1 && (forced == "warpgroups" || (forced.empty() && is_long && !many_short))) {
    return GhashAlgorithm::tensor_warpgroups;
  }
  if (forced == "warpgroups") forced = {};
  if (work.keys == 1 && is_short && fits && (forced == "rows" || (forced.empty() && many_short && !chosen_scalar))) {
    return GhashAlgorithm::tensor_rows;
  }
  if (forced == "rows") forced = {};
  if (forced == "lanes" || (forced.empty() && many_short)) return GhashAlgorithm::few_lanes;
  if (forced == "scalar" || !fits || (forced.empty() && (!pays || chosen_scalar))) return GhashAlgorithm::scalar;
  return work.keys == 1 ? GhashAlgorithm::tensor_one_key : GhashAlgorithm::tensor_many_keys;
}

}  // namespace warpcipher::cuda::ghash
