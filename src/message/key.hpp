// SPDX-License-Identifier: Apache-2.0
// A key: the bytes, checked against their algorithm, and each engine's derivations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/fork.hpp"
#include "core/wipe.hpp"
#include "mode/algorithm.hpp"

namespace warpcipher {

// Derived by an engine from a key once (schedules, cipher contexts) and keeps for as long as the key lives.
// Implementations wipe themselves in their destructor.
struct KeyState {
  virtual ~KeyState() = default;
};

enum class EngineId : std::uint8_t { reference, cpu, cuda };
inline constexpr std::size_t engine_count = 3;

class Key {
 public:
  // Throws Error{invalid_argument} when the length is not algorithm.key_len() or XTS halves are equal
  // (SP 800-38E through FIPS 140 IG C.I). The bytes are copied, and wiped with the key.
  Key(const Algorithm& algorithm, std::span<const std::uint8_t> bytes);
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;

  const Algorithm& algorithm() const noexcept { return algorithm_; }
  const std::uint8_t* bytes() const noexcept { return bytes_.data(); }
  std::size_t size() const noexcept { return bytes_.size(); }

  // Sixteen bytes that are equal for two keys of an AEAD only if the keys are equal: AES, under the key, of a block
  // that is random in each process. It distinguishes keys without comparing secrets byte by byte. Made on first use.
  const std::array<std::uint8_t, 16>& fingerprint() const;

  // The state of one engine, made by `make(const Key&) -> std::unique_ptr<State>` on first use. Safe from any thread.
  template <class State, class Make>
  State& state(EngineId engine, Make&& make) const {
    EngineState& kept = states_[static_cast<std::size_t>(engine)];
    kept.once.call([&] { kept.state = make(*this); });
    return static_cast<State&>(*kept.state);
  }

 private:
  struct EngineState {
    Once once;
    std::unique_ptr<KeyState> state;
  };

  const Algorithm& algorithm_;
  SecretBytes bytes_;
  mutable std::array<EngineState, engine_count> states_;
  mutable Once fingerprint_once_;
  mutable std::array<std::uint8_t, 16> fingerprint_{};
};

}  // namespace warpcipher
