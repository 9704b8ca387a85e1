// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/ghash/choose.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace warpcipher::cuda {
namespace {

using ghash::Work;

// H200: one message of 64 KiB takes 42.6 us with tensor cores and 44.0 us with the scalar kernel, in total. For texts
// with a key each, the tensor kernel hashed 169 GB/s at 4 KiB and 574 GB/s at 16 KiB, the scalar kernel 301 and
// 418 GB/s.
constexpr std::uint64_t least_blocks = 4096;
constexpr std::uint64_t least_blocks_of_key = 512;
constexpr std::size_t least_short = 128;  // for each multiprocessor: 512 lanes, enough to hide latencies
constexpr std::size_t least_rows = 32;    // likewise: four warps
constexpr std::uint64_t least_blocks_of_warpgroups = std::uint64_t{1} << 22;  // 64 MiB

Refusal forced(const Conditions& now) { return refuse_forced(choices::ghash, now.overrides.ghash); }

Refusal refuse_long(const Work& work, std::uint64_t most) {
  return work.most_blocks <= most ? Refusal{} : Refusal{Reason::long_messages, work.most_blocks, most};
}

Refusal refuse_few(const Conditions& now, const Work& work, std::size_t least_of_each) {
  const std::uint64_t least = now.device.multiprocessors * least_of_each;
  return work.messages >= least ? Refusal{} : Refusal{Reason::few_messages, work.messages, least};
}

// Many short messages of one key, each a row.
Refusal refuse_few_rows(const Conditions& now, const Work& work) {
  if (const Refusal length = refuse_long(work, ghash::most_blocks_of_rows)) return length;
  return refuse_few(now, work, least_rows);
}

Refusal refuse_tensor_device(const Device& device, const Work& work) {
  if (device.major != 8 && device.major != 9) return {Reason::tensor_cores};
  const std::size_t needed = ghash::tensor_shared_len(work.keys);
  return device.shared_len >= needed ? Refusal{} : Refusal{Reason::shared_memory, device.shared_len, needed};
}

bool is_tuned_to_scalar(const Conditions& now) { return now.tuned.ghash == PickedGhash::scalar; }

Refusal refuse_warpgroups(const Conditions& now, const Work& work) {
  if (work.keys != 1) return {Reason::many_keys};
  if (now.overrides.ghash == PickedGhash::warpgroups) return {};
  if (now.overrides.ghash != PickedGhash::none) return forced(now);
  if (now.device.major != 9 || now.device.minor != 0) return {Reason::capability_9_0};
  if (!ghash::has_warpgroup_products(now.device)) {
    return {Reason::shared_memory, now.device.shared_len, ghash::warpgroup_shared_len};
  }
  if (work.blocks < least_blocks_of_warpgroups) return {Reason::few_blocks, work.blocks, least_blocks_of_warpgroups};
  if (is_tuned_to_scalar(now)) return {Reason::tuned};
  return refuse_few_rows(now, work) ? Refusal{} : Refusal{Reason::many_short, work.messages};
}

// `wanted`: the forced one, if it has a kernel for this work.
Refusal refuse_rows(const Conditions& now, const Work& work, PickedGhash wanted) {
  if (work.keys != 1) return {Reason::many_keys};
  if (wanted != PickedGhash::none && wanted != PickedGhash::rows) return forced(now);
  if (const Refusal device = refuse_tensor_device(now.device, work)) return device;
  if (const Refusal length = refuse_long(work, ghash::most_blocks_of_rows)) return length;
  if (wanted == PickedGhash::rows) return {};
  if (is_tuned_to_scalar(now)) return {Reason::tuned};
  return refuse_few(now, work, least_rows);
}

Refusal refuse_few_lanes(const Conditions& now, const Work& work, PickedGhash wanted) {
  if (wanted != PickedGhash::none) return wanted == PickedGhash::lanes ? Refusal{} : forced(now);
  if (const Refusal length = refuse_long(work, ghash::most_blocks_of_short)) return length;
  return refuse_few(now, work, least_short);
}

Refusal refuse_chunks_on_tensor_cores(const Conditions& now, const Work& work, PickedGhash wanted) {
  if (wanted == PickedGhash::scalar || wanted == PickedGhash::lanes) return forced(now);
  if (const Refusal device = refuse_tensor_device(now.device, work)) return device;
  if (wanted == PickedGhash::tensor) return {};
  if (is_tuned_to_scalar(now)) return {Reason::tuned};
  if (work.blocks < least_blocks) return {Reason::few_blocks, work.blocks, least_blocks};
  if (work.keys != 1 && work.blocks / work.keys < least_blocks_of_key) {
    return {Reason::few_blocks_of_key, work.blocks / work.keys, least_blocks_of_key};
  }
  return {};
}

// Throws if the device cannot run the forced one.
void check_forced(const Conditions& now, const Work& work) {
  const PickedGhash forced = now.overrides.ghash;
  if (forced == PickedGhash::warpgroups && !ghash::has_warpgroup_products(now.device)) {
    throw Error(Status::engine_failure, now.device.name,
                " cannot run GHASH by warpgroups: it needs compute capability 9.0");
  }
  const bool needs_tensor_cores = forced == PickedGhash::tensor || (forced == PickedGhash::rows && work.keys == 1);
  if (needs_tensor_cores && !ghash::has_tensor_ghash(now.device, work.keys)) {
    throw Error(Status::engine_failure, now.device.name, " cannot run GHASH on tensor cores for ", work.keys,
                " keys: it needs compute capability 8.x or 9.x and ", ghash::tensor_shared_len(work.keys),
                " bytes of shared memory a block");
  }
}

}  // namespace

