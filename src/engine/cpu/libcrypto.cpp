// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/libcrypto.hpp"

#include <dlfcn.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "core/thread_pool.hpp"
#include "mode/algorithm.hpp"
#include "mode/list.hpp"

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

namespace {

// OpenSSL has the same names, in any case.
std::string name_of(CipherId cipher, Mode mode) {
  const auto all = algorithms();
  return std::string(std::find_if(all.begin(), all.end(), [&](const Algorithm& algorithm) {
                       return algorithm.cipher.id == cipher && algorithm.mode.id == mode;
                     })->name);
}

// Lengths are int in EVP; a multiple of every block keeps chaining modes whole.
constexpr std::size_t max_update = std::size_t{1} << 30;

std::size_t cell_of_this_thread(std::size_t cells) {
  static constinit std::atomic<std::size_t> threads{0};
  thread_local constinit std::size_t number = 0;  // from 1 on
  if (number == 0) number = 1 + threads.fetch_add(1, std::memory_order_relaxed);
  return number % cells;
}

}  // namespace

LibcryptoCipher fetch_cipher(CipherId cipher, Mode mode) {
  static constinit std::array<std::array<std::atomic<const evp_cipher_st*>, std::tuple_size_v<Modes>>, cipher_count>
      fetched{};
  const auto row = static_cast<std::size_t>(cipher);
  const auto column = static_cast<std::size_t>(mode);
  std::atomic<const evp_cipher_st*>& entry = fetched.at(row).at(column);
  const bool pads = mode == Mode::ecb || mode == Mode::cbc;
  if (const evp_cipher_st* const evp = entry.load(std::memory_order_acquire)) return {evp, pads};

  const Libcrypto& libcrypto = Libcrypto::instance();
  const std::string name = name_of(cipher, mode);
  const NotAtFork scope;  // a fetch holds locks of libcrypto
  const evp_cipher_st* const evp = libcrypto->EVP_CIPHER_fetch(nullptr, name.c_str(), nullptr);
  if (evp == nullptr) libcrypto.fail(("EVP_CIPHER_fetch(" + name + ")").c_str());
  entry.store(evp, std::memory_order_release);  // two threads at once fetch the same object twice: one count too many
  return {evp, pads};
}

Context::Context(const LibcryptoCipher& cipher, const std::uint8_t* key, Direction direction)
    : evp_(Libcrypto::instance()->EVP_CIPHER_CTX_new()), encrypting_(direction == Direction::encrypt ? 1 : 0) {
  const Libcrypto& libcrypto = Libcrypto::instance();
  if (evp_ == nullptr) throw std::bad_alloc();
  try {
    libcrypto.check(libcrypto->EVP_CipherInit_ex2(evp_, cipher.evp, key, nullptr, encrypting_, nullptr),
                    "EVP_CipherInit_ex2 with a key");
    // Only where it means something: OpenSSL repeats the call inside each later EVP_CipherInit_ex2.
    if (cipher.pads) libcrypto.check(libcrypto->EVP_CIPHER_CTX_set_padding(evp_, 0), "EVP_CIPHER_CTX_set_padding");
  } catch (...) {
    libcrypto->EVP_CIPHER_CTX_free(evp_);
    throw;
  }
}

Context::~Context() { Libcrypto::instance()->EVP_CIPHER_CTX_free(evp_); }

void Context::start(const std::uint8_t* iv) {
  const Libcrypto& libcrypto = Libcrypto::instance();
  libcrypto.check(libcrypto->EVP_CipherInit_ex2(evp_, nullptr, nullptr, iv, encrypting_, nullptr),
                  "EVP_CipherInit_ex2 with an IV");
}

void Context::start(const std::uint8_t* key, const std::uint8_t* iv) {
  const Libcrypto& libcrypto = Libcrypto::instance();
  libcrypto.check(libcrypto->EVP_CipherInit_ex2(evp_, nullptr, key, iv, encrypting_, nullptr),
                  "EVP_CipherInit_ex2 with another key");
}

void Context::start_gcm(const std::uint8_t* iv, std::size_t iv_len) {
  if (iv_len != gcm_iv_len_) {
    const Libcrypto& libcrypto = Libcrypto::instance();
    libcrypto.check(libcrypto->EVP_CIPHER_CTX_ctrl(evp_, libcrypto_constant::ctrl_aead_set_iv_len,
                                                   static_cast<int>(iv_len), nullptr),
                    "EVP_CIPHER_CTX_ctrl(EVP_CTRL_AEAD_SET_IVLEN)");
    gcm_iv_len_ = iv_len;
  }
  start(iv);
}

void Context::update(const std::uint8_t* in, std::uint8_t* out, std::size_t len) {
  const Libcrypto& libcrypto = Libcrypto::instance();
  while (len > 0) {
    const std::size_t n = std::min(len, max_update);
    int written = 0;
    libcrypto.check(libcrypto->EVP_CipherUpdate(evp_, out, &written, in, static_cast<int>(n)), "EVP_CipherUpdate");
    in += n;
    out += n;
    len -= n;
  }
}

