// SPDX-License-Identifier: Apache-2.0
// The hand-made declarations of libcrypto against OpenSSL's headers, where they are installed, HKDF against RFC
// 5869, and HMAC against RFC 4231 and RFC 2202.
#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <vector>

#include "core/error.hpp"
#include "engine/cpu/hmac.hpp"
#include "engine/cpu/libcrypto.hpp"

#if __has_include(<openssl/evp.h>)
#include <openssl/core.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#if OPENSSL_VERSION_MAJOR == 3

#include <cstddef>

#define WARPCIPHER_SAME_TYPE(name)                                                                 \
  static_assert(std::is_same_v<decltype(warpcipher::LibcryptoFunctions::name), decltype(&::name)>, \
                "declared otherwise in OpenSSL's headers")

WARPCIPHER_SAME_TYPE(EVP_CIPHER_fetch);
WARPCIPHER_SAME_TYPE(EVP_CIPHER_CTX_new);
WARPCIPHER_SAME_TYPE(EVP_CIPHER_CTX_free);
WARPCIPHER_SAME_TYPE(EVP_CIPHER_CTX_ctrl);
WARPCIPHER_SAME_TYPE(EVP_CIPHER_CTX_set_padding);
WARPCIPHER_SAME_TYPE(EVP_CipherInit_ex2);
WARPCIPHER_SAME_TYPE(EVP_CipherUpdate);
WARPCIPHER_SAME_TYPE(EVP_CipherFinal_ex);
WARPCIPHER_SAME_TYPE(EVP_KDF_fetch);
WARPCIPHER_SAME_TYPE(EVP_KDF_free);
WARPCIPHER_SAME_TYPE(EVP_KDF_CTX_new);
WARPCIPHER_SAME_TYPE(EVP_KDF_CTX_free);
WARPCIPHER_SAME_TYPE(EVP_KDF_derive);
WARPCIPHER_SAME_TYPE(EVP_MAC_fetch);
WARPCIPHER_SAME_TYPE(EVP_MAC_free);
WARPCIPHER_SAME_TYPE(EVP_MAC_CTX_new);
WARPCIPHER_SAME_TYPE(EVP_MAC_CTX_dup);
WARPCIPHER_SAME_TYPE(EVP_MAC_CTX_free);
WARPCIPHER_SAME_TYPE(EVP_MAC_init);
WARPCIPHER_SAME_TYPE(EVP_MAC_update);
WARPCIPHER_SAME_TYPE(EVP_MAC_final);
WARPCIPHER_SAME_TYPE(ERR_get_error);
WARPCIPHER_SAME_TYPE(ERR_error_string_n);
WARPCIPHER_SAME_TYPE(ERR_clear_error);
WARPCIPHER_SAME_TYPE(OpenSSL_version);
WARPCIPHER_SAME_TYPE(OPENSSL_init_crypto);

static_assert(warpcipher::libcrypto_constant::ctrl_aead_set_iv_len == EVP_CTRL_AEAD_SET_IVLEN);
static_assert(warpcipher::libcrypto_constant::ctrl_aead_get_tag == EVP_CTRL_AEAD_GET_TAG);
static_assert(warpcipher::libcrypto_constant::ctrl_aead_set_tag == EVP_CTRL_AEAD_SET_TAG);
static_assert(warpcipher::libcrypto_constant::param_utf8_string == OSSL_PARAM_UTF8_STRING);
static_assert(warpcipher::libcrypto_constant::param_octet_string == OSSL_PARAM_OCTET_STRING);
static_assert(warpcipher::libcrypto_constant::param_unmodified == OSSL_PARAM_UNMODIFIED);
static_assert(warpcipher::libcrypto_constant::load_error_texts == OPENSSL_INIT_LOAD_CRYPTO_STRINGS);
static_assert(warpcipher::libcrypto_constant::version_text == OPENSSL_VERSION);
static_assert(sizeof(warpcipher::LibcryptoParam) == sizeof(OSSL_PARAM));
static_assert(offsetof(warpcipher::LibcryptoParam, key) == offsetof(OSSL_PARAM, key));
static_assert(offsetof(warpcipher::LibcryptoParam, data_type) == offsetof(OSSL_PARAM, data_type));
static_assert(offsetof(warpcipher::LibcryptoParam, data) == offsetof(OSSL_PARAM, data));
static_assert(offsetof(warpcipher::LibcryptoParam, data_size) == offsetof(OSSL_PARAM, data_size));
static_assert(offsetof(warpcipher::LibcryptoParam, return_size) == offsetof(OSSL_PARAM, return_size));

#endif
#endif

