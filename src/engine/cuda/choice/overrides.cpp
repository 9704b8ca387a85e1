// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/choice/overrides.hpp"

#include <algorithm>
#include <atomic>

#include "engine/cuda/runtime/environment.hpp"

namespace warpcipher::cuda {
namespace {

template <class Forced>
void read(const Variable& variable, Forced& forced) {
  const std::string_view value = forced_value(variable.name, variable.values);
  if (value.empty()) return;
  const auto place = std::find(variable.values.begin(), variable.values.end(), value);
  forced = static_cast<Forced>(place - variable.values.begin() + 1);
}

std::atomic<Overrides>& in_force() {
  static std::atomic<Overrides> now{read_overrides()};
  static_assert(decltype(now)::is_always_lock_free, "each launch reads it");
  return now;
}

}  // namespace

Overrides read_overrides() {
  Overrides found;
  read(variables::table_layout, found.table_layout);
  read(variables::ghash, found.ghash);
  read(variables::counter, found.counter);
  read(variables::text, found.text);
  read(variables::columns, found.columns);
  return found;
}

Overrides overrides() { return in_force().load(std::memory_order_relaxed); }

void reread_overrides() { in_force().store(read_overrides(), std::memory_order_relaxed); }

}  // namespace warpcipher::cuda
