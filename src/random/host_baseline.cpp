// SPDX-License-Identifier: Apache-2.0
// Arrays in host memory, for what every processor has.
#include "random/host_code.hpp"

namespace warpcipher::random {

void fill_part_baseline(const HostFill& fill, const Lines& lines, std::uint64_t begin, std::uint64_t end) {
  visit(fill.distribution, PartFunction{fill, lines, begin, end});
}

}  // namespace warpcipher::random
