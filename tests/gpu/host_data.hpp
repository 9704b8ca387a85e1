// SPDX-License-Identifier: Apache-2.0
// Host data through the CUDA engine, in pieces.
#pragma once

#include <string>

// Long messages from pageable, page-locked and registered host memory, in place and not, dealt to all devices, with
// pieces short enough that there are many; tags that do not match. Returns the number of failures. `quick`: few
// algorithms, short texts. `only`: one algorithm, or empty for all.
int test_host_data(bool quick, const std::string& only);
