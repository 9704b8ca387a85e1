// SPDX-License-Identifier: Apache-2.0
// The one plan of launches: which kernels take the text and the tags of messages that run together. execute() and
// run_message() run it, and explain() prints it. Host code without CUDA, so that a test can ask about any GPU.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/cuda/aes/choose.hpp"
#include "engine/cuda/chacha/choose.hpp"
#include "engine/cuda/ghash/choose.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/cuda/runtime/refusal.hpp"
#include "engine/device_engine.hpp"
#include "mode/algorithm.hpp"

namespace warpcipher::cuda {

// Whether an algorithm has kernels. A new mode has none until it stands here.
constexpr bool has_kernels(const Algorithm& algorithm) {
  constexpr Mode modes[] = {Mode::ecb, Mode::cbc, Mode::cfb,     Mode::cfb8,   Mode::ofb,      Mode::ctr,
                            Mode::gcm, Mode::xts, Mode::gcm_siv, Mode::stream, Mode::poly1305, Mode::ccm};
  for (const Mode mode : modes) {
    if (mode == algorithm.mode.id) return true;
  }
  return false;
}

// All that the plan depends on. Units and tiles count all messages, unless their names say otherwise.
struct BatchFacts {
  const Algorithm& algorithm;
  Direction direction;
  std::uint64_t messages = 1;
  std::uint64_t tiles = 0;
  std::uint64_t units = 0;
  std::uint64_t most_units = 0;   // of one
  std::uint64_t end_units = 0;    // counter modes: of ends that tiles lack
  bool is_by_itself = false;      // one message that run_message() has been given
  bool has_only_key = false;      // the host has the one key of all messages
  bool has_key_bytes = false;     // the keys' bytes lie in device memory
  bool is_aligned = true;         // texts lie at multiples of 16
  bool are_parts = false;         // Message::is_part
  ghash::Work hashes{};           // GCM and GCM-SIV: of messages that have chunks
  std::uint64_t sectors_len = 0;  // XTS, one key: bytes of the buffers of data units that may follow each other
};

// The same for messages of `len` bytes each, in columns.
void set_equal_lengths(BatchFacts& facts, std::uint64_t len, bool lacks_ends);

// The kernel of the text.
enum class TextLaunch : std::uint8_t {
  by_itself,  // AES: one message, without the arrays of a batch
  counter,    // AES: a batch of CTR, GCM or GCM-SIV
  tiles,      // AES: a batch of another parallel mode
  sectors,    // AES: data units of XTS that follow each other
  serial,     // AES
  ccm,        // AES, text and tags
  bitslice,   // DES
  serial_des,
  stream,  // ChaCha20
  aead,    // ChaCha20-Poly1305, text and tags
};

// A question, and the candidate that takes it.
template <class Work, class Chosen>
struct Answered {
  Work work;
  Chosen chosen;
};

// An unasked question has no value.
struct LaunchPlan {
  TextLaunch text_launch{};
  std::optional<TableLayout> tables;
  std::optional<Answered<CounterWork, CounterChoice>> counter;
  std::optional<Answered<TextWork, TextChoice>> text;
  std::optional<Answered<SectorWork, SectorKernel>> sectors;
  std::optional<Answered<SerialWork, SerialChoice>> serial;
  std::optional<Answered<StreamWork, StreamKernel>> stream;
  std::optional<Answered<StreamWork, AeadKernel>> aead;
  std::optional<Answered<ghash::Work, GhashAlgorithm>> ghash;
};

// Throws as the choices.
LaunchPlan plan_launches(const Conditions& now, const BatchFacts& facts);

// The plan of a launch that begins now. Throws as conditions_of() and plan_launches().
LaunchPlan plan_launches(const Device& device, const BatchFacts& facts);

// Is shown each plan of a launch that begins, if it is set: for tests.
using PlanObserver = void (*)(const BatchFacts& facts, const LaunchPlan& plan);
extern std::atomic<PlanObserver> plan_observer;

// --- The plan of launches for a batch, printed.
// DeviceEngine::explain(), for any device, which need not exist. Throws Error{invalid_argument} for a shape that no
// batch has, and the errors of the choices.
std::vector<Decision> explain(const Conditions& now, const BatchShape& shape);

// The same of a plan.
std::vector<Decision> to_decisions(const Conditions& now, const LaunchPlan& plan);

// --- The choices between compiled kernels that the tuner may make for a device, and the defaults without a tuner, each
// with the measurement behind it.
// Throws as overrides().
std::vector<Policy> policies(const Device& device);

// An empty value restores the default. An unknown name or value, or a value that the device cannot run, changes
// nothing.
void choose_policy(const Device& device, std::string_view name, std::string_view value);

}  // namespace warpcipher::cuda
