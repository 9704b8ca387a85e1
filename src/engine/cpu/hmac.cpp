// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/hmac.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/fork.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/libcrypto.hpp"

namespace warpcipher {
namespace {

const char* libcrypto_name(std::string_view hash) {
  if (hash == "sha1") return "SHA1";
  if (hash == "sha256") return "SHA256";
  if (hash == "sha512") return "SHA512";
  refuse("HMAC: unknown hash '", hash.substr(0, 32), "': expected sha1, sha256 or sha512");
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
  if (tag.size() > len) refuse("HMAC: a tag of ", tag.size(), " bytes, the hash has fewer");
  std::copy_n(*computed, tag.size(), tag.data());
}

namespace {

struct Hash {
  std::string_view name;
  const char* libcrypto_name;
  std::size_t size;
};

constexpr std::array<Hash, 4> hashes{
    {{"sha1", "SHA1", 20}, {"sha256", "SHA256", 32}, {"sha384", "SHA384", 48}, {"sha512", "SHA512", 64}}};

const Hash& find_hash(std::string_view name) {
  for (const Hash& hash : hashes) {
    if (hash.name == name) return hash;
  }
  refuse("HKDF: unknown hash '", name.substr(0, 32), "': expected sha1, sha256, sha384 or sha512");
}

LibcryptoParam octets(const char* key, std::span<const std::uint8_t> bytes) {
  // OSSL_PARAM is one type for inputs and outputs; libcrypto only reads these. An empty string still takes an address.
  static constexpr std::uint8_t none = 0;
  const std::uint8_t* const data = bytes.empty() ? &none : bytes.data();
  return {key, libcrypto_constant::param_octet_string, const_cast<std::uint8_t*>(data), bytes.size(),
          libcrypto_constant::param_unmodified};
}

LibcryptoParam text(const char* key, std::string_view value) {
  return {key, libcrypto_constant::param_utf8_string, const_cast<char*>(value.data()), value.size(),
          libcrypto_constant::param_unmodified};
}

SecretBytes derive(std::string_view mode, std::string_view hash_name, std::span<const std::uint8_t> key,
                   std::span<const std::uint8_t> salt, std::span<const std::uint8_t> info, std::size_t length) {
  const Hash& hash = find_hash(hash_name);
  if (length == 0 || length > 255 * hash.size) {
    refuse("HKDF with ", hash.name, " gives 1 to ", 255 * hash.size, " bytes, asked for ", length);
  }
  const Libcrypto& libcrypto = Libcrypto::instance();
  if (!libcrypto.unavailable_reason().empty()) {
    throw Error(Status::engine_unavailable, "HKDF: " + libcrypto.unavailable_reason());
  }
  const NotAtFork scope;  // libcrypto fetches algorithms in each call, and holds locks meanwhile
  const std::unique_ptr<evp_kdf_st, void (*)(evp_kdf_st*)> kdf(libcrypto->EVP_KDF_fetch(nullptr, "HKDF", nullptr),
                                                               libcrypto->EVP_KDF_free);
  if (!kdf) libcrypto.fail("EVP_KDF_fetch(HKDF)");
  const std::unique_ptr<evp_kdf_ctx_st, void (*)(evp_kdf_ctx_st*)> context(libcrypto->EVP_KDF_CTX_new(kdf.get()),
                                                                           libcrypto->EVP_KDF_CTX_free);
  if (!context) libcrypto.fail("EVP_KDF_CTX_new(HKDF)");

  // Without a salt, OpenSSL takes the zeros itself; it joins the info parameters, and takes none as empty.
  std::vector<LibcryptoParam> params;
  params.push_back(text("mode", mode));
  params.push_back(text("digest", hash.libcrypto_name));
  params.push_back(octets("key", key));
  if (!salt.empty()) params.push_back(octets("salt", salt));
  if (!info.empty()) params.push_back(octets("info", info));
  params.push_back({nullptr, 0, nullptr, 0, 0});

  SecretBytes out(length);
  libcrypto.check(libcrypto->EVP_KDF_derive(context.get(), out.data(), length,
                                            reinterpret_cast<const ossl_param_st*>(params.data())),
                  "EVP_KDF_derive(HKDF)");
  return out;
}

}  // namespace

SecretBytes hkdf(std::string_view hash_name, std::span<const std::uint8_t> ikm, std::span<const std::uint8_t> salt,
                 std::span<const std::uint8_t> info, std::size_t length) {
  return derive("EXTRACT_AND_EXPAND", hash_name, ikm, salt, info, length);
}

SecretBytes hkdf_expand(std::string_view hash_name, std::span<const std::uint8_t> prk,
                        std::span<const std::uint8_t> info, std::size_t length) {
  return derive("EXPAND_ONLY", hash_name, prk, {}, info, length);
}

}  // namespace warpcipher
