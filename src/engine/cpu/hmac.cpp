// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/hmac.hpp"

#include <algorithm>
#include <string>

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/fork.hpp"
#include "core/wipe.hpp"

namespace warpcipher {
namespace {

const char* libcrypto_name(std::string_view hash) {
  if (hash == "sha1") return "SHA1";
  if (hash == "sha256") return "SHA256";
  if (hash == "sha512") return "SHA512";
  throw Error(Status::invalid_argument,
              "HMAC: unknown hash '" + std::string(hash.substr(0, 32)) + "': expected sha1, sha256 or sha512");
}

const Libcrypto& usable_libcrypto() {
  const Libcrypto& libcrypto = Libcrypto::instance();
  if (!libcrypto.unavailable_reason().empty()) {
    throw Error(Status::engine_unavailable, "HMAC: " + libcrypto.unavailable_reason());
  }
  return libcrypto;
}

}  // namespace

Hmac::Hmac(std::string_view hash, std::span<const std::uint8_t> key) : key_(key), context_(nullptr, nullptr) {
  const char* const name = libcrypto_name(hash);
  const Libcrypto& libcrypto = usable_libcrypto();
  const NotAtFork scope;  // libcrypto fetches algorithms, and holds locks meanwhile
  const std::unique_ptr<evp_mac_st, void (*)(evp_mac_st*)> mac(libcrypto->EVP_MAC_fetch(nullptr, "HMAC", nullptr),
                                                               libcrypto->EVP_MAC_free);
  if (!mac) libcrypto.fail("EVP_MAC_fetch(HMAC)");
  context_ = {libcrypto->EVP_MAC_CTX_new(mac.get()), libcrypto->EVP_MAC_CTX_free};
  if (!context_) libcrypto.fail("EVP_MAC_CTX_new(HMAC)");
  const LibcryptoParam params[] = {{"digest", libcrypto_constant::param_utf8_string, const_cast<char*>(name),
                                    std::string_view(name).size(), libcrypto_constant::param_unmodified},
                                   {nullptr, 0, nullptr, 0, 0}};
  begin(reinterpret_cast<const ossl_param_st*>(params));
}

Hmac::Hmac(const Hmac& other)
    : key_(other.key_),
      context_(Libcrypto::instance()->EVP_MAC_CTX_dup(other.context_.get()), other.context_.get_deleter()) {
  if (!context_) Libcrypto::instance().fail("EVP_MAC_CTX_dup(HMAC)");
}

// With the key each time: OpenSSL before 3.0.3 takes none for nothing to be done.
void Hmac::begin(const ossl_param_st* params) {
  static constexpr std::uint8_t none = 0;  // a null pointer would mean no key, not an empty one
  const Libcrypto& libcrypto = Libcrypto::instance();
  libcrypto.check(libcrypto->EVP_MAC_init(context_.get(), key_.empty() ? &none : key_.data(), key_.size(), params),
                  "EVP_MAC_init(HMAC)");
}

std::size_t Hmac::hash(const std::array<std::span<const std::uint8_t>, 2>& parts, std::uint8_t (&hash)[most_hash_len]) {
  const Libcrypto& libcrypto = Libcrypto::instance();
  begin(nullptr);
  for (const std::span<const std::uint8_t> part : parts) {
    libcrypto.check(libcrypto->EVP_MAC_update(context_.get(), part.data(), part.size()), "EVP_MAC_update(HMAC)");
  }
  std::size_t len = 0;
  libcrypto.check(libcrypto->EVP_MAC_final(context_.get(), hash, &len, most_hash_len), "EVP_MAC_final(HMAC)");
  return len;
}

bool Hmac::matches(const std::array<std::span<const std::uint8_t>, 2>& parts, std::span<const std::uint8_t> tag) {
  Secret<std::uint8_t[most_hash_len]> computed;
  const std::size_t len = hash(parts, *computed);
  return tag.size() <= len && equal_constant_time(*computed, tag.data(), tag.size());
}

void Hmac::compute(const std::array<std::span<const std::uint8_t>, 2>& parts, std::span<std::uint8_t> tag) {
  Secret<std::uint8_t[most_hash_len]> computed;
  const std::size_t len = hash(parts, *computed);
  if (tag.size() > len) refuse("HMAC: a tag of " + std::to_string(tag.size()) + " bytes, the hash has fewer");
  std::copy_n(*computed, tag.size(), tag.data());
}

}  // namespace warpcipher
