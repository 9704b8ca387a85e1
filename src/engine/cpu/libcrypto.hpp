// SPDX-License-Identifier: Apache-2.0
// OpenSSL's libcrypto, loaded at run time: the few functions the CPU engine calls, declared here by hand, so that the
// library builds without OpenSSL's headers and loads without OpenSSL.
//
// The ABI is of libcrypto.so.3 (OpenSSL 3.x), which its makers keep stable for the whole series. The unit tests
// hold every declaration against the headers if they are installed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cipher/list.hpp"
#include "mode/mode.hpp"

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

namespace warpcipher {

// Cipher contexts of libcrypto. A key schedule takes longer than a short message, so a pool keeps the contexts of one
// key. A message borrows one of them and sets its IV.

// An implementation that libcrypto offers, and whether it pads by default.
struct LibcryptoCipher {
  const evp_cipher_st* evp;
  bool pads;
};

// A cipher in a mode, fetched once for the life of the process. Throws Error{engine_failure} when no provider has it.
LibcryptoCipher fetch_cipher(CipherId cipher, Mode mode);

// One EVP_CIPHER_CTX with its key, direction and no padding. Not for two threads at once. Every function throws
// Error{engine_failure} when libcrypto refuses.
class Context {
 public:
  // key: as long as the cipher's; read, not kept.
  Context(const LibcryptoCipher& cipher, const std::uint8_t* key, Direction direction);
  ~Context();  // libcrypto wipes freed memory
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Starts a message of a mode whose IV is one block, of ChaCha20 (16 bytes) or of ChaCha20-Poly1305 (12 bytes).
  void start(const std::uint8_t* iv);

  // Takes another key, and starts a message under it; `iv` may be nullptr.
  void start(const std::uint8_t* key, const std::uint8_t* iv);

  // Starts a GCM message; iv_len is 1 to max_gcm_iv_len bytes.
  void start_gcm(const std::uint8_t* iv, std::size_t iv_len);
  static constexpr std::size_t max_gcm_iv_len = 128;  // libcrypto's limit; longer ones are hashed by the caller

  // Transforms the next len bytes, any number of them; in == out allowed. In block modes len is a multiple of the
  // block.
  void update(const std::uint8_t* in, std::uint8_t* out, std::size_t len);

  // Authenticates the next len bytes (of an AEAD, before the text).
  void update_aad(const std::uint8_t* aad, std::size_t len);

  // Ends a message of an AEAD: gives its tag, or compares it in constant time and says whether it matches.
  void finish_encrypt(std::uint8_t* tag, std::size_t tag_len);
  bool finish_decrypt(const std::uint8_t* tag, std::size_t tag_len);

  // Ends a GCM message of either direction and gives its whole tag of 16 bytes, compared with nothing. When decrypting
  // only if gives_decryption_tags().
  void finish_gcm(std::uint8_t* tag);

 private:
  evp_cipher_ctx_st* evp_;
  const int encrypting_;
  std::size_t gcm_iv_len_ = 12;  // libcrypto's default
};

// True when this libcrypto computes the tag of a message it decrypts: turned to encryption before its end, a context
// keeps GHASH, which is over the ciphertext in both directions, and then gives the tag. No manual promises it, so it is
// tried on a small message, once.
bool gives_decryption_tags();

// The idle contexts of one key, cipher and direction.
class ContextPool {
 public:
  // Asks nothing of libcrypto before it lends a context. `key` must live as long as the pool.
  ContextPool(CipherId cipher, Mode mode, const std::uint8_t* key, Direction direction)
      : cipher_(cipher), mode_(mode), key_(key), direction_(direction) {}
  ~ContextPool();
  ContextPool(const ContextPool&) = delete;
  ContextPool& operator=(const ContextPool&) = delete;

  // A borrowed context, given back at the end of the scope.
  class Lease {
   public:
    Lease() = default;
    explicit Lease(ContextPool& pool) : pool_(&pool), context_(pool.take()) {}
    Lease(Lease&& other) noexcept : pool_(other.pool_), context_(std::move(other.context_)) {}
    Lease& operator=(Lease&& other) noexcept {
      if (context_) pool_->give(std::move(context_));
      pool_ = other.pool_;
      context_ = std::move(other.context_);
      return *this;
    }
    ~Lease() {
      if (context_) pool_->give(std::move(context_));
    }
    Context* operator->() const noexcept { return context_.get(); }
    Context& operator*() const noexcept { return *context_; }

   private:
    ContextPool* pool_ = nullptr;
    std::unique_ptr<Context> context_;
  };

  Lease borrow() { return Lease(*this); }

 private:
  std::unique_ptr<Context> take();
  void give(std::unique_ptr<Context> context) noexcept;

  const CipherId cipher_;
  const Mode mode_;
  const std::uint8_t* const key_;
  const Direction direction_;
  // A thread looks first in the cell that its number picks, without a lock; the rest goes to the overflow.
  std::array<std::atomic<Context*>, 4> cells_{};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Context>> overflow_;
};

}  // namespace warpcipher
