// SPDX-License-Identifier: Apache-2.0
// Whole files of C2SP chunked encryption, c2sp.org/chunked-encryption@v1: Cobblestone-128 and Cobblestone-256.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/stream.hpp"
#include "flow/file/read_chunks.hpp"
#include "flow/file/sealing.hpp"
#include "message/key.hpp"

namespace warpcipher {

// The keys of one file, and how its chunks are sealed:
//
//   key || base nonce || commitment = HKDF-Expand-SHA-512(input key,
//       "c2sp.org/chunked-encryption@v1+" || "AEAD_AES_128_GCM" || 0x00 || salt || context)
//
//   salt 24 | commitment 32 | chunk 0: 16384 + 16 | ... | final: 0 to 16383 + 16
class Cobblestone {
 public:
  static constexpr std::size_t salt_len = 24, commitment_len = 32, header_len = salt_len + commitment_len;
  static constexpr std::size_t chunk_len = std::size_t{16} << 10, tag_len = 16, nonce_len = 12;

  // input_key: 16 or 32 bytes. Throws Error{invalid_argument} for another length, Error{engine_unavailable} without
  // libcrypto.
  Cobblestone(std::span<const std::uint8_t> input_key, std::span<const std::uint8_t, salt_len> salt,
              std::span<const std::uint8_t> context);
  Cobblestone(const Cobblestone&) = delete;
  Cobblestone& operator=(const Cobblestone&) = delete;

  std::span<const std::uint8_t, commitment_len> commitment() const { return commitment_; }
  const Sealing& sealing() const { return sealing_; }

 private:
  std::optional<Key> key_;
  std::array<const Key*, 1> keys_{};
  std::array<std::uint8_t, nonce_len> base_nonce_{};
  std::array<std::uint8_t, commitment_len> commitment_{};
  Sealing sealing_;
};

// Why a file failed, if neither the caller nor an engine is at fault.
struct FileFailure {
  enum class Kind : std::uint8_t { read, write };
  Kind kind;
  int error;  // errno
};

// Encrypts `source`, from its position to its end, and writes the file to `target` from its position on. Both may be
// pipes; full chunks of a regular file go to a regular file on all cores. engine: as of run(). After a failure or an
// exception the target has the beginning of the file.
//
// Throws Error{invalid_argument}, and nothing has been written; Error{engine_unavailable, engine_failure,
// out_of_memory}.
std::optional<FileFailure> seal_cobblestone(std::string_view engine, int target, int source,
                                            std::span<const std::uint8_t> key, std::span<const std::uint8_t> context);

// An encrypted file whose plaintext can be read anywhere, by several threads at once.
class CobblestoneFile {
 public:
  // descriptor: of a file that takes pread(), whose content begins at byte 0; borrowed. Throws Error{invalid_tag} where
  // the header does not belong to key and context or the final chunk is not authentic, Error{read_failed} where the
  // file cannot be read or no file has its size; as Cobblestone.
  CobblestoneFile(std::string_view engine, int descriptor, std::span<const std::uint8_t> key,
                  std::span<const std::uint8_t> context);

  std::uint64_t size() const { return size_; }  // of the plaintext

  // Fills `out` with plaintext from `offset` on, as read_chunks(). Throws Error{invalid_argument} for a range that the
  // file does not have.
  std::optional<ReadFailure> read(std::span<std::uint8_t> out, Memory memory, std::uint64_t offset,
                                  Stream stream) const;

 private:
  const std::string engine_;
  const int descriptor_;
  std::uint64_t size_ = 0, chunks_ = 0;
  std::unique_ptr<const Cobblestone> keys_;
};

}  // namespace warpcipher
