// SPDX-License-Identifier: Apache-2.0
// Host data through the CUDA engine, in pieces.
#pragma once

#include <functional>
#include <string>

// Long messages from pageable, page-locked and registered host memory, in place and not, dealt to all devices, with
// many short pieces; tags that do not match. Returns the number of failures. `quick`: few
// algorithms, short texts. `only`: one algorithm, or empty for all. `is_mine`: whether this part of the tests takes the
// next step.
int test_host_data(bool quick, const std::string& only, const std::function<bool()>& is_mine);
