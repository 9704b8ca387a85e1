// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>

#include "cipher/gf128.hpp"
#include "core/bytes.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/libcrypto.hpp"
#include "engine/cpu/modes.hpp"
#include "engine/cpu/schedule.hpp"
#include "message/message.hpp"
#include "mode/ccm.hpp"
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
      : blocks_(key.algorithm().cipher.id, Mode::ecb, key.bytes(), Direction::encrypt),
        of_messages_(key.algorithm().cipher.id, Mode::ecb, key.bytes(), Direction::encrypt) {}

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

namespace {

// The key in the two modes that CCM is made of.
class CcmKey final : public KeyState {
 public:
  explicit CcmKey(const Key& key) : cbc(of(key, "-cbc")), ctr(of(key, "-ctr")) {}

  const Key cbc, ctr;

 private:
  static Key of(const Key& key, const char* mode) {
    return {find_algorithm(std::string(key.algorithm().cipher.name) + mode), {key.bytes(), key.size()}};
  }
};

void run_cipher(const Key& key, const std::uint8_t iv[16], const std::uint8_t* in, std::uint8_t* out, std::size_t len) {
  Message m;
  m.key = &key;
  m.in = in;
  m.out = out;
  m.in_len = m.out_len = len;
  m.iv = iv;
  m.iv_len = 16;
  run_message(m);
}

// CBC-MAC of bytes that come in pieces. Only the last block of CBC's output is used.
class Mac {
 public:
  Mac(const Key& cbc, const std::uint8_t first_block[16]) : cbc_(cbc) {
    std::memset(*y_, 0, sizeof *y_);
    add(first_block, 16);
  }

  void add(const std::uint8_t* data, std::size_t len) {
    if (waiting_len_ != 0) {
      const std::size_t taken = std::min(16 - waiting_len_, len);
      std::memcpy(*waiting_ + waiting_len_, data, taken);
      waiting_len_ += taken;
      data += taken;
      len -= taken;
      if (waiting_len_ == 16) fill();
    }
    run(data, len / 16 * 16);
    if (len % 16 == 0) return;
    std::memcpy(*waiting_, data + len / 16 * 16, len % 16);
    waiting_len_ = len % 16;
  }

  // Zeros up to the next block.
  void fill() {
    if (waiting_len_ == 0) return;
    std::memset(*waiting_ + waiting_len_, 0, 16 - waiting_len_);
    waiting_len_ = 0;
    run(*waiting_, 16);
  }

  const std::uint8_t* get() const { return *y_; }

 private:
  void run(const std::uint8_t* data, std::size_t len) {
    for (std::size_t done = 0; done < len; done += most_) {
      const std::size_t now = std::min(most_, len - done);
      run_cipher(cbc_, *y_, data + done, made_->data(), now);
      std::memcpy(*y_, made_->data() + now - 16, 16);
    }
  }

  static constexpr std::size_t most_ = 4096;  // stays in the first-level cache

  const Key& cbc_;
  Secret<std::uint8_t[16]> y_, waiting_;
  std::size_t waiting_len_ = 0;
  Secret<std::array<std::uint8_t, most_>> made_;
};

void make_tag(const CcmKey& key, const Message& m, const std::uint8_t* text, std::uint8_t* tag) {
  std::uint8_t block[16], head[ccm_most_head_len];
  ccm_first_block(m.iv, m.iv_len, m.aad_len, m.in_len, m.tag_len, block);
  Mac mac(key.cbc, block);
  if (m.aad_len != 0) {
    mac.add(head, ccm_aad_head(m.aad_len, head));
    mac.add(m.aad, m.aad_len);
    mac.fill();
  }
  mac.add(text, m.in_len);
  mac.fill();
  std::memcpy(tag, mac.get(), 16);
}

// `len` bytes under the key stream from block `first` on.
void run_counter(const CcmKey& key, const Message& m, std::uint8_t first, const std::uint8_t* in, std::uint8_t* out,
                 std::size_t len) {
  std::uint8_t counter[16];
  ccm_counter(m.iv, m.iv_len, counter);
  counter[15] = first;
  if (len != 0) run_cipher(key.ctr, counter, in, out, len);
}

}  // namespace

Status run_ccm_message(const Message& m) {
  const auto& key = m.key->state<CcmKey>(EngineId::cpu, [](const Key& k) { return std::make_unique<CcmKey>(k); });
  Secret<std::uint8_t[16]> tag;
  const bool encrypting = m.direction == Direction::encrypt;
  if (!encrypting) run_counter(key, m, 1, m.in, m.out, m.in_len);
  make_tag(key, m, encrypting ? m.in : m.out, *tag);
  if (encrypting) run_counter(key, m, 1, m.in, m.out, m.in_len);
  run_counter(key, m, 0, *tag, *tag, 16);
  return settle(m, *tag);
}

}  // namespace warpcipher
