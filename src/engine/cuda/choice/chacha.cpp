// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/choice/chacha.hpp"

namespace warpcipher::cuda {
namespace {

// Four lanes a message: for fewer messages most of the GPU would be idle.
constexpr std::uint64_t least_packed = 128;  // for each multiprocessor
constexpr std::uint64_t most_packed_blocks = 64;
// Four lanes hash a message: a longer one would be the last.
constexpr std::uint64_t most_blocks_by_lanes = 1024;
// A lane a message: 12 warps hide a block's latency of about 2500 clocks, in which each has the pipe of logic for 380.
// Predicted, not measured.
constexpr std::uint64_t least_whole = 384;  // for each multiprocessor
// H200: a batch of 64 KiB messages made 1019 GB/s by chunks.
constexpr std::uint64_t most_mean_blocks_whole = 512;
// A block of threads makes its matrices of each message. H200: a message by chunks took 16 ns and 64 KiB more 55, text
// and tag by lanes a GB 1.4 ms: lanes are predicted to be faster below 512 blocks, or below 256 where there are few
// messages and a lane hashes a block in 75 ns.
constexpr std::uint64_t few_chunks = 16;  // for each multiprocessor
constexpr std::uint64_t least_blocks_of_few_chunks = 256;
constexpr std::uint64_t least_blocks_of_chunk = 512;

Refusal forced(const Variable& variable) { return {Reason::forced, 0, 0, variable.name}; }

Refusal refuse_whole(const Conditions& now, const StreamWork& work) {
  // The messages that fill as many lanes as the batch does on average, if the longest begin first.
  const std::uint64_t lanes = work.most_blocks == 0 ? work.messages : work.blocks / work.most_blocks;
  const std::uint64_t least = least_whole * now.device.multiprocessors;
  if (lanes < least) return {Reason::few_messages, lanes, least};
  const std::uint64_t mean = work.blocks / work.messages;
  return mean <= most_mean_blocks_whole ? Refusal{} : Refusal{Reason::long_messages, mean, most_mean_blocks_whole};
}

Refusal refuse_chunks(const Conditions& now, const StreamWork& work) {
  if (work.most_blocks > most_blocks_by_lanes) return {};
  const bool is_few = work.messages < few_chunks * now.device.multiprocessors;
  const std::uint64_t least = work.messages * (is_few ? least_blocks_of_few_chunks : least_blocks_of_chunk);
  return work.blocks >= least ? Refusal{} : Refusal{Reason::few_blocks, work.blocks, least};
}

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
  constexpr ForcedPoly1305 names[] = {ForcedPoly1305::whole, ForcedPoly1305::chunks, ForcedPoly1305::lanes};
  const ForcedPoly1305 wanted = now.overrides.poly1305;
  if (kernel == AeadKernel::lanes) return {};
  if (wanted != ForcedPoly1305::none) {
    return wanted == names[static_cast<std::size_t>(kernel)] ? Refusal{} : forced(variables::poly1305);
  }
  return kernel == AeadKernel::whole ? refuse_whole(now, work) : refuse_chunks(now, work);
}

AeadKernel choose_aead(const Conditions& now, const StreamWork& work) {
  return first_accepted(aead_candidates, [&](AeadKernel kernel) { return refuse(now, work, kernel); });
}

}  // namespace warpcipher::cuda
