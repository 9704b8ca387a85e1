// SPDX-License-Identifier: Apache-2.0
// In a library of its own (CMakeLists.txt): for the one compute capability that it was measured on.
#include "engine/cuda/lane_table/mixed_text.cuh"

#include "core/error.hpp"
#include "core/wipe.hpp"
#include "engine/cuda/lane_table/mixed.hpp"
#include "engine/cuda/lane_table/mixed_text.hpp"
#include "engine/cuda/policies.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

// 69 MB on H200. AES-128 at 67 MB, both kinds and tables alone: ECB 742 and 665, CBC 657 and 649, CFB 654 and 644 GB/s;
// at 34 MB ECB 602 and 612.
constexpr std::uint64_t least_tiles_of_multiprocessor = 128;

template <class Mode, class Source>
void launch_mixed(const Device& device, Stream stream, const Source& source,
                  const typename Mode::Parameters& parameters) {
  Secret<SlicedSource<Source>> sliced;
  static_cast<Source&>(*sliced) = source;
  for (std::uint32_t r = 1; r < source.rounds; ++r) {
    sliced->sliced[r - 1] = aes::slice_key(reinterpret_cast<const std::uint8_t*>(source.schedule + 4 * r));
  }
  launch(&mixed_text_kernel<Mode, Source>, LaunchShape{device.multiprocessors, block_threads, MixedShape::shared_len},
         stream, *sliced, parameters);
}

}  // namespace

bool choose_mixed_text(const Device& device, Form form, std::uint64_t tiles) {
  std::string_view forced = forced_value("WARPCIPHER_BLOCKS", {"mixed", "tiles"});
  if (!has_mixed(device) || form != Form::tables_128 || forced == "tiles") return false;
  if (forced == "mixed") return true;
  return chosen_value(device, Tunable::blocks) != "tiles" &&
         tiles >= least_tiles_of_multiprocessor * device.multiprocessors;
}

void run_mixed_text(const Device& device, Stream stream, Mode mode, bool inverse, const SingleSource& message,
                    const Block* chains) {
  switch (mode) {
    case Mode::ecb:
      return inverse ? launch_mixed<EcbDecryption>(device, stream, message, {})
                     : launch_mixed<EcbEncryption>(device, stream, message, {});
    case Mode::cbc:
      return launch_mixed<CbcDecryption>(device, stream, message, {chains});
    case Mode::cfb:
      return launch_mixed<CfbDecryption>(device, stream, message, {chains});
    default:
      throw Error(Status::engine_failure, "this mode has no kernel of two kinds of warps for a message");
  }
}

}  // namespace warpcipher::cuda::lane_table
