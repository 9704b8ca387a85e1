// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/runtime/overrides.hpp"

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

struct alignas(8) Known {
  Overrides overrides;
  bool is_read = false;
};

// Not a static variable with a guard (core/fork.hpp): several threads may read the environment at first, and read the
// same.
constinit std::atomic<Known> known{};
static_assert(decltype(known)::is_always_lock_free, "each launch reads it");

}  // namespace

Overrides read_overrides() {
  Overrides found;
  read(variables::table_layout, found.table_layout);
  read(variables::ghash, found.ghash);
  read(variables::counter, found.counter);
  read(variables::text, found.text);
  read(variables::poly1305, found.poly1305);
  read(variables::columns, found.columns);
  return found;
}

Overrides overrides() {
  const Known now = known.load(std::memory_order_relaxed);
  if (now.is_read) return now.overrides;
  reread_overrides();
  return known.load(std::memory_order_relaxed).overrides;
}

void reread_overrides() { known.store({read_overrides(), true}, std::memory_order_relaxed); }

}  // namespace warpcipher::cuda
