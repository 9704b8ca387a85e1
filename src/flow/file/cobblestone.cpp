// SPDX-License-Identifier: Apache-2.0
#include "flow/file/cobblestone.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/system_random.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/hmac.hpp"
#include "flow/file/copy_chunks.hpp"
#include "flow/file/work.hpp"

namespace warpcipher {
namespace {

constexpr std::uint64_t most_chunks = std::uint64_t{1} << 38;
constexpr std::size_t sealed_chunk_len = Cobblestone::chunk_len + Cobblestone::tag_len;
constexpr std::size_t chunks_of_a_piece = 64;  // that go through memory at once

constexpr auto go_on = [] {};  // after a signal

class SealingFile {
 public:
  SealingFile(std::string_view engine, int target, int source, const Cobblestone& keys)
      : engine_(engine), target_(target), source_(source), sealing_(keys.sealing()) {}

  // Writes what copy() has left.
  std::optional<FileFailure> run() {
    SecretBytes text(chunks_of_a_piece * Cobblestone::chunk_len);
    std::vector<std::uint8_t> sealed(chunks_of_a_piece * sealed_chunk_len);
    for (bool is_final = false; !is_final;) {
      const std::size_t len = move_all(
          text.size(), [&](std::size_t done, std::size_t left) { return ::read(source_, text.data() + done, left); },
          go_on);
      if (len < text.size() && errno != 0) return FileFailure{FileFailure::Kind::read, errno};
      is_final = len < text.size();
      const std::size_t count = len / Cobblestone::chunk_len + (is_final ? 1 : 0);
      if (next_ + count > most_chunks) refuse("the file is too long: a Cobblestone file has 2^38 chunks at most");
      const std::span<std::uint8_t> out{sealed.data(), len + count * Cobblestone::tag_len};
      crypt_chunks(engine_, sealing_,
                   {Direction::encrypt, next_, count, is_final, Memory::host, {text.data(), len}, out});
      next_ += count;
      if (const auto failure = write(out)) return failure;
    }
    return std::nullopt;
  }

  std::optional<FileFailure> write(std::span<const std::uint8_t> bytes) {
    const std::size_t done = move_all(
        bytes.size(), [&](std::size_t at, std::size_t left) { return ::write(target_, bytes.data() + at, left); },
        go_on);
    if (done == bytes.size()) return std::nullopt;
    return FileFailure{FileFailure::Kind::write, errno != 0 ? errno : ENOSPC};
  }

  // Full chunks from a regular file to the end of another, past this thread's buffers. False: a read or a write failed,
  // and chunks after the last one that is done may have been written.
  bool copy() {
    if (engine_.starts_with("cuda")) return true;  // pieces for a GPU are longer
    struct stat from {
    }, to{};
    if (fstat(source_, &from) != 0 || fstat(target_, &to) != 0 || !S_ISREG(from.st_mode) || !S_ISREG(to.st_mode))
      return true;
    if ((fcntl(target_, F_GETFL) & O_APPEND) != 0) return true;  // pwrite() would write at the end
    const off_t source_begin = lseek(source_, 0, SEEK_CUR), target_begin = lseek(target_, 0, SEEK_CUR);
    if (source_begin < 0 || target_begin != to.st_size || from.st_size <= source_begin) return true;
    // The final chunk is shorter than others: it may be empty.
    const std::uint64_t full = static_cast<std::uint64_t>(from.st_size - source_begin) / Cobblestone::chunk_len;
    if (full == 0 || full >= most_chunks) return true;
    const ChunkCopy wanted{Direction::encrypt,
                           source_,
                           target_,
                           static_cast<std::uint64_t>(source_begin),
                           static_cast<std::uint64_t>(target_begin),
                           0,
                           full};
    if (copy_chunks(engine_, sealing_, wanted, {}).count != full) return false;
    next_ = full;
    return lseek(source_, source_begin + static_cast<off_t>(full * Cobblestone::chunk_len), SEEK_SET) >= 0 &&
           lseek(target_, target_begin + static_cast<off_t>(full * sealed_chunk_len), SEEK_SET) >= 0;
  }

