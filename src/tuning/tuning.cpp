// SPDX-License-Identifier: Apache-2.0
#include "tuning/tuning.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
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
  if (opened < 0) refuse("it cannot be opened: ", std::generic_category().message(errno));
  const Descriptor file{opened};
  struct stat status {};
  if (::fstat(file.number, &status) != 0 || !S_ISREG(status.st_mode)) {
    refuse("it is not a regular file");
  }
  std::string text(most_bytes + 1, '\0');
  std::size_t len = 0;
  while (len < text.size()) {
    const ssize_t part = ::read(file.number, text.data() + len, text.size() - len);
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) refuse("it cannot be read: ", std::generic_category().message(errno));
    if (part == 0) break;
    len += static_cast<std::size_t>(part);
  }
  if (len > most_bytes) {
    refuse("it has more than ", most_bytes, " bytes");
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

// Without any file the driver need not start, which would identify the machine.
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
      throw Error(Status::engine_failure, "the cache file ", part, " cannot be written");
    }
  }
  fs::rename(part, path, error);
  if (error) throw Error(Status::engine_failure, "the cache file ", path, ": ", error.message());
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

namespace {

std::size_t index_of(const Algorithm& algorithm, Direction direction) {
  const auto number = static_cast<std::size_t>(&algorithm - algorithms().data());
  return 2 * number + (direction == Direction::decrypt ? 1 : 0);
}

}  // namespace

double Cost::seconds(double bytes) const {
  Point before{0, call};
  for (const Point& point : points) {
    const double slope = std::max(0.0, point.seconds - before.seconds) / (point.bytes - before.bytes);
    if (bytes <= point.bytes || &point == &points.back()) return before.seconds + slope * (bytes - before.bytes);
    before = point;
  }
  return call;
}

RateTable::RateTable() : entries_(2 * algorithms().size()) {}

Rates& RateTable::at(const Algorithm& algorithm, Direction direction) {
  return entries_[index_of(algorithm, direction)];
}
const Rates& RateTable::at(const Algorithm& algorithm, Direction direction) const {
  return entries_[index_of(algorithm, direction)];
}

std::vector<JobPart> describe(std::span<const Message> messages) {
  std::vector<JobPart> parts;
  for (const Message& m : messages) {
    const Algorithm* const algorithm = &m.algorithm();
    // Neighbours are mostly alike: search from the last part.
    const auto found = std::find_if(parts.rbegin(), parts.rend(), [&](const JobPart& part) {
      return part.algorithm == algorithm && part.direction == m.direction;
    });
    JobPart& part = found != parts.rend() ? *found : parts.emplace_back(JobPart{algorithm, m.direction, 0, 0, 0});
    ++part.messages;
    part.bytes += m.in_len;
    part.longest = std::max(part.longest, m.in_len);
  }
  return parts;
}

double seconds_of(const JobPart& part, const Cost& cost, double share) {
  const double bytes = share * static_cast<double>(part.bytes);
  const double measured = cost.message_len > 0 ? bytes / cost.message_len : 0;
  const double more = std::max(0.0, share * static_cast<double>(part.messages) - measured);
  const double seconds = cost.seconds(bytes) + cost.message * more;
  return cost.stream > 0 ? std::max(seconds, static_cast<double>(part.longest) / cost.stream) : seconds;
}

// A larger share makes the CPU slower and the device faster, so bisection finds where they meet.
Balance find_balance(const JobPart& part, const Cost& cpu, const Cost& device, const Together& together) {
  double low = 0, high = 1;
  for (int i = 0; i < 20; ++i) {
    const double share = (low + high) / 2;
    const bool cpu_is_later =
        together.cpu * seconds_of(part, cpu, share) > together.device * seconds_of(part, device, 1 - share);
    (cpu_is_later ? high : low) = share;
  }
  return {low,
          std::max(together.cpu * seconds_of(part, cpu, low), together.device * seconds_of(part, device, 1 - low))};
}

