// SPDX-License-Identifier: Apache-2.0
// The modes of the CPU engine but ChaCha20 (chacha.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "cipher/gf128.hpp"
#include "core/fork.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/lanes.hpp"
#include "engine/cpu/libcrypto.hpp"
#include "engine/cpu/piece.hpp"
#include "message/key.hpp"
#include "message/message.hpp"

namespace warpcipher {

// The CPU engine's state of an AES key: pools of keyed libcrypto contexts, the round keys of own code, and for GCM
// the powers of its hash key. Without libcrypto own code takes every mode, on a processor that can run it.

// Splits long GCM messages and hashes long IVs.
struct GcmConstants {
  gf128::Element hash_key;        // H = E(0): SP 800-38D, section 7.1, step 1
  gf128::Element inverse;         // 1 / H
  gf128::Element tile_power;      // H to the power cpu_tile_units
  gf128::Element hash_only_mask;  // E(J0) for the IV of 12 zero bytes, under which GMAC serves as plain GHASH
};

// The block [first] || [second], lengths in bits, that ends each input of GHASH; given in bytes.
gf128::Element length_block(std::uint64_t first_bytes, std::uint64_t second_bytes);

// Whether own code has all of AES on this processor: x86-64 with AES instructions, AVX and carry-less products.
bool has_own_aes();

class AesKey final : public KeyState {
 public:
  explicit AesKey(const Key& key);

  // The state of `key`, an AES key of any mode.
  static AesKey& of(const Key& key) {
    return key.state<AesKey>(EngineId::cpu, [](const Key& k) { return std::make_unique<AesKey>(k); });
  }

  // E(block) as an element, for a GCM algorithm.
  gf128::Element encrypt_element(gf128::Element block);

  // The pools want libcrypto.
  // The mode itself. Modes whose decryption is encryption of the same counters (CTR, OFB) use one pool for both.
  ContextPool& mode(Direction direction) { return direction == Direction::encrypt || symmetric_ ? encrypt_ : decrypt_; }

  // Single blocks: under the second key of a mode with two (XTS: IEEE 1619 section 5.3), else under the key.
  ContextPool& blocks(Direction direction) {
    return direction == Direction::encrypt ? encrypt_blocks_ : decrypt_blocks_;
  }

  // For a GCM algorithm: computed on first use, from any thread.
  const GcmConstants& gcm();

  // The same for `code`, which is the same in all calls.
  const cpu::GcmLaneKey& gcm_lanes(const cpu::GcmLanes& code);

  // For any other algorithm, in the same way.
  const cpu::AesLaneKey& aes_lanes(const cpu::AesLanes& code);

