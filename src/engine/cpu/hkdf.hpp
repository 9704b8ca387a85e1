// SPDX-License-Identifier: Apache-2.0
// HKDF (RFC 5869) by libcrypto: the file formats derive their keys with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/wipe.hpp"

namespace warpcipher {

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
