// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/chacha/choose.hpp"

#include <algorithm>

namespace warpcipher::cuda {
namespace {

// Four lanes a message: for fewer messages most of the GPU would be idle.
constexpr std::uint64_t least_packed = 128;  // for each multiprocessor
constexpr std::uint64_t most_packed_blocks = 64;
// A block of threads makes its matrices of each message, and waits for what a few of them leave it. H200, GB/s by
// chunks and by lanes, a key each: 1030 and 1130 of 65,536 messages of 64 KiB. Lanes are idle at the end unless each
// warp has had several messages.
constexpr std::uint64_t many_messages = 128;  // for each multiprocessor
constexpr std::uint64_t least_blocks_of_chunk = 768;
constexpr std::uint64_t few_chunks = 16;  // for each multiprocessor
constexpr std::uint64_t least_blocks_of_few_chunks = 256;

// A warp may have a message to itself. It is not the last if it has no more than others do.
constexpr std::uint64_t least_longest_by_lanes = 1024;
constexpr std::uint64_t warps_of_lanes = 20;  // of a multiprocessor

}  // namespace

Refusal refuse(const Conditions& now, const StreamWork& work, StreamKernel kernel) {
  if (kernel == StreamKernel::tiles) return {};
  if (now.overrides.counter == PickedCounter::packed) return {};
  if (now.overrides.counter == PickedCounter::tiles) return refuse_forced(choices::counter, now.overrides.counter);
  if (work.most_blocks > most_packed_blocks) return {Reason::long_messages, work.most_blocks, most_packed_blocks};
  const std::uint64_t least = least_packed * now.device.multiprocessors;
  return work.messages >= least ? Refusal{} : Refusal{Reason::few_messages, work.messages, least};
}

StreamKernel choose_stream(const Conditions& now, const StreamWork& work) {
  return first_accepted(stream_candidates, [&](StreamKernel kernel) { return refuse(now, work, kernel); });
}

Refusal refuse(const Conditions& now, const StreamWork& work, AeadKernel kernel) {
  if (kernel == AeadKernel::lanes) return {};
  if (now.overrides.poly1305 == PickedPoly1305::chunks) return {};
  if (now.overrides.poly1305 == PickedPoly1305::lanes) return refuse_forced(choices::poly1305, now.overrides.poly1305);
  if (work.most_blocks > longest_by_lanes(now, work)) return {};
  const std::uint64_t many = many_messages * now.device.multiprocessors;
  if (work.messages > many) return {Reason::many_messages, work.messages, many};
  const bool is_few = work.messages < few_chunks * now.device.multiprocessors;
  const std::uint64_t least = work.messages * (is_few ? least_blocks_of_few_chunks : least_blocks_of_chunk);
  return work.blocks >= least ? Refusal{} : Refusal{Reason::few_blocks, work.blocks, least};
}

std::uint64_t longest_by_lanes(const Conditions& now, const StreamWork& work) {
  return std::max(least_longest_by_lanes, work.blocks / (warps_of_lanes * now.device.multiprocessors));
}

AeadKernel choose_aead(const Conditions& now, const StreamWork& work) {
  return first_accepted(aead_candidates, [&](AeadKernel kernel) { return refuse(now, work, kernel); });
}

}  // namespace warpcipher::cuda
