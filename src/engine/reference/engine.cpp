// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.hpp"

#include <cstring>
#include <optional>

#include "cipher/aes_reference.hpp"
#include "cipher/chacha.hpp"
#include "cipher/des.hpp"
#include "core/error.hpp"
#include "core/fork.hpp"
#include "mode/list.hpp"

namespace warpcipher {
namespace {

// A block is a call: inlined into every mode, this file takes three times as long to compile under sanitizers.
class AesCipher {
 public:
  static constexpr std::size_t block_len = 16;
  AesCipher(const std::uint8_t* key, std::size_t key_len) : schedule_(aes::reference::expand_key(key, key_len)) {}
  [[gnu::noinline]] void encrypt_block(const std::uint8_t* in, std::uint8_t* out) const {
    aes::reference::encrypt_block(*schedule_, in, out);
  }
  [[gnu::noinline]] void decrypt_block(const std::uint8_t* in, std::uint8_t* out) const {
    aes::reference::decrypt_block(*schedule_, in, out);
  }

 private:
  Secret<aes::reference::Schedule> schedule_;
};

class DesCipher {
 public:
  static constexpr std::size_t block_len = 8;
  DesCipher(const std::uint8_t* key, std::size_t key_len) : schedule_(des::reference::expand_key(key, key_len)) {}
  [[gnu::noinline]] void encrypt_block(const std::uint8_t* in, std::uint8_t* out) const {
    des::reference::encrypt_block(*schedule_, in, out);
  }
  [[gnu::noinline]] void decrypt_block(const std::uint8_t* in, std::uint8_t* out) const {
    des::reference::decrypt_block(*schedule_, in, out);
  }

 private:
  Secret<des::reference::Schedule> schedule_;
};

// ChaCha20, or XChaCha20 if the nonce is that long.
template <std::size_t NonceLen>
class ChaChaCipher {
 public:
  static constexpr std::size_t nonce_len = NonceLen;
  ChaChaCipher(const std::uint8_t* key, std::size_t) : key_(key) {}
  void start(const std::uint8_t* nonce) { message_.emplace(key_, nonce, nonce_len); }
  [[gnu::noinline]] void key_stream(std::uint32_t counter, std::uint8_t* out) const {
    const Secret<chacha::State> block(chacha::key_stream(*message_->state(counter)));
    chacha::store_words(out, block->words, 16);
  }

 private:
  const std::uint8_t* key_;
  std::optional<chacha::MessageKey> message_;
};

template <class M, class C>
bool run_siv(const Key& key, Direction direction, bool compute_tag, const ModeInput& input) {
  Secret<typename M::Keys> keys;
  M::derive(C(key.bytes(), key.size()), key.size(), input.iv, *keys);
  const C cipher(keys->encryption, key.size());
  if (direction == Direction::decrypt && !compute_tag) return M::decrypt(cipher, keys->authentication, input);
  if (direction == Direction::encrypt) {
    M::encrypt(cipher, keys->authentication, input);
  } else {
    M::decrypt_unchecked(cipher, keys->authentication, input.iv + gcm_siv_nonce_len, input);
  }
  return true;
}

template <class M, class C>
bool run_mode(const Key& key, Direction direction, bool compute_tag, const ModeInput& input) {
  if constexpr (M::info.two_keys) {
    static_assert(M::info.tag_lens == 0, "nobody would look at the verdict of decryption");
    const std::size_t half = key.size() / 2;
    const C data(key.bytes(), half), tweak(key.bytes() + half, half);
    direction == Direction::encrypt ? M::encrypt(data, tweak, input) : M::decrypt(data, tweak, input);
    return true;
  } else if constexpr (M::info.id == Mode::gcm_siv) {
    return run_siv<M, C>(key, direction, compute_tag, input);
  } else {
    C cipher(key.bytes(), key.size());
    if (direction == Direction::encrypt) {
      M::encrypt(cipher, input);
    } else if constexpr (M::info.tag_lens == 0) {
      M::decrypt(cipher, input);
    } else {
      if (!compute_tag) return M::decrypt(cipher, input);
      M::decrypt_unchecked(cipher, input);
    }
    return true;
  }
}

// Finds the mode in the list and runs it; false when a tag did not match.
bool run_input(const Message& m, const ModeInput& input) {
  const Key& key = *m.key;
  const Algorithm& algorithm = key.algorithm();
  bool ok = false;
  const auto try_mode = [&]<class M>(const M&) {
    if (M::info.id != algorithm.mode.id) return false;
    if constexpr (M::info.id == Mode::stream || M::info.id == Mode::poly1305) {
      const bool extended = algorithm.cipher.id == CipherId::xchacha20;
      ok = (extended ? run_mode<M, ChaChaCipher<xchacha_nonce_len>>
                     : run_mode<M, ChaChaCipher<chacha_nonce_len>>)(key, m.direction, m.compute_tag, input);
    } else if constexpr (M::info.any_block_len) {
      ok = (is_aes(algorithm.cipher.id) ? run_mode<M, AesCipher> : run_mode<M, DesCipher>)(key, m.direction,
                                                                                           m.compute_tag, input);
    } else {
      ok = run_mode<M, AesCipher>(key, m.direction, m.compute_tag, input);
    }
    return true;
  };
  std::apply([&](const auto&... mode) { (try_mode(mode) || ...); }, Modes{});
  return ok;
}

// PKCS#7 (RFC 5652, section 6.3).
void encrypt_padded(const Message& m) {
  SecretBytes text(m.output_len());
  const std::size_t fill = text.size() - m.in_len;
  if (m.in_len != 0) std::memcpy(text.data(), m.in, m.in_len);
  std::memset(text.data() + m.in_len, static_cast<int>(fill), fill);
  run_input(m, {.in = text.data(), .out = m.out, .len = text.size(), .iv = m.iv, .iv_len = m.iv_len});
}

Status run_by_definition(const Message& m) {
  if (m.padding == Padding::pkcs7 && m.direction == Direction::encrypt) {
    encrypt_padded(m);
    return Status::ok;
  }
  const ModeInput input{.in = m.in,
                        .out = m.out,
                        .len = m.in_len,
                        .iv = m.iv,
                        .iv_len = m.iv_len,
                        .aad = m.aad,
                        .aad_len = m.aad_len,
                        .tag = m.tag,
                        .tag_len = m.tag_len,
                        .is_part = m.is_part,
                        .first_block = m.first_block};
  if (run_input(m, input)) return Status::ok;
  secure_wipe(m.out, m.in_len);
  return Status::invalid_tag;
}

class ReferenceEngine final : public Engine {
 public:
  EngineId id() const override { return EngineId::reference; }
  std::string_view name() const override { return "reference"; }
  std::string_view description() const override { return "the standards' text, block by block: slow, for tests"; }
  Memory memory() const override { return Memory::host; }
  bool constant_time(const Algorithm&) const override { return false; }
  bool offers(const Algorithm&) const override { return true; }  // it runs the list of modes
  const std::string& unavailable_reason() const override { return none_; }
  std::vector<std::string> devices() const override { return {"one core of this CPU"}; }
  std::uint32_t tile_units() const override { return 1u << 16; }

  // Messages in their order; the plan's groups are for engines that go for speed.
  void run(const Plan& plan, std::span<Status> statuses, Stream) override {
    for (std::size_t i = 0; i < plan.messages.size(); ++i) statuses[i] = run_by_definition(plan.messages[i]);
  }

 private:
  const std::string none_;
};

}  // namespace

Engine& reference_engine() {
  static constinit FirstUse<ReferenceEngine> engine;
  return engine.get();
}

}  // namespace warpcipher