// The cache file of a tuning: written and read.
//
//   warpcipher-tuning 1
//   machine <line>                                      one for each line of describe_machine()
//   policy <device, or -1> <name> <value> <rate> <rate of the default>
//   rate <algorithm> <direction> <route> <call> <message> <message_len> <stream> <points> [<bytes> <seconds>]...
//   together <algorithm> <direction> <route> <cpu> <device>   where both engines at once are faster
//   end <FNV-1a of all before, in hexadecimal>
namespace {

constexpr double most_points = 16;
constexpr std::string_view heading = "warpcipher-tuning 1\n";

// A route of host data: its name in the file, and its members of Rates.
struct RouteFields {
  std::string_view name;
  Cost Rates::*cost;
  Together Rates::*together = nullptr;
};

constexpr std::array<RouteFields, 3> routes{{{"cpu", &Rates::cpu},
                                             {"pageable", &Rates::pageable, &Rates::with_pageable},
                                             {"pinned", &Rates::pinned, &Rates::with_pinned}}};

std::uint64_t checksum(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

std::string hex(std::uint64_t value) {
  std::ostringstream out;
  out << std::hex << std::setw(16) << std::setfill('0') << value;
  return out.str();
}

double number(std::istringstream& line) {
  std::string word;
  line >> word;
  std::istringstream digits(word);
  digits.imbue(std::locale::classic());
  double value = -1;
  digits >> value;
  if (digits.fail() || !digits.eof() || !std::isfinite(value) || value < 0) refuse("one of its figures is invalid");
  return value;
}

std::string machine_lines(std::string_view machine) {
  std::string lines;
  std::istringstream in{std::string(machine)};
  for (std::string line; std::getline(in, line);) lines += "machine " + line + "\n";
  return lines;
}

const RouteFields& find_route(std::string_view name) {
  for (const RouteFields& route : routes) {
    if (route.name == name) return route;
  }
  refuse("it has rates of an unknown route");
}

void read_choice(std::istringstream& line, Tuning& tuning) {
  PolicyChoice choice{};
  line >> choice.device >> choice.name >> choice.value;
  if (line.fail() || choice.device < PolicyChoice::of_transfer) refuse("it has a policy of a device that cannot be");
  choice.rate = number(line);
  choice.rate_of_default = number(line);
  tuning.choices.push_back(std::move(choice));
}

void read_cost(std::istringstream& line, Cost& cost) {
  cost.call = number(line);
  cost.message = number(line);
  cost.message_len = number(line);
  cost.stream = number(line);
  cost.points.clear();
  const double count = number(line);
  if (count < 1 || count > most_points) refuse("it has a number of points that cannot be");
  while (static_cast<double>(cost.points.size()) < count) {
    const double bytes = number(line);
    const double before = cost.points.empty() ? 0 : cost.points.back().bytes;
    cost.points.push_back({bytes, number(line)});
    if (bytes <= before || cost.points.back().seconds <= 0) refuse("it has points that are out of order");
  }
}

void read_together(std::istringstream& line, Together& together) {
  together.cpu = number(line);
  together.device = number(line);
  if (!together.pays()) refuse("it has engines that work together without gain");
}

void read_rates(std::istringstream& line, bool together, Tuning& tuning) {
  std::string algorithm, direction, route_name;
  line >> algorithm >> direction >> route_name;
  if (direction != "encrypt" && direction != "decrypt") refuse("its direction is unknown");
  const RouteFields& route = find_route(route_name);
  if (!tuning.rates) tuning.rates.emplace();
  Rates& rates =
      tuning.rates->at(find_algorithm(algorithm), direction == "encrypt" ? Direction::encrypt : Direction::decrypt);
  if (!together) return read_cost(line, rates.*route.cost);
  if (route.together == nullptr) refuse("it has the cpu together with itself");
  read_together(line, rates.*route.together);
}

void read_line(const std::string& text, Tuning& tuning) {
  std::istringstream line(text);
  std::string kind;
  line >> kind;
  if (kind == "policy") {
    read_choice(line, tuning);
  } else if (kind == "rate" || kind == "together") {
    read_rates(line, kind == "together", tuning);
  } else {
    refuse("it has a line of unknown kind");
  }
  line >> std::ws;
  if (!line.eof()) refuse("it has a line that is too long");
}

}  // namespace

std::string to_text(const Tuning& tuning, std::string_view machine) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out << std::setprecision(9) << heading << machine_lines(machine);
  for (const PolicyChoice& choice : tuning.choices) {
    out << "policy " << choice.device << ' ' << choice.name << ' ' << choice.value << ' ' << choice.rate << ' '
        << choice.rate_of_default << '\n';
  }
  for (const Algorithm& algorithm : algorithms()) {
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      if (!tuning.rates) break;
      const Rates& rates = tuning.rates->at(algorithm, direction);
      const std::string what =
          std::string(algorithm.name) + (direction == Direction::encrypt ? " encrypt " : " decrypt ");
      for (const RouteFields& route : routes) {
        const Cost& cost = rates.*route.cost;
        if (cost.known()) {
          out << "rate " << what << route.name << ' ' << cost.call << ' ' << cost.message << ' ' << cost.message_len
              << ' ' << cost.stream << ' ' << cost.points.size();
          for (const Point& point : cost.points) out << ' ' << point.bytes << ' ' << point.seconds;
          out << '\n';
        }
        if (route.together != nullptr && (rates.*route.together).pays()) {
          const Together& together = rates.*route.together;
          out << "together " << what << route.name << ' ' << together.cpu << ' ' << together.device << '\n';
        }
      }
    }
  }
  std::string text = out.str();
  return text + "end " + hex(checksum(text)) + "\n";
}

Tuning parse_tuning(std::string_view text, std::string_view machine) {
  const std::size_t end = text.rfind("end ");
  if (end == std::string_view::npos || text.substr(end) != "end " + hex(checksum(text.substr(0, end))) + "\n") {
    refuse("it is damaged: its checksum does not match");
  }
  const std::string expected = std::string(heading) + machine_lines(machine);
  if (text.substr(0, expected.size()) != expected) refuse("it is for another machine, driver or version");
  Tuning tuning;
  std::istringstream lines(std::string(text.substr(expected.size(), end - expected.size())));
  for (std::string line; std::getline(lines, line);) read_line(line, tuning);
  return tuning;
}

}  // namespace warpcipher
