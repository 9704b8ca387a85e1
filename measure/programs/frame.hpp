// SPDX-License-Identifier: Apache-2.0
// Every benchmark in C++ has this: a command line, times and their median, and the frame of main().
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace warpcipher::bench {

using Clock = std::chrono::steady_clock;

inline double seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A program's words: options are taken by name, `rest` are the others.
class Arguments {
 public:
  Arguments(const std::string& program, int argc, char** argv)
      : words_(argv + 1, argv + argc), usage_("usage: " + program) {}

  // A flag, a number above 0, or text; `value` where it is not given.
  template <class Value>
  Value take(const std::string& name, Value value) {
    constexpr bool is_flag = std::is_same_v<Value, bool>;
    usage_ += " [" + name + (is_flag ? "]" : " VALUE]");
    const auto found = std::find(words_.begin(), words_.end(), name);
    if (found == words_.end() || (!is_flag && found + 1 == words_.end())) return value;
    const std::string text = is_flag ? "" : found[1];
    words_.erase(found, found + (is_flag ? 1 : 2));
    if constexpr (is_flag) return true;
    if constexpr (std::is_same_v<Value, std::string>) return text;
    if constexpr (!is_flag && !std::is_same_v<Value, std::string>) {
      const char* const end = text.data() + text.size();
      const auto parsed = std::from_chars(text.data(), end, value);
      if (parsed.ec != std::errc() || parsed.ptr != end || !(value > 0)) {
        throw std::runtime_error(name + " is '" + text + "': expected a number above 0");
      }
      return value;
    }
  }

  // The arguments left; throws the usage for options that were not taken, and for words that nobody wants.
  const std::vector<std::string>& rest(bool wanted = false) const {
    for (const std::string& word : words_) {
      if (!wanted || word[0] == '-') throw std::runtime_error(usage_ + (wanted ? " [WORD ...]" : ""));
    }
    return words_;
  }

 private:
  std::vector<std::string> words_;
  std::string usage_;
};

// Of main(): body returns whether all results were right, or throws.
template <class Body>
int run_program(const char* name, Body&& body) {
  try {
    return body() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
}

}  // namespace warpcipher::bench
