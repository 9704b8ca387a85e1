// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/gcm_siv.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "batch/tag.hpp"
#include "cipher/gf128.hpp"
#include "core/bytes.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/context.hpp"
#include "mode/gcm_siv.hpp"

namespace warpcipher {
namespace {

using Block = std::array<std::uint8_t, 16>;

// Counters that are encrypted at a time.
constexpr std::size_t blocks_at_once = 64;

// What is kept of a key: contexts that encrypt blocks under it, and others that take the key of each message.
class GcmSivKey final : public KeyState {
 public:
  explicit GcmSivKey(const Key& key)
      : blocks_(fetch_cipher(key.algorithm().cipher.id, Mode::ecb), key.bytes(), Direction::encrypt),
        of_messages_(fetch_cipher(key.algorithm().cipher.id, Mode::ecb), key.bytes(), Direction::encrypt) {}

  static GcmSivKey& of(const Key& key) {
    return key.state<GcmSivKey>(EngineId::cpu, [](const Key& k) { return std::make_unique<GcmSivKey>(k); });
  }

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

// POLYVAL of bytes, filled up with zeros to whole blocks.
gf128::Element hash_bytes(gf128::Element hash, gf128::Element key, const std::uint8_t* bytes, std::size_t len) {
  const std::size_t whole = len / 16;
  hash = gf128::polyval(hash, key, bytes, whole);
  if (len % 16 == 0) return hash;
  Secret<Block> last;
  std::memcpy(last->data(), bytes + 16 * whole, len % 16);
  return gf128::polyval(hash, key, last->data(), 1);
}

class Run {
 public:
  Run(const Message& m, Context& cipher, gf128::Element key) : m_(m), cipher_(cipher), key_(key) {}

  // Section 4: the tag of a plaintext.
  void make_tag(const std::uint8_t* text, std::uint8_t* tag) const {
    Block lengths;
    store_le64(lengths.data(), 8 * std::uint64_t{m_.aad_len});
    store_le64(lengths.data() + 8, 8 * std::uint64_t{m_.in_len});
    gf128::Element hash = hash_bytes({0, 0}, key_, m_.aad, m_.aad_len);
    hash = hash_bytes(hash, key_, text, m_.in_len);
    hash = gf128::polyval(hash, key_, lengths.data(), 1);
    gf128::store_reversed(tag, hash);
    xor_bytes(tag, tag, m_.iv, gcm_siv_nonce_len);
    tag[15] &= 0x7f;
    cipher_.update(tag, tag, 16);
  }

  // The text under the counters that begin with a tag.
  void run_counter(const std::uint8_t* tag) const {
    Block counter;
    std::memcpy(counter.data(), tag, counter.size());
    counter[15] |= 0x80;
    Secret<std::array<std::uint8_t, 16 * blocks_at_once>> stream;
    for (std::size_t at = 0; at < m_.in_len; at += stream->size()) {
      const std::size_t len = std::min(stream->size(), m_.in_len - at);
      const std::size_t blocks = (len + 15) / 16;
      for (std::size_t i = 0; i < blocks; ++i) {
        std::memcpy(stream->data() + 16 * i, counter.data(), counter.size());
        store_le32(counter.data(), load_le32(counter.data()) + 1);
      }
      cipher_.update(stream->data(), stream->data(), 16 * blocks);
      xor_bytes(m_.out + at, m_.in + at, stream->data(), len);
    }
  }

 private:
  const Message& m_;
  Context& cipher_;
  const gf128::Element key_;
};

}  // namespace

Status run_gcm_siv_message(const Message& m) {
  GcmSivKey& state = GcmSivKey::of(*m.key);
  const ContextPool::Lease cipher = state.of_messages().borrow();
  Secret<gf128::Element> hash_key;
  {
    const ContextPool::Lease blocks = state.blocks().borrow();
    Secret<GcmSiv::Keys> keys;
    GcmSiv::derive(BlockCipher{*blocks}, m.key->size(), m.iv, *keys);
    cipher->start(keys->encryption, nullptr);
    *hash_key = gf128::load_polyval_key(keys->authentication);
  }
  const Run run(m, *cipher, *hash_key);
  Secret<Block> tag;
  if (m.direction == Direction::encrypt) {
    run.make_tag(m.in, tag->data());
    run.run_counter(tag->data());
  } else {
    run.run_counter(m.compute_tag ? m.iv + gcm_siv_nonce_len : m.tag);
    run.make_tag(m.out, tag->data());
  }
  if (settle_tag(m, tag->data())) return Status::ok;
  secure_wipe(m.out, m.in_len);
  return Status::invalid_tag;
}

}  // namespace warpcipher
