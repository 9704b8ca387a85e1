// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/ghash/tensor.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "engine/cuda/ghash/message_rows.cuh"
#include "engine/cuda/ghash/tensor.cuh"
#include "engine/cuda/ghash/warpgroup.hpp"
#include "engine/cuda/policies.hpp"

namespace warpcipher::cuda::ghash {
namespace {

// H200, kernel alone, text in device memory (a plain read runs at 4550 GB/s):
using OneKeyLong =
    TensorPolicy<16, 8, Sharing::one_key>;                // 130 KiB of shared memory: 3680 GB/s of 4 GiB, 3470 of 1 GiB
using OneKey = TensorPolicy<8, 8, Sharing::one_key>;      // 99 KiB, fits compute capability 8.6 and 8.9: 3510 and 3320
using ManyKeys = TensorPolicy<4, 8, Sharing::many_keys>;  // 26.5 KiB a warp: 212 KiB
constexpr std::uint32_t least_warps_of_many_keys = 6;     // 159 KiB, of compute capability 8.0
using Rows96 = MessageRowsPolicy<24, 4, 512>;  // 98 KiB: rows of 96 blocks without a product between segments
constexpr std::size_t rows_len = sizeof(MessageMatrices<Rows96::steps>);
static_assert(Matrices<16>::squares <= tensor_squares && MessageMatrices<Rows96::steps>::squares <= tensor_squares,
              "the table of powers is long enough for every policy");
static_assert(rows_len <= OneKey::shared_len, "a device that has one of the forms of one key has both");

// H200: of one message, 64 KiB take 42.6 us by tensor cores and 44.0 by the scalar kernel, everything counted. Of texts
// with a key each the kernel alone hashed 169 GB/s of 4 KiB and 574 of 16 KiB, the scalar one 301 and 418.
constexpr std::uint64_t least_blocks = 4096;
constexpr std::uint64_t least_blocks_of_key = 512;
constexpr std::size_t least_short_of_multiprocessor = 128;  // 512 lanes: enough for it to work while others wait
constexpr std::uint64_t least_blocks_for_long = std::uint64_t{1} << 22;  // 64 MiB: then twice the matrices pay

std::size_t needed_len(std::size_t keys) {
  return keys == 1 ? OneKey::shared_len : ManyKeys::shared_len_of(least_warps_of_many_keys);
}

bool can_run(const Device& device, std::size_t keys) {
  if (device.major != 8 && device.major != 9) return false;
  return device.shared_len >= needed_len(keys);
}

template <class Policy>
void launch_policy(const Device& device, Stream stream, const ChunkList& list, std::uint32_t warps = Policy::warps) {
  const std::uint64_t blocks = list.chunks < device.multiprocessors ? list.chunks : device.multiprocessors;
  const LaunchShape shape{static_cast<std::uint32_t>(blocks), warps * warp_len, Policy::shared_len_of(warps)};
  launch(&hash_chunks_by_matrix<Policy>, shape, stream, list);
}

}  // namespace

bool has_tensor_form(const Device& device) { return can_run(device, 1); }

Form choose_form(const Device& device, const Work& work) {
  std::string_view forced = forced_value("WARPCIPHER_GHASH", {"lanes", "rows", "scalar", "tensor", "warpgroups"});
  if (forced == "warpgroups" && !has_warpgroup_products(device)) {
    throw Error(Status::engine_failure,
                device.name + " cannot run GHASH by warpgroups: it needs compute capability 9.0");
  }
  const bool fits = can_run(device, work.keys);
  if ((forced == "tensor" || (forced == "rows" && work.keys == 1)) && !fits) {
    throw Error(Status::engine_failure, device.name + " cannot run GHASH on tensor cores for " +
                                            std::to_string(work.keys) +
                                            " keys: it needs compute capability 8.x or 9.x and " +
                                            std::to_string(needed_len(work.keys)) + " bytes of shared memory a block");
  }
  const bool is_short = work.most_blocks <= most_blocks_of_short;
  const bool many_short = is_short && work.messages >= device.multiprocessors * least_short_of_multiprocessor;
  const bool pays = work.blocks >= least_blocks && (work.keys == 1 || work.blocks / work.keys >= least_blocks_of_key);
  const bool chosen_scalar = chosen_value(device, Tunable::ghash) == "scalar";
  const bool is_long = work.blocks >= least_blocks_for_long && has_warpgroup_products(device) && !chosen_scalar;
  if (work.keys == 1 && (forced == "warpgroups" || (forced.empty() && is_long && !many_short))) {
    return Form::tensor_warpgroups;
  }
  if (forced == "warpgroups") forced = {};
  if (work.keys == 1 && is_short && fits && (forced == "rows" || (forced.empty() && many_short && !chosen_scalar))) {
    return Form::tensor_rows;
  }
  if (forced == "rows") forced = {};
  if (forced == "lanes" || (forced.empty() && many_short)) return Form::few_lanes;
  if (forced == "scalar" || !fits || (forced.empty() && (!pays || chosen_scalar))) return Form::scalar;
  return work.keys == 1 ? Form::tensor_one_key : Form::tensor_many_keys;
}

std::uint32_t tensor_warps(const Device& device, Form form) {
  return form == Form::tensor_warpgroups ? warpgroup_warps(device) : device.multiprocessors * OneKey::warps;
}

void hash_on_tensor_cores(const Device& device, Stream stream, Form form, const ChunkList& list) {
  if (form == Form::tensor_warpgroups) return hash_by_warpgroups(device, stream, list);
  if (form == Form::tensor_many_keys) {
    const std::size_t warps = device.shared_len / ManyKeys::shared_len_of(1);
    return launch_policy<ManyKeys>(device, stream, list,
                                   static_cast<std::uint32_t>(std::min<std::size_t>(warps, ManyKeys::warps)));
  }
  if (list.blocks >= least_blocks_for_long && device.shared_len >= OneKeyLong::shared_len)
    return launch_policy<OneKeyLong>(device, stream, list);
  launch_policy<OneKey>(device, stream, list);
}

void hash_rows(const Device& device, Stream stream, const ChunkList& list, std::uint32_t* verdicts) {
  constexpr std::uint64_t messages_of_block = std::uint64_t{messages_of_warp} * Rows96::warps;
  const std::uint64_t wanted = (list.messages + messages_of_block - 1) / messages_of_block;
  const std::uint64_t blocks = wanted < device.multiprocessors ? wanted : device.multiprocessors;
  launch(&hash_messages_by_matrix<Rows96>, {static_cast<std::uint32_t>(blocks), Rows96::threads, rows_len}, stream,
         list, verdicts);
}

}  // namespace warpcipher::cuda::ghash
