// SPDX-License-Identifier: Apache-2.0
// The CPU engine's state of an AES key: pools of keyed libcrypto contexts, the round keys of own code, and for GCM
// the powers of its hash key. Without libcrypto own code takes every mode, on a processor that can run it.
#pragma once

#include <cstdint>
#include <memory>

#include "cipher/gf128.hpp"
#include "core/fork.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/context.hpp"
#include "engine/cpu/lanes.hpp"
#include "message/key.hpp"

namespace warpcipher {

// Splits long GCM messages and hashes long IVs.
struct GcmConstants {
  gf128::Element hash_key;        // H = E(0): SP 800-38D, section 7.1, step 1
  gf128::Element inverse;         // 1 / H
  gf128::Element tile_power;      // H to the power cpu_tile_units
  gf128::Element hash_only_mask;  // E(J0) for the IV of 12 zero bytes, under which GMAC serves as plain GHASH
};

// The block [first] || [second], lengths in bits, that ends each input of GHASH; given in bytes.
gf128::Element length_block(std::uint64_t first_bytes, std::uint64_t second_bytes);

// The 16-byte IV from which section 7.1, step 2 makes the counter block J0:  J0 = (IV H + [0] || [128]) H. With H = 0,
// which one key in 2^128 has, only J0 = 0 has one.
gf128::Element solve_iv(const GcmConstants& constants, gf128::Element counter0);

// inc32 (section 6.2), n times.
gf128::Element advance_counter(gf128::Element counter, std::uint64_t n);

// Whether own code has all of AES on this processor: x86-64 with AES instructions, AVX and carry-less products.
bool has_own_aes();

class AesKey final : public KeyState {
 public:
  explicit AesKey(const Key& key);

  // The state of `key`, an AES key of any mode.
  static AesKey& of(const Key& key) {
    return key.state<AesKey>(EngineId::cpu, [](const Key& k) { return std::make_unique<AesKey>(k); });
  }

  // E(block) as an element, for a GCM algorithm.
  gf128::Element encrypt_element(gf128::Element block);

  // The pools want libcrypto.
  // The mode itself. Modes whose decryption is encryption of the same counters (CTR, OFB) use one pool for both.
  ContextPool& mode(Direction direction) { return direction == Direction::encrypt || symmetric_ ? encrypt_ : decrypt_; }

  // Single blocks: under the tweak key (the second half, IEEE 1619 section 5.3) for XTS, else under the key.
  ContextPool& blocks(Direction direction) {
    return direction == Direction::encrypt ? encrypt_blocks_ : decrypt_blocks_;
  }

  // For a GCM algorithm: computed on first use, from any thread.
  const GcmConstants& gcm();

  // The same for `code`, which is the same in all calls.
  const cpu::GcmLaneKey& gcm_lanes(const cpu::GcmLanes& code);

  // For any other algorithm, in the same way.
  const cpu::AesLaneKey& aes_lanes(const cpu::AesLanes& code);

 private:
  const bool symmetric_;
  ContextPool encrypt_, decrypt_, encrypt_blocks_, decrypt_blocks_;
  const Key& key_;
  Once gcm_once_, gcm_lanes_once_, aes_lanes_once_;
  Secret<GcmConstants> gcm_;
  std::unique_ptr<Secret<cpu::GcmLaneKey>> gcm_lanes_;
  std::unique_ptr<Secret<cpu::AesLaneKey>> aes_lanes_;
};

}  // namespace warpcipher