namespace warpcipher {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes from_hex(const std::string& hex) {
  Bytes bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

Bytes counted(std::uint8_t first, std::size_t len) {
  Bytes bytes(len);
  for (std::size_t i = 0; i < len; ++i) bytes[i] = static_cast<std::uint8_t>(first + i);
  return bytes;
}

Bytes derive(const char* hash, const Bytes& ikm, const Bytes& salt, const Bytes& info, std::size_t length) {
  const SecretBytes out = hkdf(hash, ikm, salt, info, length);
  return Bytes(out.data(), out.data() + out.size());
}

#define SKIP_WITHOUT_LIBCRYPTO() \
  if (!Libcrypto::instance().unavailable_reason().empty()) GTEST_SKIP() << Libcrypto::instance().unavailable_reason()

TEST(Libcrypto, SaysItsVersionOrWhatIsMissing) {
  const Libcrypto& libcrypto = Libcrypto::instance();
  if (libcrypto.unavailable_reason().empty()) {
    EXPECT_EQ(libcrypto.version().rfind("OpenSSL 3.", 0), 0u) << libcrypto.version();
  } else {
    EXPECT_NE(libcrypto.unavailable_reason().find("libcrypto.so.3"), std::string::npos);
    EXPECT_TRUE(libcrypto.version().empty());
  }
}

TEST(Libcrypto, FailsWithOpenSslsOwnText) {
  SKIP_WITHOUT_LIBCRYPTO();
  const Libcrypto& libcrypto = Libcrypto::instance();
  ASSERT_EQ(libcrypto->EVP_CIPHER_fetch(nullptr, "no-such-cipher", nullptr), nullptr);
  try {
    libcrypto.fail("EVP_CIPHER_fetch(no-such-cipher)");
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::engine_failure);
    EXPECT_NE(std::string(error.what()).find("no-such-cipher"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("unsupported"), std::string::npos) << error.what();
  }
  EXPECT_EQ(libcrypto->ERR_get_error(), 0u);
}

// RFC 5869, appendix A.
TEST(Hkdf, GivesTheAnswersOfItsRfc) {
  SKIP_WITHOUT_LIBCRYPTO();
  const Bytes ikm22(22, 0x0b);
  EXPECT_EQ(derive("sha256", ikm22, counted(0x00, 13), counted(0xf0, 10), 42),  // A.1
            from_hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"));
  EXPECT_EQ(derive("sha256", counted(0x00, 80), counted(0x60, 80), counted(0xb0, 80), 82),  // A.2
            from_hex("b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
                     "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87"));
  EXPECT_EQ(derive("sha256", ikm22, {}, {}, 42),  // A.3
            from_hex("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"));
  EXPECT_EQ(derive("sha1", Bytes(11, 0x0b), counted(0x00, 13), counted(0xf0, 10), 42),  // A.4
            from_hex("085a01ea1b10f36933068b56efa5ad81a4f14b822f5b091568a9cdd4f155fda2c22e422478d305f3f896"));
  EXPECT_EQ(derive("sha1", ikm22, {}, {}, 42),  // A.6
            from_hex("0ac1af7002b3d761d1e55298da9d0506b9ae52057220a306e07b6b87e8df21d0ea00033de03984d34918"));
}

TEST(Hkdf, TakesEveryHashAndEmptyInputs) {
  SKIP_WITHOUT_LIBCRYPTO();
  EXPECT_EQ(derive("sha512", Bytes(3, 1), {}, {}, 255 * 64).size(), 255u * 64);
  // An empty salt is a string of zeros as long as the hash (section 2.2).
  EXPECT_EQ(derive("sha256", {}, {}, {1}, 16), derive("sha256", {}, Bytes(32), {1}, 16));
  EXPECT_NE(derive("sha256", {}, {}, {1}, 16), derive("sha256", {}, {}, {}, 16));
}

TEST(Hkdf, RefusesUnknownHashesAndLengths) {
  for (const auto& [hash, length] :
       {std::pair{"md5", 16}, {"SHA256", 16}, {"sha256", 0}, {"sha256", 255 * 32 + 1}, {"sha1", 255 * 20 + 1}}) {
    try {
      hkdf(hash, {}, {}, {}, static_cast<std::size_t>(length));
      ADD_FAILURE() << hash << " " << length;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_argument);
    }
  }
}

// RFC 4231, section 4.3; RFC 2202, section 3, case 2.
TEST(Hmac, GivesTheAnswersOfItsRfcs) {
  SKIP_WITHOUT_LIBCRYPTO();
  const std::string key = "Jefe", text = "what do ya want for nothing?";
  const Bytes key_bytes(key.begin(), key.end()), first(text.begin(), text.begin() + 9),
      rest(text.begin() + 9, text.end());
  for (const auto& [hash, hex] : {std::pair{"sha1", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"},
                                  {"sha256", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
                                  {"sha512",
                                   "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d0"
                                   "34f65f8f0e6fdcaeab1a34d4a6b"
                                   "4b636e070a38bce737"}}) {
    const Bytes tag = from_hex(hex);
    Hmac hmac(hash, key_bytes);
    Hmac copy(hmac);
    for (int i = 0; i < 2; ++i) {  // one text after another
      EXPECT_TRUE(hmac.matches({{first, rest}}, tag)) << hash;
      EXPECT_FALSE(hmac.matches({{rest, first}}, tag)) << hash;
    }
    EXPECT_TRUE(copy.matches({{first, rest}}, {tag.data(), 10}));
    Bytes other = tag;
    other.back() ^= 1;
    EXPECT_FALSE(copy.matches({{first, rest}}, other)) << hash;
    other = tag;
    other.push_back(0);
    EXPECT_FALSE(copy.matches({{first, rest}}, other)) << "longer than the hash";
  }
  EXPECT_THROW(Hmac("md5", key_bytes), Error);
}

}  // namespace
}  // namespace warpcipher
