// SPDX-License-Identifier: Apache-2.0
// A piece: a message, or a part of a long message that can be transformed by itself. A worker takes one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/error.hpp"
#include "core/wipe.hpp"
#include "message/message.hpp"

namespace warpcipher {

// Units of a tile of this engine: 256 KiB of AES. Measured with one message of 256 MiB on 16 cores (Xeon with AVX-512,
// OpenSSL 3.0.13), GB/s with tiles of 4096, 16384 and 65536 units: CTR 45, 48, 47; GCM encryption 48, 56, 57; CBC
// decryption 50, 50, 53; XTS 45, 51, 48. Larger ones would leave cores idle on messages of a few MiB.
inline constexpr std::uint32_t cpu_tile_units = 16384;

// Zen 3 with 32 MiB of third-level cache, one core of a busy machine, into `out` of 64 MiB, processor time of pyca over
// the library's: CTR 1.15 to 1.20 without stores past the cache and 1.40 to 1.43 with them, GCM 1.33 to 1.36 and 1.42
// to 1.57, CBC decryption 0.99 to 1.03 and 1.05 to 1.11. At 16 MiB the cache still helps the next reader of the text.
inline constexpr std::size_t least_past_cache = std::size_t{24} << 20;

// Input bytes [offset, offset + len) of a message. Every piece but the last is whole tiles.
struct Piece {
  const std::uint8_t* in;
  std::uint8_t* out;
  std::size_t len;
  std::uint64_t first_unit;   // of the message: offset / unit
  const std::uint8_t* chain;  // the IV, or for chaining modes the ciphertext block before the piece
  bool last;                  // takes the padding, if the message is to be padded
};

// Whether own code stores the text past the cache: a message that no cache holds, and not in place, where each line is
// in the cache already. `out` is a multiple of a block; if it is not, no vector of it is aligned.
inline bool is_past_cache(const Message& m) {
  return m.in_len >= least_past_cache && m.in != m.out && reinterpret_cast<std::uintptr_t>(m.out) % 16 == 0;
}

// For a mode that runs_mode() of engine.cpp names and the caller has no code for.
[[noreturn, gnu::cold, gnu::noinline]] inline void throw_no_code(const Message& m) {
  throw Error(Status::engine_failure, "engine 'cpu' does not run ", m.algorithm().name);
}

inline Piece whole_piece(const Message& m) { return {m.in, m.out, m.in_len, 0, m.iv, true}; }

// Tile number `tile` of a message of `tiles`. `chain` is read when the tile is not the first and the mode chains: the
// block of ciphertext before the tile, as it was before any tile was decrypted.
inline Piece tile_piece(const Message& m, std::uint64_t tile, std::uint64_t tiles, const std::uint8_t* chain) {
  const std::uint64_t first_unit = tile * cpu_tile_units;
  const auto offset = static_cast<std::size_t>(first_unit * m.algorithm().unit_len());
  const bool last = tile + 1 == tiles;
  const std::size_t len = last ? m.in_len - offset : cpu_tile_units * m.algorithm().unit_len();
  return {m.in + offset, m.out + offset, len, first_unit, tile == 0 ? m.iv : chain, last};
}

// The last block of a message that is encrypted with PKCS#7 padding (RFC 5652, section 6.3): the `len` bytes (fewer
// than a block) that are left of the text, and padding. Wiped when it goes out of scope.
class PaddedBlock {
 public:
  PaddedBlock(const std::uint8_t* text, std::size_t len, std::size_t block_len) {
    std::memset(bytes_, static_cast<int>(block_len - len), block_len);
    if (len > 0) std::memcpy(bytes_, text, len);
  }
  PaddedBlock(const PaddedBlock&) = delete;
  PaddedBlock& operator=(const PaddedBlock&) = delete;
  ~PaddedBlock() { secure_wipe(bytes_, sizeof bytes_); }
  const std::uint8_t* data() const noexcept { return bytes_; }

 private:
  std::uint8_t bytes_[16];
};

// The text of `piece` as two calls of `update(in, out, len)`: the whole blocks, then the block that padding makes.
template <class Update>
void update_with_padding(const Message& m, const Piece& piece, Update&& update) {
  const bool pad = piece.last && m.padding == Padding::pkcs7 && m.direction == Direction::encrypt;
  const std::size_t block = m.algorithm().block_len();
  const std::size_t tail = pad ? piece.len % block : 0;
  const std::size_t whole = piece.len - tail;
  if (whole > 0) update(piece.in, piece.out, whole);
  if (!pad) return;
  const PaddedBlock padded(piece.in + whole, tail, block);
  update(padded.data(), piece.out + whole, block);
}

}  // namespace warpcipher
