// SPDX-License-Identifier: Apache-2.0
// Cipher contexts of libcrypto. A key schedule takes longer than a short message, so a pool keeps the contexts of one
// key. A message borrows one of them and sets its IV.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cipher/list.hpp"
#include "engine/cpu/libcrypto.hpp"
#include "mode/mode.hpp"

namespace warpcipher {

// An implementation that libcrypto offers, and whether it pads by default.
struct LibcryptoCipher {
  const evp_cipher_st* evp;
  bool pads;
};

// AES in a mode, or ChaCha20 as a stream or an AEAD, fetched once for the life of the process. Throws
// Error{engine_failure} when no provider has it.
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
  // Makes no context yet. `key` must live as long as the pool.
  ContextPool(const LibcryptoCipher& cipher, const std::uint8_t* key, Direction direction)
      : cipher_(cipher), key_(key), direction_(direction) {}
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

  const LibcryptoCipher cipher_;
  const std::uint8_t* const key_;
  const Direction direction_;
  // A thread looks first in the cell that its number picks, without a lock; the rest goes to the overflow.
  std::array<std::atomic<Context*>, 4> cells_{};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Context>> overflow_;
};

}  // namespace warpcipher
