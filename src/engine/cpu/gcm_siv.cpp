// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "cipher/gf128.hpp"
#include "core/bytes.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/context.hpp"
#include "engine/cpu/modes.hpp"
#include "message/message.hpp"
#include "mode/gcm_siv.hpp"

namespace warpcipher {
namespace {

using Block = std::array<std::uint8_t, 16>;

// Counters that are encrypted at a time.
constexpr std::size_t blocks_at_once = 64;

// State kept of a key for own code: its round keys.
class OwnKey final : public KeyState {
 public:
  OwnKey(const cpu::GcmLanes& code, const Key& key) { code.make_key(key.bytes(), key.size(), *made_); }
  const cpu::GcmLaneKey& operator*() const { return *made_; }

 private:
  Secret<cpu::GcmLaneKey> made_;
};

// For libcrypto: contexts that encrypt blocks under the key, and others that take the key of each message.
class LibcryptoKey final : public KeyState {
 public:
  explicit LibcryptoKey(const Key& key)
      : blocks_(fetch_cipher(key.algorithm().cipher.id, Mode::ecb), key.bytes(), Direction::encrypt),
        of_messages_(fetch_cipher(key.algorithm().cipher.id, Mode::ecb), key.bytes(), Direction::encrypt) {}

  ContextPool& blocks() { return blocks_; }
  ContextPool& of_messages() { return of_messages_; }

 private:
  ContextPool blocks_, of_messages_;
};

// A context as a cipher of the mode's template.
struct BlockCipher {
  Context& context;
  void encrypt_block(const std::uint8_t* in, std::uint8_t* out) const { context.update(in, out, 16); }
};

// The tag that a message was given, for its decryption.
const std::uint8_t* given_tag(const Message& m) { return m.compute_tag ? m.iv + gcm_siv_nonce_len : m.tag; }

// POLYVAL of bytes, filled up with zeros to whole blocks.
gf128::Element hash_bytes(gf128::Element hash, gf128::Element key, const std::uint8_t* bytes, std::size_t len) {
  const std::size_t whole = len / 16;
  hash = gf128::polyval(hash, key, bytes, whole);
  if (len % 16 == 0) return hash;
  Secret<Block> last;
  std::memcpy(last->data(), bytes + 16 * whole, len % 16);
  return gf128::polyval(hash, key, last->data(), 1);
}

// Section 4: the tag of a plaintext.
void make_tag(const Message& m, Context& cipher, gf128::Element key, const std::uint8_t* text, std::uint8_t* tag) {
  Block lengths;
  store_le64(lengths.data(), 8 * std::uint64_t{m.aad_len});
  store_le64(lengths.data() + 8, 8 * std::uint64_t{m.in_len});
  gf128::Element hash = hash_bytes({0, 0}, key, m.aad, m.aad_len);
  hash = hash_bytes(hash, key, text, m.in_len);
  hash = gf128::polyval(hash, key, lengths.data(), 1);
  gf128::store_reversed(tag, hash);
  xor_bytes(tag, tag, m.iv, gcm_siv_nonce_len);
  tag[15] &= 0x7f;
  cipher.update(tag, tag, 16);
}

// The text under the counters that begin with a tag.
void run_counter(const Message& m, Context& cipher, const std::uint8_t* tag) {
  Block counter;
  std::memcpy(counter.data(), tag, counter.size());
  counter[15] |= 0x80;
  Secret<std::array<std::uint8_t, 16 * blocks_at_once>> stream;
  for (std::size_t at = 0; at < m.in_len; at += stream->size()) {
    const std::size_t len = std::min(stream->size(), m.in_len - at);
    const std::size_t blocks = (len + 15) / 16;
    for (std::size_t i = 0; i < blocks; ++i) {
      std::memcpy(stream->data() + 16 * i, counter.data(), counter.size());
      store_le32(counter.data(), load_le32(counter.data()) + 1);
    }
    cipher.update(stream->data(), stream->data(), 16 * blocks);
    xor_bytes(m.out + at, m.in + at, stream->data(), len);
  }
}

}  // namespace

Status run_gcm_siv_by_own(const cpu::GcmLanes& code, const Message& m) {
  const auto& key =
      m.key->state<OwnKey>(EngineId::cpu, [&](const Key& k) { return std::make_unique<OwnKey>(code, k); });
  const bool encrypting = m.direction == Direction::encrypt;
  const cpu::GcmSivText text{m.iv, encrypting ? nullptr : given_tag(m), m.aad, m.aad_len, m.in, m.out, m.in_len};
  Secret<std::uint8_t[16]> tag;
  (encrypting ? code.siv_encrypt : code.siv_decrypt)(*key, text, *tag);
  return settle(m, *tag);
}

Status run_gcm_siv_by_libcrypto(const Message& m) {
  auto& state =
      m.key->state<LibcryptoKey>(EngineId::cpu, [](const Key& k) { return std::make_unique<LibcryptoKey>(k); });
  const ContextPool::Lease cipher = state.of_messages().borrow();
  Secret<gf128::Element> hash_key;
  {
    const ContextPool::Lease blocks = state.blocks().borrow();
    Secret<GcmSiv::Keys> keys;
    GcmSiv::derive(BlockCipher{*blocks}, m.key->size(), m.iv, *keys);
    cipher->start(keys->encryption, nullptr);
    *hash_key = gf128::load_polyval_key(keys->authentication);
  }
  Secret<Block> tag;
  if (m.direction == Direction::encrypt) {
    make_tag(m, *cipher, *hash_key, m.in, tag->data());
    run_counter(m, *cipher, tag->data());
  } else {
    run_counter(m, *cipher, given_tag(m));
    make_tag(m, *cipher, *hash_key, m.out, tag->data());
  }
  return settle(m, tag->data());
}

Status run_gcm_siv_message(const Message& m) {
  const std::span<const cpu::GcmLanes* const> list = cpu::gcm_lanes_list();
  return list.empty() ? run_gcm_siv_by_libcrypto(m) : run_gcm_siv_by_own(*list.front(), m);
}

}  // namespace warpcipher
