// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/runtime/refusal.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "core/error.hpp"

namespace warpcipher::cuda {

std::string forced_text(const Choice& choice, std::string_view value) {
  return "WARPCIPHER_FORCE=" + std::string(choice.name) + "=" + std::string(value);
}

std::string to_text(const Refusal& refusal) {
  const std::string given = std::to_string(refusal.given);
  const std::string bound = std::to_string(refusal.bound);
  switch (refusal.reason) {
    case Reason::none: return {};
    case Reason::forced:
      return forced_text(*refusal.choice, refusal.choice->values[refusal.given - 1]) + " asks for another";
    case Reason::tuned: return "another was measured to be faster on this machine";
    case Reason::capability_9_0: return "needs compute capability 9.0";
    case Reason::tensor_cores: return "needs compute capability 8.x or 9.x";
    case Reason::one_multiprocessor: return "needs two multiprocessors";
    case Reason::shared_memory: return "needs " + bound + " bytes of shared memory a block, there are " + given;
    case Reason::tables_64: return "needs tables of 128 KiB";
    case Reason::mode: return "there is no such kernel for this mode";
    case Reason::batch: return "is for one message by itself in this mode";
    case Reason::many_keys: return "needs one key for all messages, known to the host";
    case Reason::one_key: return "is for more keys than one";
    case Reason::key_192: return "there is no such kernel for keys of 192 bits";
    case Reason::key_not_128: return "is for keys of 128 bits";
    case Reason::no_expansion: return "the kernel for this text makes no round keys";
    case Reason::derived_on_host: return "the host has made the round keys already";
    case Reason::empty: return "there is no text";
    case Reason::long_messages: return "takes messages of up to " + bound + " blocks, the longest has " + given;
    case Reason::uneven_messages: return "needs messages of one length";
    case Reason::partial_tiles: return "most of its tiles would be partly empty";
    case Reason::few_tiles: return "needs " + bound + " tiles of 256 blocks to pay, there are " + given;
    case Reason::few_warps: return "needs work for " + bound + " warps to pay, there is work for " + given;
    case Reason::few_messages: return "needs " + bound + " messages to pay, there are " + given;
    case Reason::many_messages: return "is for up to " + bound + " messages, there are " + given;
    case Reason::few_blocks: return "needs " + bound + " blocks to pay, there are " + given;
    case Reason::few_blocks_of_key: return "needs " + bound + " blocks a key to pay, there are " + given;
    case Reason::many_short:
      return "there are enough short messages (" + given + ") to hash each by few lanes or in a row";
    case Reason::sector_len: return "needs data units of 512 to 8191 bytes, these have " + given;
    case Reason::registers: return "longer keys need more registers than a thread of it has";
    case Reason::any_address:
      return "takes texts that are not aligned a part of a block at a time, and these fill tiles";
  }
  return {};
}

namespace {

constexpr std::size_t longest_shown = 32;  // of what the environment says and nobody understands

// Every choice, with its place.
template <class Picks, class Visit>
void visit(Picks& all, Visit&& visit) {
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
  throw Error(Status::invalid_argument, "WARPCIPHER_FORCE: '", given.substr(0, longest_shown),
              "' is unknown: expected ", expected);
}

// One "name=value".
void force(Picks& all, const std::string& entry) {
  const std::size_t equals = std::min(entry.find('='), entry.size());
  const std::string name = entry.substr(0, equals), value = entry.substr(std::min(equals + 1, entry.size()));
  std::string names, values;
  visit(all, [&](const Choice& choice, auto) {
    add_to_list(names, choice.name);
    if (choice.name != name) return;
    for (const std::string_view each : choice.values) add_to_list(values, each);
    if (std::ranges::find(choice.values, value) == choice.values.end()) {
      refuse(entry, name + "= and one of " + values);
    }
  });
  if (values.empty()) refuse(entry, "name=value, with a name of " + names);
  pick(all, name, value);
}

// Not a static variable with a guard (core/fork.hpp): several threads may read the environment at first, and read the
// same.
constinit std::atomic<Picks> known{};
constinit std::atomic<bool> is_known{false};
static_assert(decltype(known)::is_always_lock_free, "each launch reads it");

std::array<std::atomic<Picks>, 64> tuned;

}  // namespace

std::string_view picked(const Picks& all, const Choice& choice) {
  std::string_view found;
  visit(all, [&](const Choice& each, auto value) {
    if (each.name == choice.name) found = each.value_of(value);
  });
  return found;
}

void pick(Picks& all, std::string_view name, std::string_view value) {
  visit(all, [&]<class Picked>(const Choice& choice, Picked& place) {
    if (choice.name != name) return;
    const auto found = std::ranges::find(choice.values, value);
    if (value.empty()) place = Picked::none;
    if (found != choice.values.end()) place = static_cast<Picked>(found - choice.values.begin() + 1);
  });
}

Picks read_overrides() {
  Picks found;
  const char* const variable = std::getenv("WARPCIPHER_FORCE");
  const std::string all = variable == nullptr ? "" : variable;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find(',', begin), all.size());
    force(found, all.substr(begin, end - begin));
    begin = end + 1;
  }
  return found;
}

Picks overrides() {
  if (!is_known.load(std::memory_order_acquire)) reread_overrides();
  return known.load(std::memory_order_relaxed);
}

void reread_overrides() {
  known.store(read_overrides(), std::memory_order_relaxed);
  is_known.store(true, std::memory_order_release);
}

std::atomic<Picks>* tuned_place(const Device& device) {
  const bool has_place = device.index >= 0 && static_cast<std::size_t>(device.index) < tuned.size();
  return has_place ? &tuned[static_cast<std::size_t>(device.index)] : nullptr;
}

}  // namespace warpcipher::cuda