void Context::update_aad(const std::uint8_t* aad, std::size_t len) {
  const Libcrypto& libcrypto = Libcrypto::instance();
  while (len > 0) {
    const std::size_t n = std::min(len, max_update);
    int written = 0;
    libcrypto.check(libcrypto->EVP_CipherUpdate(evp_, nullptr, &written, aad, static_cast<int>(n)),
                    "EVP_CipherUpdate with additional data");
    aad += n;
    len -= n;
  }
}

void Context::finish_encrypt(std::uint8_t* tag, std::size_t tag_len) {
  const Libcrypto& libcrypto = Libcrypto::instance();
  std::uint8_t nothing[16];
  int written = 0;
  libcrypto.check(libcrypto->EVP_CipherFinal_ex(evp_, nothing, &written), "EVP_CipherFinal_ex");
  libcrypto.check(
      libcrypto->EVP_CIPHER_CTX_ctrl(evp_, libcrypto_constant::ctrl_aead_get_tag, static_cast<int>(tag_len), tag),
      "EVP_CIPHER_CTX_ctrl(EVP_CTRL_AEAD_GET_TAG)");
}

bool Context::finish_decrypt(const std::uint8_t* tag, std::size_t tag_len) {
  const Libcrypto& libcrypto = Libcrypto::instance();
  // EVP_CIPHER_CTX_ctrl takes a pointer to non-const for every type; this one only reads.
  libcrypto.check(libcrypto->EVP_CIPHER_CTX_ctrl(evp_, libcrypto_constant::ctrl_aead_set_tag, static_cast<int>(tag_len),
                                                 const_cast<std::uint8_t*>(tag)),
                  "EVP_CIPHER_CTX_ctrl(EVP_CTRL_AEAD_SET_TAG)");
  std::uint8_t nothing[16];
  int written = 0;
  if (libcrypto->EVP_CipherFinal_ex(evp_, nothing, &written) == 1) return true;
  libcrypto->ERR_clear_error();
  return false;
}

void Context::finish_gcm(std::uint8_t* tag) {
  if (encrypting_ == 0) {
    const Libcrypto& libcrypto = Libcrypto::instance();
    libcrypto.check(libcrypto->EVP_CipherInit_ex2(evp_, nullptr, nullptr, nullptr, 1, nullptr),
                    "EVP_CipherInit_ex2 from decryption to encryption");
  }
  finish_encrypt(tag, 16);
}

bool gives_decryption_tags() {
  static constinit FirstUse<bool> gives;
  return gives.get([] {
    const std::uint8_t key[16] = {1}, iv[12] = {2}, aad[20] = {3}, text[37] = {4};
    std::uint8_t ciphertext[sizeof text], decrypted[sizeof text], tag[16], again[16];
    const LibcryptoCipher cipher = fetch_cipher(CipherId::aes_128, Mode::gcm);
    Context encrypt(cipher, key, Direction::encrypt), decrypt(cipher, key, Direction::decrypt);
    encrypt.start_gcm(iv, sizeof iv);
    encrypt.update_aad(aad, sizeof aad);
    encrypt.update(text, ciphertext, sizeof text);
    encrypt.finish_gcm(tag);
    try {
      for (int i = 0; i < 2; ++i) {  // twice: the context must serve further messages
        decrypt.start_gcm(iv, sizeof iv);
        decrypt.update_aad(aad, sizeof aad);
        decrypt.update(ciphertext, decrypted, sizeof text);
        decrypt.finish_gcm(again);
        if (std::memcmp(tag, again, 16) != 0 || std::memcmp(text, decrypted, sizeof text) != 0) return false;
      }
    } catch (const Error&) {
      return false;
    }
    return true;
  });
}

ContextPool::~ContextPool() {
  for (auto& cell : cells_) delete cell.load();
}

std::unique_ptr<Context> ContextPool::take() {
  std::atomic<Context*>& cell = cells_[cell_of_this_thread(cells_.size())];
  if (Context* const context = cell.exchange(nullptr, std::memory_order_acquire)) {
    return std::unique_ptr<Context>(context);
  }
  {
    const NotAtFork scope;
    const std::lock_guard lock(mutex_);
    if (!overflow_.empty()) {
      std::unique_ptr<Context> context = std::move(overflow_.back());
      overflow_.pop_back();
      return context;
    }
  }
  return std::make_unique<Context>(fetch_cipher(cipher_, mode_), key_, direction_);
}

void ContextPool::give(std::unique_ptr<Context> context) noexcept {
  std::atomic<Context*>& cell = cells_[cell_of_this_thread(cells_.size())];
  Context* expected = nullptr;
  if (cell.compare_exchange_strong(expected, context.get(), std::memory_order_release, std::memory_order_relaxed)) {
    static_cast<void>(context.release());  // the cell owns it now
    return;
  }
  try {
    const NotAtFork scope;
    const std::lock_guard lock(mutex_);
    overflow_.push_back(std::move(context));
  } catch (const std::bad_alloc&) {  // then the context is freed, and made again when it is wanted
  }
}

}  // namespace warpcipher
