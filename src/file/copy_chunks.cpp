// SPDX-License-Identifier: Apache-2.0
#include "file/copy_chunks.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <vector>

#include "core/error.hpp"
#include "core/thread_pool.hpp"
#include "core/wipe.hpp"
#include "dispatch/run.hpp"
#include "file/file_work.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t piece_len = std::size_t{128} << 10;
constexpr std::size_t most_chunks = 64;  // of a piece: each takes a place of preadv() or pwritev()

// Chunks [first, end), and where they begin in both files.
struct CopyPiece {
  std::size_t first, end;
  std::uint64_t source_offset, target_offset;
};

class Copying {
 public:
  Copying(const ChunkCopy& copy, const std::function<void(bool)>& check) : copy_(copy), work_(check) {}

  bool next(CopyPiece& piece) {
    if (!work_.goes_on()) return false;
    const std::lock_guard lock(mutex_);
    const FileChunks& c = copy_.chunks;
    if (next_ == c.count) return false;
    piece = {next_, next_, source_offset_, target_offset_};
    std::size_t len = 0;
    do {
      const std::size_t sealed = c.lengths[next_] + c.tag_len;
      const bool encrypts = copy_.direction == Direction::encrypt;
      len += sealed;
      source_offset_ += encrypts ? c.lengths[next_] : sealed;
      target_offset_ += encrypts ? sealed : c.lengths[next_];
      piece.end = ++next_;
    } while (next_ < c.count && piece.end - piece.first < most_chunks &&
             len + c.lengths[next_] + c.tag_len <= piece_len);
    return true;
  }

  // Those before are done: pieces are given out in order, and a thread finishes the one that it has.
  void end_before(std::size_t chunk) {
    work_.stop();
    const std::lock_guard lock(mutex_);
    done_ = std::min(done_, chunk);
  }

  void interrupted() const { work_.check(true); }

  // Held by the thread that writes.
  std::mutex& writing() { return writing_; }

  template <class Body>
  std::size_t run(std::size_t threads, Body&& body) {
    work_.run(threads, std::forward<Body>(body));
    return done_;
  }

 private:
  const ChunkCopy& copy_;
  FileWork work_;
  std::mutex mutex_, writing_;
  std::size_t next_ = 0, done_ = copy_.chunks.count;
  std::uint64_t source_offset_ = copy_.source_offset, target_offset_ = copy_.target_offset;
};

// A thread that has a piece to write while another writes takes its next one first: a file is locked as long as it is
// written to, and whoever waits for that lock in the kernel spins.
constexpr std::size_t slots_of_thread = 2;

class CopyWorker {
 public:
  CopyWorker(std::string_view engine, const ChunkCopy& copy, Copying& copying)
      : engine_(engine), copy_(copy), chunks_(copy.chunks), copying_(copying) {}

  void work() {
    for (;;) {
      Slot& slot = slots_[filled_];
      if (!copying_.next(slot.piece)) break;
      if (!fill(slot)) {
        copying_.end_before(slot.piece.first);
        break;
      }
      ++filled_;
      if (!write(filled_ == slots_.size())) return;
    }
    write(true);
  }

 private:
  // A piece, read and transformed: it waits to be written.
  struct Slot {
    CopyPiece piece{};
    SecretBytes buffer;
  };

  bool fill(Slot& slot) {
    std::size_t len = 0;
    for (std::size_t i = slot.piece.first; i < slot.piece.end; ++i) len += chunks_.lengths[i] + chunks_.tag_len;
    if (slot.buffer.size() < len) slot.buffer = SecretBytes(std::max(len, piece_len));
    return move(slot, true) && transform(slot);
  }

  // Writes what waits, unless another thread writes and this one need not wait for it. False: that failed.
  bool write(bool waits) {
    if (filled_ == 0) return true;
    std::unique_lock turn(copying_.writing(), std::defer_lock);
    if (waits) {
      turn.lock();
    } else if (!turn.try_lock()) {
      return true;
    }
    for (std::size_t i = 0; i < filled_; ++i) {
      if (move(slots_[i], false)) continue;
      copying_.end_before(slots_[i].piece.first);
      return false;
    }
    filled_ = 0;
    return true;
  }

