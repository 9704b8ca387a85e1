// SPDX-License-Identifier: Apache-2.0
// AES-GCM on the CPU, by this library's own code or in one pass of libcrypto; long messages are cut into tiles that any
// core may take.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/wipe.hpp"
#include "engine/cpu/aes_key.hpp"
#include "engine/cpu/piece.hpp"
#include "message/message.hpp"

namespace warpcipher {

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
// A tile is its own GCM message, whose counter goes on where the tile before ends. For libcrypto its IV is solved
// so (solve_iv()): this keeps the fused AES and GHASH code of libcrypto (AES-128, GB/s, one core, Zen 3: 4.1;
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
