// SPDX-License-Identifier: Apache-2.0
// The cache file of a tuning: written and read.
//
//   warpcipher-tuning 1
//   machine <line>                                      one for each line of describe_machine()
//   policy <device, or -1> <name> <value> <rate> <rate of the default>
//   rate <algorithm> <direction> <route> <call> <message> <message_len> <stream> <points> [<bytes> <seconds>]...
//   together <algorithm> <direction> <route> <cpu> <device>   where both engines at once are faster
//   end <FNV-1a of all before, in hexadecimal>
#include <array>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "core/error.hpp"
#include "tuning/tuning.hpp"

namespace warpcipher {
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
  if (digits.fail() || !digits.eof() || !std::isfinite(value) || value < 0) refuse("it has a figure that is none");
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
  if (direction != "encrypt" && direction != "decrypt") refuse("it has a direction that is none");
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
