// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/choice/chacha.hpp"

namespace warpcipher::cuda {
namespace {

// Four lanes a message: for fewer messages most of the GPU would be idle.
constexpr std::uint64_t least_packed = 128;  // for each multiprocessor
constexpr std::uint64_t most_packed_blocks = 64;
// Four lanes hash a message: a longer one would be the last.
constexpr std::uint64_t most_blocks_by_lanes = 1024;
// A block of threads makes its matrices of each message. H200, many messages, GB/s by chunks and by lanes: 1030 and 929
// of 64 KiB, 523 and 860 of 16 KiB, 256 and 720 of 4 KiB; they are equal near 47 KiB. Few messages leave most
// lanes without work: four of them hash one of 16 KiB in about 20 us.
constexpr std::uint64_t least_blocks_of_chunk = 768;
constexpr std::uint64_t few_chunks = 16;  // for each multiprocessor
constexpr std::uint64_t least_blocks_of_few_chunks = 256;

Refusal forced(const Variable& variable) { return {Reason::forced, 0, 0, variable.name}; }

}  // namespace

Refusal refuse(const Conditions& now, const StreamWork& work, StreamKernel kernel) {
  if (kernel == StreamKernel::tiles) return {};
  if (now.overrides.counter == ForcedCounter::packed) return {};
  if (now.overrides.counter == ForcedCounter::tiles) return forced(variables::counter);
  if (work.most_blocks > most_packed_blocks) return {Reason::long_messages, work.most_blocks, most_packed_blocks};
  const std::uint64_t least = least_packed * now.device.multiprocessors;
  return work.messages >= least ? Refusal{} : Refusal{Reason::few_messages, work.messages, least};
}

StreamKernel choose_stream(const Conditions& now, const StreamWork& work) {
  return first_accepted(stream_candidates, [&](StreamKernel kernel) { return refuse(now, work, kernel); });
}

Refusal refuse(const Conditions& now, const StreamWork& work, AeadKernel kernel) {
  if (kernel == AeadKernel::lanes) return {};
  if (now.overrides.poly1305 == ForcedPoly1305::chunks) return {};
  if (now.overrides.poly1305 == ForcedPoly1305::lanes) return forced(variables::poly1305);
  if (work.most_blocks > most_blocks_by_lanes) return {};
  const bool is_few = work.messages < few_chunks * now.device.multiprocessors;
  const std::uint64_t least = work.messages * (is_few ? least_blocks_of_few_chunks : least_blocks_of_chunk);
  return work.blocks >= least ? Refusal{} : Refusal{Reason::few_blocks, work.blocks, least};
}

AeadKernel choose_aead(const Conditions& now, const StreamWork& work) {
  return first_accepted(aead_candidates, [&](AeadKernel kernel) { return refuse(now, work, kernel); });
}

}  // namespace warpcipher::cuda
