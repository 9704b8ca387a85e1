// SPDX-License-Identifier: Apache-2.0
// The plan of launches for a batch, printed.
#pragma once

#include <vector>

#include "engine/cuda/execution/launch_plan.hpp"
#include "engine/decision.hpp"

namespace warpcipher::cuda {

// DeviceEngine::explain(), for any device, which need not exist. Throws Error{invalid_argument} for a shape that no
// batch has, and what the choices throw.
std::vector<Decision> explain(const Conditions& now, const BatchShape& shape);

// The same of a plan.
std::vector<Decision> to_decisions(const Conditions& now, const LaunchPlan& plan);

}  // namespace warpcipher::cuda
