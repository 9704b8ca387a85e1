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
  throw Error(Status::invalid_argument, "WARPCIPHER_FORCE: '", given.substr(0, longest_shown),
              "' is unknown: expected ", expected);
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
