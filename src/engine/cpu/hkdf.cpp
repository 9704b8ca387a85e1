// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/hkdf.hpp"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "engine/cpu/libcrypto.hpp"

namespace warpcipher {
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
  throw Error(Status::invalid_argument,
              "HKDF: unknown hash '" + std::string(name.substr(0, 32)) + "': expected sha1, sha256, sha384 or sha512");
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
    throw Error(Status::invalid_argument, "HKDF with " + std::string(hash.name) + " gives 1 to " +
                                              std::to_string(255 * hash.size) + " bytes, asked for " +
                                              std::to_string(length));
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
