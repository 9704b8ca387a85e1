// SPDX-License-Identifier: Apache-2.0
#include "pipeline/select.hpp"

#include <cstdlib>
#include <string>

#include "core/error.hpp"
#include "pipeline/self_test.hpp"

namespace warpcipher {
namespace {

// Host data on a GPU pays two copies over the link. AES with CPU instructions beats the link, so it stays on the CPU;
// bitsliced triple DES on a CPU is slower than the link once the copies are long enough to hide their latency. A first
// rule by algorithm and size: measured rates replace it when the tuner knows them.
constexpr std::size_t des_bytes_worth_a_copy = std::size_t{4} << 20;

bool better_on_device(std::span<const Message> messages) {
  std::size_t bytes = 0;
  for (const Message& message : messages) {
    if (is_aes(message.algorithm().cipher.id) || !message.algorithm().parallel(message.direction)) return false;
    bytes += message.in_len;
  }
  return bytes >= des_bytes_worth_a_copy;
}

bool is_usable(std::string_view name) {
  for (const Engine* engine : engines()) {
    if (engine->name() == name) return engine->unavailable_reason().empty();
  }
  return false;
}

Engine& choose_engine(std::span<const Message> messages) {
  if (messages.empty()) return find_engine("cpu");
  if (messages[0].memory == Memory::device) return find_engine("cuda");
  return find_engine(better_on_device(messages) && is_usable("cuda") ? "cuda" : "cpu");
}

}  // namespace

Engine& select_engine(std::string_view name, std::span<const Message> messages) {
  if (name.empty() || name == "auto") {
    const char* forced = std::getenv("WARPCIPHER_ENGINE");
    name = forced != nullptr && *forced != '\0' ? forced : "auto";
  }
  Engine& engine = name == "auto" ? choose_engine(messages) : find_engine(name);
  if (!messages.empty() && messages[0].memory == Memory::device && engine.memory() == Memory::host) {
    throw Error(Status::invalid_argument, "engine '" + std::string(engine.name()) +
                                              "' runs on host memory and the data lies on a GPU: copy it to the host, "
                                              "or use engine 'cuda'");
  }
  require_self_test(engine);
  return engine;
}

}  // namespace warpcipher