Refusal refuse(const Conditions& now, const Work& work, GhashAlgorithm algorithm) {
  PickedGhash wanted = now.overrides.ghash;
  if (algorithm == GhashAlgorithm::tensor_warpgroups) return refuse_warpgroups(now, work);
  if (wanted == PickedGhash::warpgroups) wanted = PickedGhash::none;
  if (algorithm == GhashAlgorithm::tensor_rows) return refuse_rows(now, work, wanted);
  if (wanted == PickedGhash::rows) wanted = PickedGhash::none;
  switch (algorithm) {
    case GhashAlgorithm::few_lanes: return refuse_few_lanes(now, work, wanted);
    case GhashAlgorithm::tensor_one_key:
      return work.keys == 1 ? refuse_chunks_on_tensor_cores(now, work, wanted) : Refusal{Reason::many_keys};
    case GhashAlgorithm::tensor_many_keys:
      return work.keys != 1 ? refuse_chunks_on_tensor_cores(now, work, wanted) : Refusal{Reason::one_key};
    default: return {};
  }
}

std::uint64_t least_chunked(const Conditions& now, std::uint64_t messages, std::uint64_t keys) {
  const bool suits = messages >= now.device.multiprocessors * least_rows && keys == 1 &&
                     now.overrides.ghash == PickedGhash::none && !is_tuned_to_scalar(now) &&
                     !refuse_tensor_device(now.device, {messages, keys, 0, 0});
  return suits ? ghash::most_blocks_of_rows + 1 : 0;
}

GhashAlgorithm choose_ghash(const Conditions& now, const Work& work) {
  check_forced(now, work);
  return first_accepted(ghash_candidates, [&](GhashAlgorithm candidate) { return refuse(now, work, candidate); });
}

namespace ghash {

std::uint64_t even_chunk(const Turns& turns, std::uint64_t blocks, std::uint64_t messages) {
  constexpr std::uint64_t most_cuts = 64;  // of a message; with more, the last turn is short
  const auto divided = [](std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; };
  const auto chunk_of = [&](std::uint64_t len, std::uint64_t parts) {
    return std::max(turns.least, divided(divided(len, parts), turns.multiple) * turns.multiple);
  };
  const std::uint64_t of_one_text = chunk_of(blocks, turns.workers * turns.wanted);
  if (turns.workers * turns.wanted > messages * most_cuts / 2) return of_one_text;
  const std::uint64_t of_message = divided(blocks, messages);
  std::uint64_t best = 0, least_time = UINT64_MAX;
  for (std::uint64_t cuts = 1; cuts <= most_cuts; ++cuts) {
    std::uint64_t chunk = chunk_of(of_message, cuts);
    if (cuts == 1) chunk = std::max(chunk, of_one_text);  // so that messages of more than the mean are whole, too
    if (chunk < of_one_text / 8) break;                   // most of the text may be one message's
    const std::uint64_t rounds = divided(messages * divided(of_message, chunk), turns.workers);
    const std::uint64_t time = rounds * (std::min(chunk, of_message) + turns.start);
    if (time >= least_time) continue;
    least_time = time;
    best = chunk;
  }
  return best;
}

}  // namespace ghash

}  // namespace warpcipher::cuda