 private:
  const bool symmetric_;
  ContextPool encrypt_, decrypt_, encrypt_blocks_, decrypt_blocks_;
  const Key& key_;
  Once gcm_once_, gcm_lanes_once_, aes_lanes_once_;
  Secret<GcmConstants> gcm_;
  std::unique_ptr<Secret<cpu::GcmLaneKey>> gcm_lanes_;
  std::unique_ptr<Secret<cpu::AesLaneKey>> aes_lanes_;
};

// --- AES, a piece at a time, by own code or by libcrypto (aes_modes.cpp) ---------------------------------------------

// Transforms `piece` of `m`. Pieces of a message may run in any order and at the same time when the mode is parallel in
// this direction; else the piece must be the whole message. By the code that rule.hpp says.
void run_aes_piece(AesKey& key, const Message& m, const Piece& piece);

// The work of both. `code` is one of cpu::aes_lanes_list(), the same in all calls with that key; the mode is ECB, CTR,
// XTS, CFB8, or CBC or CFB in decryption.
void run_own_piece(const cpu::AesLanes& code, AesKey& key, const Message& m, const Piece& piece);
void run_libcrypto_piece(AesKey& key, const Message& m, const Piece& piece);

// Own code's two ways to store: so that the next reader finds the text in the cache, or past it, as is_past_cache()
// chooses. Past it, piece.out is a multiple of 16 bytes and not piece.in.
void run_in_cache(const cpu::AesLanes& code, AesKey& key, const Message& m, const Piece& piece);
void run_past_cache(const cpu::AesLanes& code, AesKey& key, const Message& m, const Piece& piece);

// --- AES in serial modes, many messages on one core (aes_modes.cpp) --------------------------------------------------
//
// CBC and CFB encryption and OFB: each message is bound by the latency of its blocks, so several go side by side, and
// when one ends the next takes its lane.

// Messages of that algorithm and direction that go side by side; 1: libcrypto takes them one by one.
std::size_t aes_serial_lanes(const Algorithm& algorithm, Direction direction);

// Runs messages of one algorithm and direction of which more than one goes side by side.
void run_aes_serial(std::span<const Message* const> messages);

// --- AEADs of AES but GCM (two_pass_aeads.cpp)
// ------------------------------------------------------------------------
//
// AES-CCM (SP 800-38C) is made of the engine's modes: the MAC is the last block of CBC encryption, the text counter
// mode. AES-GCM-SIV (RFC 8452) is own code where the processor has the instructions, else libcrypto's AES.

// A message: invalid_tag, and a wiped `out`, where the tag does not match.
Status run_ccm_message(const Message& m);
Status run_gcm_siv_message(const Message& m);

// The work of both. All messages of a key go to the same one, and `code` is the same in all calls with it.
Status run_gcm_siv_by_own(const cpu::GcmLanes& code, const Message& m);
Status run_gcm_siv_by_libcrypto(const Message& m);

// --- DES and triple DES, bitsliced (des.cpp) -------------------------------------------------------------------------
//
// Long texts many blocks at once, serial modes many messages at once. No schedule is kept with the key: expanding one
// costs about as much as one group of blocks, and takes 18 KiB.

// The most messages that run_des_serial does at the price of one.
std::size_t des_serial_lanes();

// Transforms `piece` of `m`, whose mode is parallel in its direction. Pieces may run in any order and at the same time.
void run_des_piece(const Message& m, const Piece& piece);

// Whole messages of one algorithm and direction whose mode is serial in it; best sorted by length, and
// des_serial_lanes() or more of them.
void run_des_serial(std::span<const Message* const> messages);

// AES-GCM on the CPU, by this library's own code or in one pass of libcrypto; long messages are cut into tiles that any
// core may take.

// The whole message on this thread, with a context of key.mode(m.direction). On a bad tag: Status::invalid_tag, and
// zeros at out.
Status run_gcm_message(AesKey& key, Context& context, const Message& m);

// The tag that a text to be decrypted should have, written through m.tag, in its own pass: for a libcrypto that
// does not tell it (gives_decryption_tags()).
void hash_gcm_ciphertext(AesKey& key, const Message& m);

// Whether own code takes this message, whole: by rule.hpp, and libcrypto hashes a long IV faster.
bool is_own_gcm(const Message& m);

// The same with such messages under one key: the same, without a context. `key` must outlive this.
class OwnGcm {
 public:
  explicit OwnGcm(AesKey& key);
  Status run(const Message& m) const;

 private:
  const cpu::GcmLanes& code_;
  AesKey& state_;
  const cpu::GcmLaneKey& key_;
};

// One long message in work. Tiles run in any order, on any threads; each adds its part of GHASH, and the last one to
// finish joins them and settles the tag.
//
// A tile is its own GCM message, whose counter continues where the tile before ends. For libcrypto its IV is solved
// so (gcm_solve_iv()): this keeps the fused AES and GHASH code of libcrypto (AES-128, GB/s, one core, Zen 3: 4.1;
// counter mode and GHASH apart 3.65. Xeon with AVX-512, two cores: 12.1 and 7.0). The tile's part of GHASH is its tag
// without mask and length block.
//
// Decryption needs gives_decryption_tags(); make_schedule leaves such messages whole without it.
class SplitGcm {
 public:
  // `m` must outlive this; it has at least one block, and `tiles` tiles of cpu_tile_units units.
  SplitGcm(AesKey& key, const Message& m, std::uint64_t tiles);
  SplitGcm(AesKey& key, const Message& m, std::uint64_t tiles, const cpu::GcmLanes* code);  // nullptr: by libcrypto

  // Each tile once; `tile` counts from 0 and `piece` is its text. Says whether this was the last one to finish: then
  // `status` is set, the tag written or compared, and out wiped if it did not match.
  bool run_tile(std::uint64_t tile, const Piece& piece, Status& status);

 private:
  gf128::Element transform_tile(const Piece& piece);
  void transform(gf128::Element counter0, const Piece& piece, std::size_t aad_len, std::uint8_t (&tag)[16]);
  Status finish();

  AesKey& key_;
  const cpu::GcmLanes* const code_;
  const GcmConstants& constants_;
  const Message& message_;
  const std::uint64_t tiles_;
  gf128::Element counter0_;  // J0
  SecretBytes parts_;        // tile t: (GHASH of only its blocks) at 16 t
  std::atomic<std::uint64_t> left_;
};

}  // namespace warpcipher
