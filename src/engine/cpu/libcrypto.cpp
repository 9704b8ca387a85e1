// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/libcrypto.hpp"

#include <dlfcn.h>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "core/thread_pool.hpp"

namespace warpcipher {
namespace {

constexpr const char* library_name = "libcrypto.so.3";
constexpr const char* remedy =
    "install OpenSSL 3 (package libssl3 or libssl3t64 on Debian and Ubuntu, openssl-libs on Fedora and RHEL)";

// Fills one member of the table; the first symbol that is missing is named in `missing`.
template <class Function>
void resolve(void* library, const char* name, Function& function, std::string& missing) {
  void* const symbol = dlsym(library, name);
  if (symbol == nullptr && missing.empty()) missing = name;
  function = reinterpret_cast<Function>(symbol);
}

}  // namespace

Libcrypto::Libcrypto() {
  const NotAtFork scope;  // the loader holds a lock
  void* library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const detail = dlerror();
    unavailable_reason_ =
        std::string(library_name) + " cannot be loaded (" + (detail != nullptr ? detail : "no detail") + "): " + remedy;
    return;
  }
  LibcryptoFunctions& f = functions_;
  std::string missing;
  resolve(library, "EVP_CIPHER_fetch", f.EVP_CIPHER_fetch, missing);
  resolve(library, "EVP_CIPHER_CTX_new", f.EVP_CIPHER_CTX_new, missing);
  resolve(library, "EVP_CIPHER_CTX_free", f.EVP_CIPHER_CTX_free, missing);
  resolve(library, "EVP_CIPHER_CTX_ctrl", f.EVP_CIPHER_CTX_ctrl, missing);
  resolve(library, "EVP_CIPHER_CTX_set_padding", f.EVP_CIPHER_CTX_set_padding, missing);
  resolve(library, "EVP_CipherInit_ex2", f.EVP_CipherInit_ex2, missing);
  resolve(library, "EVP_CipherUpdate", f.EVP_CipherUpdate, missing);
  resolve(library, "EVP_CipherFinal_ex", f.EVP_CipherFinal_ex, missing);
  resolve(library, "EVP_KDF_fetch", f.EVP_KDF_fetch, missing);
  resolve(library, "EVP_KDF_free", f.EVP_KDF_free, missing);
  resolve(library, "EVP_KDF_CTX_new", f.EVP_KDF_CTX_new, missing);
  resolve(library, "EVP_KDF_CTX_free", f.EVP_KDF_CTX_free, missing);
  resolve(library, "EVP_KDF_derive", f.EVP_KDF_derive, missing);
  resolve(library, "EVP_MAC_fetch", f.EVP_MAC_fetch, missing);
  resolve(library, "EVP_MAC_free", f.EVP_MAC_free, missing);
  resolve(library, "EVP_MAC_CTX_new", f.EVP_MAC_CTX_new, missing);
  resolve(library, "EVP_MAC_CTX_dup", f.EVP_MAC_CTX_dup, missing);
  resolve(library, "EVP_MAC_CTX_free", f.EVP_MAC_CTX_free, missing);
  resolve(library, "EVP_MAC_init", f.EVP_MAC_init, missing);
  resolve(library, "EVP_MAC_update", f.EVP_MAC_update, missing);
  resolve(library, "EVP_MAC_final", f.EVP_MAC_final, missing);
  resolve(library, "ERR_get_error", f.ERR_get_error, missing);
  resolve(library, "ERR_error_string_n", f.ERR_error_string_n, missing);
  resolve(library, "ERR_clear_error", f.ERR_clear_error, missing);
  resolve(library, "OpenSSL_version", f.OpenSSL_version, missing);
  resolve(library, "OPENSSL_init_crypto", f.OPENSSL_init_crypto, missing);
  if (!missing.empty()) {
    unavailable_reason_ = std::string(library_name) + " has no function " + missing + ": " + remedy;
    return;
  }
  version_ = f.OpenSSL_version(libcrypto_constant::version_text);
  // libcrypto frees its memory of a thread when the thread ends, but no more once its own clean-up has run at exit.
  // So that is registered first, and the pool's threads end before it. It is registered with the first thing that
  // libcrypto is asked to load: without options the call does nothing.
  check(f.OPENSSL_init_crypto(libcrypto_constant::load_error_texts, nullptr), "initialising libcrypto");
  ThreadPool::stop_at_exit();
}

const Libcrypto& Libcrypto::instance() {
  static constinit FirstUse<Libcrypto> library;
  return library.get([] { return Libcrypto(); });
}

void Libcrypto::fail(const char* what) const {
  char text[256] = "no detail";
  if (const unsigned long code = functions_.ERR_get_error(); code != 0) {
    functions_.ERR_error_string_n(code, text, sizeof text);
  }
  functions_.ERR_clear_error();
  throw Error(Status::engine_failure, version_, ": ", what, " failed: ", text);
}

}  // namespace warpcipher