  // Reads all of a piece, or writes it: plaintext leaves room for the tags.
  bool move(Slot& slot, bool reads) {
    const CopyPiece& piece = slot.piece;
    const bool is_plain = reads == (copy_.direction == Direction::encrypt);
    std::array<iovec, most_chunks> parts;
    std::size_t count = 0;
    std::uint8_t* at = slot.buffer.data();
    for (std::size_t i = piece.first; i < piece.end; ++i) {
      parts[count++] = {at, chunks_.lengths[i] + (is_plain ? 0 : chunks_.tag_len)};
      at += chunks_.lengths[i] + chunks_.tag_len;
    }
    std::uint64_t offset = reads ? piece.source_offset : piece.target_offset;
    for (std::size_t first = 0; first < count;) {
      const auto place = static_cast<off_t>(offset);
      const auto left = static_cast<int>(count - first);
      const ssize_t moved =
          reads ? preadv(copy_.source, &parts[first], left, place) : pwritev(copy_.target, &parts[first], left, place);
      if (moved < 0 && errno == EINTR) {
        copying_.interrupted();
        continue;
      }
      if (moved <= 0) return false;
      offset += static_cast<std::uint64_t>(moved);
      for (auto rest = static_cast<std::size_t>(moved); rest != 0;) {
        iovec& part = parts[first];
        const std::size_t taken = std::min(rest, part.iov_len);
        part = {static_cast<std::uint8_t*>(part.iov_base) + taken, part.iov_len - taken};
        rest -= taken;
        if (part.iov_len == 0) ++first;
      }
    }
    return true;
  }

  bool transform(Slot& slot) {
    const CopyPiece& piece = slot.piece;
    messages_.clear();
    std::uint8_t* at = slot.buffer.data();
    for (std::size_t i = piece.first; i < piece.end; ++i) {
      Message m;
      m.key = &chunks_.key(i);
      m.direction = copy_.direction;
      m.in = m.out = at;
      m.in_len = m.out_len = chunks_.lengths[i];
      m.iv = chunks_.ivs.data() + i * chunks_.iv_len;
      m.iv_len = chunks_.iv_len;
      m.tag = at + m.in_len;
      m.tag_len = chunks_.tag_len;
      messages_.push_back(m);
      at += m.in_len + m.tag_len;
    }
    results_.assign(messages_.size(), {});
    naming_chunks(chunks_.first_number + piece.first, chunks_.first_number + piece.end - 1,
                  [&] { run(engine_, messages_, results_); });
    return std::ranges::all_of(results_, [](const Result& result) { return result.status == Status::ok; });
  }

  const std::string_view engine_;
  const ChunkCopy& copy_;
  const FileChunks& chunks_;
  Copying& copying_;
  std::array<Slot, slots_of_thread> slots_;
  std::size_t filled_ = 0;  // of the slots: these wait to be written, in order
  std::vector<Message> messages_;
  std::vector<Result> results_;
};

}  // namespace

std::size_t copy_chunks(std::string_view engine, const ChunkCopy& copy,
                        const std::function<void(bool interrupted)>& check) {
  const FileChunks& c = copy.chunks;
  if (!c.algorithm().is_aead() || c.has_mac() || !c.tags.empty() || c.ivs.size() != c.count * c.iv_len ||
      std::ranges::any_of(c.lengths, [](std::uint64_t len) { return len == 0 || len > most_buffer_len; })) {
    throw Error(Status::invalid_argument,
                "these chunks cannot be copied: expected those of an AEAD, none of them empty");
  }
  Copying copying(copy, check);
  return copying.run(ThreadPool::instance().threads(), [&] { CopyWorker(engine, copy, copying).work(); });
}

}  // namespace warpcipher
