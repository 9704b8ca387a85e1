// SPDX-License-Identifier: Apache-2.0
// Measurements of this machine: the best policies of kernels and of host transfers, and the rates that `auto` decides
// by. They are kept in the user's cache folder and hold while GPUs, driver, processor and library stay the same.
// Without them shipped defaults and a rule of thumb hold. They never change a result.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tuning/rates.hpp"

namespace warpcipher {

// The best value of a policy.
struct PolicyChoice {
  int device;  // as the engine numbers it; of_transfer: for all devices
  std::string name;
  std::string value;
  double rate;             // bytes a second with this value
  double rate_of_default;  // and with the default

  static constexpr int of_transfer = -1;
};

struct Tuning {
  std::string origin = "shipped defaults and a rule of thumb: nothing was measured here, `warpcipher tune` does";
  std::string warning;  // why a cache was not taken; empty when all is well
  std::vector<PolicyChoice> choices;
  std::optional<RateTable> rates;
};

// The tuning in use. The first call in the process reads the cache and uses it. A cache that cannot be read or is
// damaged throws nothing: the defaults hold, and `warning` says why.
std::shared_ptr<const Tuning> current_tuning();

// Replaces the tuning in use. Ignores choices of unknown devices, policies or values.
void use_tuning(Tuning tuning);

// --- the cache ---

// The scope of the measurements: the version of the library, processor, GPUs, the number of GPUs that host data
// are dealt to, driver. Starts the driver. Throws Error{invalid_argument} when the user's choice of GPUs cannot be
// read.
std::string describe_machine();

// The file for this machine, in $XDG_CACHE_HOME/warpcipher or ~/.cache/warpcipher; empty when there is no home.
std::string tuning_path(std::string_view machine);

// Lines of text, the last a checksum.
std::string to_text(const Tuning& tuning, std::string_view machine);

// Throws Error{invalid_argument} that names the fault of a text that to_text() did not write, or not for
// `machine`.
Tuning parse_tuning(std::string_view text, std::string_view machine);

// Writes the file, whole or not at all, and returns its path. Throws Error{engine_failure} that says why not.
std::string save_tuning(const Tuning& tuning);

// Removes the file of this machine; false when there was none. The defaults hold from now on.
bool forget_tuning();

}  // namespace warpcipher
