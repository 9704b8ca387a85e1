// SPDX-License-Identifier: Apache-2.0
#include "dispatch/select.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/error.hpp"
#include "dispatch/self_test.hpp"
#include "engine/device_engine.hpp"
#include "tuning/tuning.hpp"

namespace warpcipher {
namespace {

// The choice before the tuner has measured. Bitsliced triple DES on a CPU is slower than a link, once the copies are
// long enough to hide their latency.
constexpr std::size_t des_bytes_worth_a_copy = std::size_t{4} << 20;

Choice choose_unmeasured(std::span<const JobPart> job) {
  std::size_t bytes = 0;
  for (const JobPart& part : job) {
    if (!is_des(part.algorithm->cipher.id) || !part.algorithm->parallel(part.direction)) return {};
    bytes += part.bytes;
  }
  return {bytes >= des_bytes_worth_a_copy ? Where::device : Where::cpu};
}

std::size_t total_len(std::span<const Message> messages) {
  std::size_t bytes = 0;
  for (const Message& m : messages) bytes += m.in_len;
  return bytes;
}

Engine* usable(std::string_view name) {
  for (Engine* engine : engines()) {
    if (engine->name() == name && engine->unavailable_reason().empty()) return engine;
  }
  return nullptr;
}

// Whether most of the text lies in page-locked memory, estimated from a sample of the messages.
bool is_pinned(const DeviceEngine& engine, std::span<const Message> messages) {
  constexpr std::size_t samples = 4;
  std::size_t pinned = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    const Message& m = messages[i * messages.size() / samples];
    pinned += engine.is_pinned(m.in, m.in_len) && engine.is_pinned(m.out, m.output_len()) ? 1 : 0;
  }
  return 2 * pinned > samples;
}

bool offers_all(const Engine& engine, std::span<const JobPart> job) {
  return std::all_of(job.begin(), job.end(), [&](const JobPart& part) { return engine.offers(*part.algorithm); });
}

bool is_constant_in_time(const Engine& engine, std::span<const JobPart> job) {
  return std::all_of(job.begin(), job.end(),
                     [&](const JobPart& part) { return engine.constant_time(*part.algorithm); });
}

// The name that the call gave, or the one with which the environment overrides "auto".
std::string_view name_or_override(std::string_view name) {
  if (!name.empty() && name != "auto") return name;
  const char* const forced = std::getenv("WARPCIPHER_ENGINE");
  return forced != nullptr && *forced != '\0' ? forced : "auto";
}

// The engine of that name. If the name came from the environment, the error says so.
Engine& find_named(std::string_view name, bool by_environment) {
  if (!by_environment) return find_engine(name);
  try {
    return find_engine(name);
  } catch (const Error& error) {
    throw Error(error.status(), joined("WARPCIPHER_ENGINE: ", error.what()));
  }
}

Selection choose_engines(std::span<const Message> messages) {
  if (messages.empty()) return {&find_engine("cpu")};
  if (messages[0].memory == Memory::device) return {&find_engine("cuda")};
  if (total_len(messages) < least_device_len) return {&find_engine("cpu")};
  const std::vector<JobPart> job = describe(messages);
  const std::shared_ptr<const Tuning> tuning = current_tuning();
  const RateTable* const rates = tuning->rates ? &*tuning->rates : nullptr;
  // The driver is asked only when a device could be faster: starting the driver takes longer than most work.
  const Choice pageable = choose_where(job, false, rates);
  const Choice pinned = choose_where(job, true, rates);
  if (pageable.where == Where::cpu && pinned.where == Where::cpu) return {&find_engine("cpu")};
  Engine* const found = usable("cuda");
  if (found == nullptr || !offers_all(*found, job) || !is_constant_in_time(*found, job)) {
    return {&find_engine("cpu")};
  }
  Engine* const cpu = usable("cpu");
  if (cpu == nullptr) return {found};
  const bool same = pageable.where == Where::device && pinned.where == Where::device;
  const Choice& choice = !same && is_pinned(static_cast<const DeviceEngine&>(*found), messages) ? pinned : pageable;
  if (choice.where == Where::cpu) return {cpu};
  if (choice.where == Where::device || !is_constant_in_time(*cpu, job)) return {found};
  return {found, cpu, choice.cpu_share};
}

}  // namespace

Choice choose_where(std::span<const JobPart> job, bool pinned, const RateTable* rates) {
  if (rates == nullptr) return choose_unmeasured(job);
  const double cpu = seconds_of(job, *rates, [](const Rates& r) -> const Cost& { return r.cpu; });
  const double device = seconds_of(job, *rates, [&](const Rates& r) -> const Cost& { return r.device(pinned); });
  if (cpu < 0 || device < 0) return choose_unmeasured(job);
  const Choice better{device < cpu ? Where::device : Where::cpu};
  if (job.size() != 1 || job[0].bytes < least_shared_len) return better;
  const Rates& own = rates->at(*job[0].algorithm, job[0].direction);
  if (!own.together(pinned).pays()) return better;
  const Balance balance = find_balance(job[0], own.cpu, own.device(pinned), own.together(pinned));
  if (balance.seconds >= worth_sharing * std::min(cpu, device)) return better;
  return {Where::both, balance.cpu_share};
}

void require_offered(const DeviceEngine& engine, const Algorithm& algorithm) {
  if (engine.offers(algorithm)) return;
  throw Error(Status::engine_unavailable, "engine '", engine.name(), "' does not offer ", algorithm.name,
              ": keep the data in host memory, and use engine 'cpu' or 'auto'");
}

Selection select_engines(std::string_view given, std::span<const Message> messages) {
  const std::string_view name = name_or_override(given);
  const Selection selection = name == "auto" ? choose_engines(messages) : Selection{&find_named(name, name != given)};
  const Engine& engine = *selection.engine;
  if (!messages.empty() && messages[0].memory == Memory::device && engine.memory() == Memory::host) {
    refuse("engine '", engine.name(),
           "' runs on host memory and the data lies on a GPU: copy it to the host, "
           "or use engine 'cuda'");
  }
  if (engine.memory() == Memory::device) {
    const Algorithm* last = nullptr;
    for (const Message& m : messages) {
      if (m.key == nullptr || &m.algorithm() == last) continue;
      last = &m.algorithm();
      require_offered(static_cast<const DeviceEngine&>(engine), *last);
    }
    current_tuning();  // applies the tuned policies to its kernels
  }
  require_self_test(*selection.engine);
  if (selection.cpu != nullptr) require_self_test(*selection.cpu);
  return selection;
}

DeviceEngine& select_device_engine(std::string_view name) {
  Message there;
  there.memory = Memory::device;
  return static_cast<DeviceEngine&>(*select_engines(name, {&there, 1}).engine);
}

bool may_use_device(std::string_view given, std::span<Engine* const> among) {
  const std::string_view name = name_or_override(given);
  if (name == "auto" && !current_tuning()->rates) return false;
  return std::any_of(among.begin(), among.end(), [&](const Engine* engine) {
    const bool is_meant = engine->memory() == Memory::device && (name == "auto" || name == engine->name());
    return is_meant && engine->unavailable_reason().empty();
  });
}

}  // namespace warpcipher
