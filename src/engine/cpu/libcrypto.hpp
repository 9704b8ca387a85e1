// SPDX-License-Identifier: Apache-2.0
// OpenSSL's libcrypto, loaded at run time: the few functions the CPU engine calls, declared here by hand, so that the
// library builds without OpenSSL's headers and loads without OpenSSL.
//
// The ABI is of libcrypto.so.3 (OpenSSL 3.x), which its makers keep stable for the whole series. The unit tests
// hold every declaration against the headers if they are installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// OpenSSL's own structures. All but OSSL_PARAM are opaque.
extern "C" {
struct ossl_lib_ctx_st;
struct evp_cipher_st;
struct evp_cipher_ctx_st;
struct evp_kdf_st;
struct evp_kdf_ctx_st;
struct evp_mac_st;
struct evp_mac_ctx_st;
struct ossl_param_st;
struct ossl_init_settings_st;
}

namespace warpcipher {

// OSSL_PARAM of <openssl/core.h>. Our own type, so that this header can stand beside OpenSSL's.
struct LibcryptoParam {
  const char* key;
  unsigned int data_type;
  void* data;
  std::size_t data_size;
  std::size_t return_size;
};

// Values of OpenSSL's macros.
namespace libcrypto_constant {
inline constexpr int ctrl_aead_set_iv_len = 0x9;                               // EVP_CTRL_AEAD_SET_IVLEN
inline constexpr int ctrl_aead_get_tag = 0x10;                                 // EVP_CTRL_AEAD_GET_TAG
inline constexpr int ctrl_aead_set_tag = 0x11;                                 // EVP_CTRL_AEAD_SET_TAG
inline constexpr unsigned int param_utf8_string = 4;                           // OSSL_PARAM_UTF8_STRING
inline constexpr unsigned int param_octet_string = 5;                          // OSSL_PARAM_OCTET_STRING
inline constexpr std::size_t param_unmodified = static_cast<std::size_t>(-1);  // OSSL_PARAM_UNMODIFIED
inline constexpr std::uint64_t load_error_texts = 0x2;                         // OPENSSL_INIT_LOAD_CRYPTO_STRINGS
inline constexpr int version_text = 0;                                         // OPENSSL_VERSION
}  // namespace libcrypto_constant

// Each member is the OpenSSL function of its name; their manual pages describe them.
struct LibcryptoFunctions {
  using Context = evp_cipher_ctx_st;

  evp_cipher_st* (*EVP_CIPHER_fetch)(ossl_lib_ctx_st*, const char* algorithm, const char* properties);
  Context* (*EVP_CIPHER_CTX_new)();
  void (*EVP_CIPHER_CTX_free)(Context*);
  int (*EVP_CIPHER_CTX_ctrl)(Context*, int type, int arg, void* ptr);
  int (*EVP_CIPHER_CTX_set_padding)(Context*, int pad);
  int (*EVP_CipherInit_ex2)(Context*, const evp_cipher_st*, const unsigned char* key, const unsigned char* iv, int enc,
                            const ossl_param_st*);
  int (*EVP_CipherUpdate)(Context*, unsigned char* out, int* outl, const unsigned char* in, int inl);
  int (*EVP_CipherFinal_ex)(Context*, unsigned char* out, int* outl);

  evp_kdf_st* (*EVP_KDF_fetch)(ossl_lib_ctx_st*, const char* algorithm, const char* properties);
  void (*EVP_KDF_free)(evp_kdf_st*);
  evp_kdf_ctx_st* (*EVP_KDF_CTX_new)(evp_kdf_st*);
  void (*EVP_KDF_CTX_free)(evp_kdf_ctx_st*);
  int (*EVP_KDF_derive)(evp_kdf_ctx_st*, unsigned char* key, std::size_t keylen, const ossl_param_st*);

  evp_mac_st* (*EVP_MAC_fetch)(ossl_lib_ctx_st*, const char* algorithm, const char* properties);
  void (*EVP_MAC_free)(evp_mac_st*);
  evp_mac_ctx_st* (*EVP_MAC_CTX_new)(evp_mac_st*);
  evp_mac_ctx_st* (*EVP_MAC_CTX_dup)(const evp_mac_ctx_st*);
  void (*EVP_MAC_CTX_free)(evp_mac_ctx_st*);
  int (*EVP_MAC_init)(evp_mac_ctx_st*, const unsigned char* key, std::size_t keylen, const ossl_param_st*);
  int (*EVP_MAC_update)(evp_mac_ctx_st*, const unsigned char* data, std::size_t datalen);
  int (*EVP_MAC_final)(evp_mac_ctx_st*, unsigned char* out, std::size_t* outl, std::size_t outsize);

  unsigned long (*ERR_get_error)();
  void (*ERR_error_string_n)(unsigned long code, char* text, std::size_t len);
  void (*ERR_clear_error)();
  const char* (*OpenSSL_version)(int type);
  int (*OPENSSL_init_crypto)(std::uint64_t options, const ossl_init_settings_st*);
};

// The loaded library. One in a process, never unloaded: key contexts may outlive everything else.
class Libcrypto {
 public:
  // Looks for the library once. Prefers the copy that the process already has: an interpreter that links OpenSSL
  // keeps a single one, with its configuration.
  static const Libcrypto& instance();

  // Whether the library is there.
  static bool is_here() { return instance().unavailable_reason().empty(); }

  // Empty when the library is there, else the missing part and the package that holds it.
  const std::string& unavailable_reason() const noexcept { return unavailable_reason_; }

  // "OpenSSL 3.0.19 27 Jan 2026"; empty when unavailable.
  const std::string& version() const noexcept { return version_; }

  // Only to be called through when unavailable_reason() is empty.
  const LibcryptoFunctions* operator->() const noexcept { return &functions_; }

  // Throws Error{engine_failure} with `what` and OpenSSL's own text, and empties its error queue of this thread.
  [[noreturn]] void fail(const char* what) const;

  // fail(what) unless `result` is OpenSSL's 1.
  void check(int result, const char* what) const {
    if (result != 1) fail(what);
  }

 private:
  Libcrypto();

  LibcryptoFunctions functions_{};
  std::string unavailable_reason_;
  std::string version_;
};

}  // namespace warpcipher
