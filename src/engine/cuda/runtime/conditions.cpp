// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/runtime/conditions.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "core/error.hpp"

namespace warpcipher::cuda {
namespace {

constexpr std::size_t longest_shown = 32;  // of what the environment says and nobody understands

// Every choice, with its place.
template <class Overrides, class Visit>
void visit(Overrides& all, Visit&& visit) {
  visit(choices::tables, all.tables);
  visit(choices::ghash, all.ghash);
  visit(choices::counter, all.counter);
  visit(choices::text, all.text);
  visit(choices::poly1305, all.poly1305);
  visit(choices::columns, all.columns);
  visit(choices::copies, all.copies);
}

void add_to_list(std::string& list, std::string_view more) { list += (list.empty() ? "" : ", ") + std::string(more); }

[[noreturn]] void refuse(std::string_view given, const std::string& expected) {
  throw Error(Status::invalid_argument, "WARPCIPHER_FORCE: '" + std::string(given.substr(0, longest_shown)) +
                                            "' is unknown: expected " + expected);
}

// One "name=value".
void force(Overrides& all, const std::string& entry) {
  const std::size_t equals = std::min(entry.find('='), entry.size());
  const std::string value = entry.substr(std::min(equals + 1, entry.size()));
  bool is_known = false;
  std::string names;
  visit(all, [&](const Choice& choice, auto& forced) {
    add_to_list(names, choice.name);
    if (choice.name != entry.substr(0, equals)) return;
    is_known = true;
    const auto place = std::find(choice.values.begin(), choice.values.end(), value);
    if (place == choice.values.end()) {
      std::string values;
      for (const std::string_view each : choice.values) add_to_list(values, each);
      refuse(entry, std::string(choice.name) + "= and one of " + values);
    }
    forced = static_cast<std::remove_reference_t<decltype(forced)>>(place - choice.values.begin() + 1);
  });
  if (!is_known) refuse(entry, "name=value, with a name of " + names);
}

struct alignas(8) Known {
  Overrides overrides;
  bool is_read = false;
};

// Not a static variable with a guard (core/fork.hpp): several threads may read the environment at first, and read the
// same.
constinit std::atomic<Known> known{};
static_assert(decltype(known)::is_always_lock_free, "each launch reads it");

std::array<std::atomic<Tuned>, 64> tuned;
static_assert(std::atomic<Tuned>::is_always_lock_free, "each launch reads it");

}  // namespace

Overrides read_overrides() {
  Overrides found;
  const char* const variable = std::getenv("WARPCIPHER_FORCE");
  const std::string all = variable == nullptr ? "" : variable;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find(',', begin), all.size());
    force(found, all.substr(begin, end - begin));
    begin = end + 1;
  }
  return found;
}

Overrides overrides() {
  const Known now = known.load(std::memory_order_relaxed);
  if (now.is_read) return now.overrides;
  reread_overrides();
  return known.load(std::memory_order_relaxed).overrides;
}

void reread_overrides() { known.store({read_overrides(), true}, std::memory_order_relaxed); }

std::atomic<Tuned>* tuned_place(const Device& device) {
  const bool has_place = device.index >= 0 && static_cast<std::size_t>(device.index) < tuned.size();
  return has_place ? &tuned[static_cast<std::size_t>(device.index)] : nullptr;
}

}  // namespace warpcipher::cuda
