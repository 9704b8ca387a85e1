// SPDX-License-Identifier: Apache-2.0
// Every benchmark in C++ has this: a command line, times and their median, and the frame of main().
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
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

// Options by name, each with the variable that it fills: a flag, a number above 0, or text. `words` takes the rest.
class Options {
 public:
  explicit Options(std::string program, std::vector<std::string>* words = nullptr)
      : usage_("usage: " + std::move(program)), words_(words) {}

  template <class Value>
  Options& add(const std::string& name, Value& value) {
    constexpr bool is_flag = std::is_same_v<Value, bool>;
    usage_ += " [" + name + (is_flag ? "]" : " VALUE]");
    entries_.push_back({name, is_flag, [&value, name](const std::string& text) {
                          if constexpr (is_flag) {
                            value = true;
                          } else if constexpr (std::is_same_v<Value, std::string>) {
                            value = text;
                          } else {
                            const char* const end = text.data() + text.size();
                            const auto parsed = std::from_chars(text.data(), end, value);
                            if (parsed.ec != std::errc() || parsed.ptr != end || !(value > 0)) {
                              throw std::runtime_error(name + " is '" + text + "': expected a number above 0");
                            }
                          }
                        }});
    return *this;
  }

  void parse(int argc, char** argv) const {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      const auto entry =
          std::find_if(entries_.begin(), entries_.end(), [&](const Entry& each) { return each.name == word; });
      if (entry != entries_.end() && (entry->is_flag || i + 1 < argc)) {
        entry->set(entry->is_flag ? "" : argv[++i]);
      } else if (words_ != nullptr && word[0] != '-') {
        words_->push_back(word);
      } else {
        throw std::runtime_error(usage_ + (words_ != nullptr ? " [WORD ...]" : ""));
      }
    }
  }

 private:
  struct Entry {
    std::string name;
    bool is_flag;
    std::function<void(const std::string&)> set;
  };

  std::string usage_;
  std::vector<std::string>* words_;
  std::vector<Entry> entries_;
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
