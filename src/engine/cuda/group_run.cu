// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/group_run.hpp"

#include "engine/cuda/chains.hpp"

namespace warpcipher::cuda {

bool chains_blocks(const Algorithm& algorithm, Direction direction) {
  const Mode mode = algorithm.mode.id;
  return direction == Direction::decrypt && (mode == Mode::cbc || mode == Mode::cfb || mode == Mode::cfb8);
}

bool needs_chains(const GroupRun& run) {
  if (!chains_blocks(*run.group.algorithm, run.group.direction)) return false;
  for (std::size_t i = 0; i < run.group.messages.size(); ++i) {
    if (run.message(i).in == run.message(i).out) return true;
  }
  return false;
}

}  // namespace warpcipher::cuda
