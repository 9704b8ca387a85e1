// SPDX-License-Identifier: Apache-2.0
// Cases of the choice of kernels, as lines of text:
//
//   9.0/132/232448 counter=tiles tuned:ghash=scalar ghash messages=1 keys=1 blocks=9 most=9 -> scalar
//   device         environment   tuner              what  about the work                       choice
//
// device: compute capability, multiprocessors, bytes of shared memory a block may have.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "engine/cuda/aes/choose.hpp"
#include "engine/cuda/chacha/choose.hpp"
#include "engine/cuda/execution/columns.hpp"
#include "engine/cuda/execution/launch_plan.hpp"
#include "engine/cuda/ghash/choose.hpp"
#include "engine/cuda/runtime/refusal.hpp"

namespace choice_cases {

using namespace warpcipher;
using namespace warpcipher::cuda;

inline Device made_up_device(const std::string& text) {
  Device device{};
  std::strcpy(device.name, "device");
  char mark = 0;
  std::istringstream(text) >> device.major >> mark >> device.minor >> mark >> device.multiprocessors >> mark >>
      device.shared_len;
  return device;
}

// Choices that the environment forces, until the end of the scope.
class Forced {
 public:
  void set(const std::string& name, const std::string& value) {
    all_ += (all_.empty() ? "" : ",") + name + "=" + value;
    setenv("WARPCIPHER_FORCE", all_.c_str(), 1);
  }
  void clear() {
    unsetenv("WARPCIPHER_FORCE");
    all_.clear();
  }
  ~Forced() { clear(); }

 private:
  std::string all_;
};

inline std::string name_of(TableLayout layout) { return layout == TableLayout::tables_128 ? "128" : "64"; }

inline std::string name_of(const CounterChoice& choice) {
  const char* const kernels[] = {"hybrid_packed", "packed", "hybrid", "tiles"};
  const char* const keys[] = {"parameter", "bytes", "round_keys"};
  return kernels[static_cast<int>(choice.kernel)] + (" " + name_of(choice.layout)) + " " +
         keys[static_cast<int>(choice.keys)] + " " + std::to_string(choice.group_log);
}

inline std::string name_of(const TextChoice& choice) {
  return (choice.kernel == TextKernel::hybrid ? "hybrid " : "tiles ") + name_of(choice.layout);
}

inline std::string name_of(const SerialChoice& choice) {
  return name_of(choice.layout) + " " + std::to_string(lane_table::count_of(choice.warps)) +
         (choice.text == lane_table::SerialText::staged ? " staged" : " direct");
}

inline std::string name_of(GhashAlgorithm algorithm) {
  const char* const names[] = {"few_lanes",      "tensor_rows",       "scalar",
                               "tensor_one_key", "tensor_warpgroups", "tensor_many_keys"};
  return names[static_cast<int>(algorithm)];
}

// The choice for what a line says about the work.
inline std::string choose(const Conditions& now, const std::string& what, std::map<std::string, std::uint64_t>& work) {
  const auto rounds = static_cast<std::uint32_t>(work["rounds"]);
  if (what == "layout") return name_of(choose_table_layout(now));
  if (what == "counter") {
    return name_of(choose_counter(
        now, {work["messages"], work["tiles"], work["units"], work["most"], rounds, work["keys"] == 1,
              work["keys"] == 2, static_cast<CounterForm>(work["form"]), work["ends"], work["unaligned"] == 0}));
  }
  if (what == "ends") {
    constexpr Mode modes[] = {Mode::ctr, Mode::gcm, Mode::gcm_siv, Mode::ecb};
    return leaves_ends(now, modes[work["mode"]], work["messages"]) ? "apart" : "in tiles";
  }
  if (what == "least_chunked") return std::to_string(least_chunked(now, work["messages"], work["keys"]));
  if (what == "message") {
    constexpr Mode modes[] = {Mode::ecb, Mode::cbc, Mode::cfb, Mode::cfb8, Mode::ctr};
    return name_of(choose_text(now, {modes[work["mode"]], true, true, work["tiles"], 0}));
  }
  if (what == "batch") {
    const Mode mode = work["xts"] != 0 ? Mode::xts : Mode::ecb;
    return name_of(choose_text(now, {mode, false, work["keys"] == 1, work["tiles"], work["units"]}));
  }
  if (what == "sectors") {
    return choose_sectors(now, {work["count"], work["room"]}) == SectorKernel::rows ? "rows" : "batch";
  }
  if (what == "serial") return name_of(choose_serial(now, {work["messages"], rounds, work["bytes"] != 0}));
  if (what == "ghash") {
    return name_of(choose_ghash(now, {work["messages"], work["keys"], work["blocks"], work["most"]}));
  }
  const StreamWork stream{work["messages"], work["blocks"], work["most"]};
  if (what == "stream") return choose_stream(now, stream) == StreamKernel::packed ? "packed" : "tiles";
  if (what == "aead") return choose_aead(now, stream) == AeadKernel::chunks ? "chunks" : "lanes";
  return "what is '" + what + "'?";
}

// The choice for a case, or its error.
inline std::string answer(const std::string& line) {
  std::istringstream in(line);
  std::string word, what;
  in >> word;
  const Device device = made_up_device(word);
  Forced forced;
  Picks tuned;
  std::map<std::string, std::uint64_t> work;
  while (in >> word && word != "->") {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (value.empty()) {
      what = word;
    } else if (!what.empty()) {
      work[name] = std::stoull(value);
    } else if (name.rfind("tuned:", 0) == 0) {
      pick(tuned, name.substr(6), value);
    } else {
      forced.set(name, value);
    }
  }
  try {
    return choose({device, read_overrides(), tuned}, what, work);
  } catch (const Error& error) {
    return "error " + std::to_string(static_cast<int>(error.status())) + ": " + error.what();
  }
}

}  // namespace choice_cases