 private:
  const std::string_view engine_;
  const int target_, source_;
  const Sealing& sealing_;
  std::uint64_t next_ = 0;  // the number of the next chunk
};

}  // namespace

Cobblestone::Cobblestone(std::span<const std::uint8_t> input_key, std::span<const std::uint8_t, salt_len> salt,
                         std::span<const std::uint8_t> context) {
  const std::size_t key_len = input_key.size();
  if (key_len != 16 && key_len != 32) {
    refuse("a Cobblestone key has 16 or 32 bytes, got ", key_len);
  }
  const std::string bits = std::to_string(8 * key_len);
  const std::string label = "c2sp.org/chunked-encryption@v1+AEAD_AES_" + bits + "_GCM";
  std::vector<std::uint8_t> info(label.begin(), label.end());
  info.push_back(0);
  info.insert(info.end(), salt.begin(), salt.end());
  info.insert(info.end(), context.begin(), context.end());
  // The specification has no step of extraction.
  const SecretBytes made = hkdf_expand("sha512", input_key, info, key_len + nonce_len + commitment_len);
  key_.emplace(find_algorithm("aes-" + bits + "-gcm"), std::span<const std::uint8_t>{made.data(), key_len});
  std::copy_n(made.data() + key_len, nonce_len, base_nonce_.data());
  std::copy_n(made.data() + key_len + nonce_len, commitment_len, commitment_.data());
  keys_[0] = &*key_;
  sealing_.keys = keys_;
  sealing_.iv_len = nonce_len;
  sealing_.tag_len = tag_len;
  sealing_.header_len = header_len;
  sealing_.chunk_len = chunk_len;
  sealing_.nonce_base = base_nonce_;
}

std::optional<FileFailure> seal_cobblestone(std::string_view engine, int target, int source,
                                            std::span<const std::uint8_t> key, std::span<const std::uint8_t> context) {
  struct stat from {
  }, to{};
  if (fstat(source, &from) == 0 && fstat(target, &to) == 0 && S_ISREG(from.st_mode) && from.st_dev == to.st_dev &&
      from.st_ino == to.st_ino) {
    refuse("source and target are one file: it would be overwritten while it is read");
  }
  const off_t source_begin = lseek(source, 0, SEEK_CUR), target_begin = lseek(target, 0, SEEK_CUR);
  for (bool copies = true;; copies = false) {
    std::array<std::uint8_t, Cobblestone::header_len> header{};
    const auto salt = std::span(header).first<Cobblestone::salt_len>();
    fill_from_system(salt);
    const Cobblestone keys(key, salt, context);
    std::ranges::copy(keys.commitment(), header.begin() + Cobblestone::salt_len);
    SealingFile file(engine, target, source, keys);
    if (const auto failure = file.write(header)) return failure;
    if (!copies || file.copy()) return file.run();
    // Once more, in order: that says what is wrong. Under another salt, as the source may have changed: no nonce of a
    // key serves two texts.
    if (ftruncate(target, target_begin) != 0 || lseek(target, target_begin, SEEK_SET) < 0 ||
        lseek(source, source_begin, SEEK_SET) < 0) {
      return FileFailure{FileFailure::Kind::write, errno};
    }
  }
}

CobblestoneFile::CobblestoneFile(std::string_view engine, int descriptor, std::span<const std::uint8_t> key,
                                 std::span<const std::uint8_t> context)
    : engine_(engine), descriptor_(descriptor) {
  const auto cannot_read = [](const std::string& why) { throw Error(Status::read_failed, why); };
  const auto read_at = [&](std::span<std::uint8_t> out, std::uint64_t position) {
    const std::size_t got = move_all(
        out.size(),
        [&](std::size_t done, std::size_t left) {
          return pread(descriptor, out.data() + done, left, static_cast<off_t>(position + done));
        },
        go_on);
    if (got == out.size()) return;
    cannot_read(errno != 0 ? std::string("the file cannot be read: ") + strerror(errno) : "truncated: it ended early");
  };
  struct stat status {};
  if (fstat(descriptor, &status) != 0) cannot_read(std::string("the file cannot be read: ") + strerror(errno));
  if (!S_ISREG(status.st_mode)) cannot_read("it is not a regular file: expected one that can be read at any place");
  std::array<std::uint8_t, Cobblestone::header_len> header{};
  const auto file_len = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t body = file_len - std::min<std::uint64_t>(file_len, header.size());
  const std::uint64_t rest = body % sealed_chunk_len;  // the final chunk, which is shorter than the others
  chunks_ = body / sealed_chunk_len + 1;
  if (rest < Cobblestone::tag_len) {
    cannot_read("truncated: no Cobblestone file has " + std::to_string(file_len) + " bytes");
  }
  if (chunks_ > most_chunks) cannot_read("too long: a Cobblestone file has 2^38 chunks at most");
  size_ = body - chunks_ * Cobblestone::tag_len;
  read_at(header, 0);
  const std::span<const std::uint8_t, Cobblestone::header_len> all(header);
  keys_ = std::make_unique<const Cobblestone>(key, all.first<Cobblestone::salt_len>(), context);
  if (!equal_constant_time(keys_->commitment().data(), header.data() + Cobblestone::salt_len,
                           Cobblestone::commitment_len)) {
    throw Error(
        Status::invalid_tag,
        "the header's key commitment does not match: wrong key or context, damaged header, or not a Cobblestone "
        "file");
  }
  // The end of the file, and so its size, is to be trusted from here on.
  std::vector<std::uint8_t> sealed(rest);
  SecretBytes text(rest - Cobblestone::tag_len);
  read_at(sealed, file_len - rest);
  if (crypt_chunks(engine, keys_->sealing(),
                   {Direction::decrypt, chunks_ - 1, 1, true, Memory::host, sealed, {text.data(), text.size()}})) {
    throw Error(Status::invalid_tag, "the final chunk failed authentication: the file was damaged, cut or added to");
  }
}

std::optional<ReadFailure> CobblestoneFile::read(std::span<std::uint8_t> out, Memory memory, std::uint64_t offset,
                                                 Stream stream) const {
  const RegularChunks columns(keys_->sealing(), size_, chunks_, offset, out.size());
  FileChunks chunks = columns.chunks();
  chunks.source.descriptor = descriptor_;
  chunks.memory = memory;
  chunks.out = out;
  std::optional<ReadFailure> failure = read_chunks(engine_, chunks, stream, {});
  if (failure) failure->chunk += chunks.first_number;
  return failure;
}

}  // namespace warpcipher
