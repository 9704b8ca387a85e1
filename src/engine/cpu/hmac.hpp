// SPDX-License-Identifier: Apache-2.0
// HMAC (FIPS 198-1) by libcrypto, of many texts under one key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/wipe.hpp"
#include "engine/cpu/libcrypto.hpp"

namespace warpcipher {

// Of one thread; another takes a copy. The key is borrowed; libcrypto wipes the derived state.
class Hmac {
 public:
  // `hash` is "sha1", "sha256" or "sha512". Throws Error{invalid_argument} for another, Error{engine_unavailable}
  // without libcrypto, Error{engine_failure} when libcrypto refuses.
  Hmac(std::string_view hash, std::span<const std::uint8_t> key);

  // As the other, whatever that has hashed. Asks libcrypto for no algorithm: that leaves a thread with memory that goes
  // only if the thread ends before libcrypto does. Throws Error{engine_failure}.
  Hmac(const Hmac& other);
  Hmac& operator=(const Hmac&) = delete;

  // Whether the HMAC of the two parts joined begins with `tag`. The time does not depend on the answer. A tag that is
  // longer than the hash never matches. Throws Error{engine_failure}.
  bool matches(const std::array<std::span<const std::uint8_t>, 2>& parts, std::span<const std::uint8_t> tag);

  // The first bytes of that HMAC, as many as `tag` has; at most the hash's length. Throws Error{engine_failure}.
  void compute(const std::array<std::span<const std::uint8_t>, 2>& parts, std::span<std::uint8_t> tag);

 private:
  static constexpr std::size_t most_hash_len = 64;

  // Returns the length of the hash.
  std::size_t hash(const std::array<std::span<const std::uint8_t>, 2>& parts, std::uint8_t (&hash)[most_hash_len]);
  void begin(const ossl_param_st* params);

  std::span<const std::uint8_t> key_;
  std::unique_ptr<evp_mac_ctx_st, void (*)(evp_mac_ctx_st*)> context_;
};

// HKDF (RFC 5869) by libcrypto: the file formats derive their keys with it.

// Extract and expand. `hash_name` is "sha1", "sha256" or "sha512"; an empty salt means a string of zeros as long as the
// hash (section 2.2); `length` is 1 to 255 hashes (section 2.3). Inputs are borrowed for the call.
// Throws Error{invalid_argument} for a name or length outside these, Error{engine_unavailable} without libcrypto,
// Error{engine_failure} when libcrypto refuses.
SecretBytes hkdf(std::string_view hash_name, std::span<const std::uint8_t> ikm, std::span<const std::uint8_t> salt,
                 std::span<const std::uint8_t> info, std::size_t length);

// Only the second step, from a key that is uniformly random. The rest is as above.
SecretBytes hkdf_expand(std::string_view hash_name, std::span<const std::uint8_t> prk,
                        std::span<const std::uint8_t> info, std::size_t length);

}  // namespace warpcipher
