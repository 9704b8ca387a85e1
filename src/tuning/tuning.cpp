// SPDX-License-Identifier: Apache-2.0
#include "tuning/tuning.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <system_error>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "engine/device_engine.hpp"
#include "flow/transfer_settings.hpp"

namespace warpcipher {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view file_prefix = "tuning-";

struct State {
  std::mutex mutex;  // inside a NotAtFork
  std::shared_ptr<const Tuning> tuning = std::make_shared<Tuning>();
};

State& state() {
  static constinit FirstUse<State> instance;
  return instance.get();
}

// Applies choices; with `back`, returns to the defaults instead.
void choose_all(const std::vector<PolicyChoice>& choices, bool back) {
  for (const PolicyChoice& choice : choices) {
    const std::string_view value = back ? std::string_view() : std::string_view(choice.value);
    if (choice.device == PolicyChoice::of_transfer) choose_transfer_policy(choice.name, value);
    for (Engine* engine : engines()) {
      if (choice.device < 0 || engine->memory() != Memory::device || !engine->unavailable_reason().empty()) continue;
      static_cast<DeviceEngine*>(engine)->choose_policy(choice.device, choice.name, value);
    }
  }
}

fs::path cache_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/')
    return fs::path(cache) / "warpcipher";  // the standard has relative ones ignored
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return fs::path(home) / ".cache" / "warpcipher";
  return {};
}

// More than any tuning comes to: some 100 KB where every rate has all its points.
constexpr std::size_t most_bytes = std::size_t{1} << 20;

// Never waits, as for a FIFO that no one writes: anyone who may write in the folder may have made one.
std::string read_file(const std::string& path) {
  struct Descriptor {
    int number;
    ~Descriptor() { ::close(number); }
  };
  const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (opened < 0)
    throw Error(Status::invalid_argument, "it cannot be opened: " + std::generic_category().message(errno));
  const Descriptor file{opened};
  struct stat status {};
  if (::fstat(file.number, &status) != 0 || !S_ISREG(status.st_mode)) {
    throw Error(Status::invalid_argument, "it is not a regular file");
  }
  std::string text(most_bytes + 1, '\0');
  std::size_t len = 0;
  while (len < text.size()) {
    const ssize_t part = ::read(file.number, text.data() + len, text.size() - len);
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) throw Error(Status::invalid_argument, "it cannot be read: " + std::generic_category().message(errno));
    if (part == 0) break;
    len += static_cast<std::size_t>(part);
  }
  if (len > most_bytes) {
    throw Error(Status::invalid_argument, "it has more than " + std::to_string(most_bytes) + " bytes");
  }
  text.resize(len);
  return text;
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Without any file there is no need to start the driver, which would identify the machine.
bool has_any_file(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().rfind(file_prefix, 0) == 0) return true;
  }
  return false;
}

void load() {
  const fs::path folder = cache_folder();
  if (folder.empty() || !has_any_file(folder)) return;
  const std::string machine = describe_machine();
  const std::string path = tuning_path(machine);
  std::error_code error;
  if (!fs::exists(path, error)) return;
  Tuning tuning;
  try {
    tuning = parse_tuning(read_file(path), machine);
    tuning.origin = "measured on this machine, kept in " + path;
  } catch (const Error& problem) {
    tuning = {};
    tuning.warning = path + " is ignored: " + problem.what() + "; `warpcipher tune` measures again";
  }
  use_tuning(std::move(tuning));
}

}  // namespace

std::shared_ptr<const Tuning> current_tuning() {
  static constinit Once loaded;
  loaded.call([] {
    try {
      load();
    } catch (const std::exception& problem) {
      Tuning tuning;
      tuning.warning = std::string("the cache of `warpcipher tune` is ignored: ") + problem.what();
      use_tuning(std::move(tuning));
    }
  });
  State& s = state();
  const NotAtFork scope;
  const std::lock_guard lock(s.mutex);
  return s.tuning;
}

void use_tuning(Tuning tuning) {
  State& s = state();
  // The list of engines is made once: not under the lock, as a driver may start for it.
  for (const Engine* engine : engines()) {
    if (!tuning.choices.empty()) static_cast<void>(engine->unavailable_reason());
  }
  const NotAtFork scope;
  const std::lock_guard lock(s.mutex);
  choose_all(s.tuning->choices, true);
  choose_all(tuning.choices, false);
  s.tuning = std::make_shared<const Tuning>(std::move(tuning));
}

std::string describe_machine() {
  std::string text = "version " WARPCIPHER_VERSION "\n";
  for (const Engine* engine : engines()) {
    if (!engine->unavailable_reason().empty()) continue;
    for (const std::string& device : engine->devices()) text += std::string(engine->name()) + " " + device + "\n";
    if (engine->memory() != Memory::device) continue;
    const auto& device = static_cast<const DeviceEngine&>(*engine);
    text += "host data dealt to " + std::to_string(device.devices_for_host_data().size()) + "\n";
  }
  return text + "driver " + first_line("/proc/driver/nvidia/version") + "\n";
}

std::string tuning_path(std::string_view machine) {
  const fs::path folder = cache_folder();
  if (folder.empty()) return {};
  // One file for each machine: several may share a home.
  std::ostringstream name;
  name << file_prefix << std::hex << std::hash<std::string_view>{}(machine) << ".txt";
  return (folder / name.str()).string();
}

std::string save_tuning(const Tuning& tuning) {
  const std::string machine = describe_machine();
  const std::string path = tuning_path(machine);
  if (path.empty()) throw Error(Status::engine_failure, "neither XDG_CACHE_HOME nor HOME names a folder for the cache");
  const std::string part = path + "." + std::to_string(getpid()) + ".part";
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  {
    std::ofstream file(part, std::ios::binary | std::ios::trunc);
    file << to_text(tuning, machine);
    file.close();
    if (!file) {
      fs::remove(part, error);
      throw Error(Status::engine_failure, "the cache file " + part + " cannot be written");
    }
  }
  fs::rename(part, path, error);
  if (error) throw Error(Status::engine_failure, "the cache file " + path + ": " + error.message());
  return path;
}

bool forget_tuning() {
  std::error_code error;
  const std::string path = tuning_path(describe_machine());
  const bool removed = !path.empty() && fs::remove(path, error);
  current_tuning();
  use_tuning({});
  return removed;
}

}  // namespace warpcipher
