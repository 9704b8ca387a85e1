// SPDX-License-Identifier: Apache-2.0
#include "flow/file/copy_chunks.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <vector>

#include "core/error.hpp"
#include "core/thread_pool.hpp"
#include "core/wipe.hpp"
#include "dispatch/run.hpp"
#include "flow/file/work.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t page = 4096;

// Of a piece that has several chunks: what is read and what is written lie in a quarter of a core's second cache.
std::size_t most_of_a_piece() {
  const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);  // 0: unknown
  return static_cast<std::size_t>(std::clamp(cache / 8, 128L << 10, 512L << 10));
}

// Chunks [first, end), and where they begin in both files.
struct CopyPiece {
  std::size_t first, end;
  std::uint64_t source_offset, target_offset;
};

// What becomes of a chunk's text in the sealed file.
std::size_t sealed_len(const SealedChunks& c, std::size_t i) { return c.head(i).size() + c.lengths[i] + c.tag_len; }

class Copying {
 public:
  Copying(const ChunkCopy& copy, const std::function<void(bool)>& check) : copy_(copy), work_(check) {}

  // Of one piece in one file. A piece is longer than others only where it is one chunk.
  std::size_t longest() const {
    const SealedChunks& c = copy_.chunks;
    const std::uint64_t chunk = c.count != 0 ? *std::ranges::max_element(c.lengths) : 0;
    return std::max(piece_len_, static_cast<std::size_t>(chunk) + c.head_len + c.tag_len);
  }

  bool next(CopyPiece& piece) {
    if (!work_.goes_on()) return false;
    const std::lock_guard lock(mutex_);
    const SealedChunks& c = copy_.chunks;
    if (next_ == c.count) return false;
    piece = {next_, next_, source_offset_, target_offset_};
    std::size_t len = 0;
    do {
      const std::size_t sealed = sealed_len(c, next_);
      const bool encrypts = copy_.direction == Direction::encrypt;
      len += sealed;
      source_offset_ += encrypts ? c.lengths[next_] : sealed;
      target_offset_ += encrypts ? sealed : c.lengths[next_];
      piece.end = ++next_;
    } while (next_ < c.count && len + sealed_len(c, next_) <= piece_len_);
    return true;
  }

  // Those before are done: pieces are given out in order, and a thread finishes the one that it has.
  void end_before(std::size_t chunk) {
    work_.stop();
    const std::lock_guard lock(mutex_);
    done_ = std::min(done_, chunk);
  }

  void interrupted() const { work_.check(true); }

  template <class Body>
  std::size_t run(std::size_t threads, Body&& body) {
    work_.run(threads, std::forward<Body>(body));
    return done_;
  }

 private:
  const ChunkCopy& copy_;
  const std::size_t piece_len_ = most_of_a_piece();
  FileWork work_;
  std::mutex mutex_;
  std::size_t next_ = 0, done_ = copy_.chunks.count;
  std::uint64_t source_offset_ = copy_.source_offset, target_offset_ = copy_.target_offset;
};

class CopyWorker {
 public:
  CopyWorker(std::string_view engine, const ChunkCopy& copy, Copying& copying)
      : engine_(engine), copy_(copy), chunks_(copy.chunks), copying_(copying) {}

  void work() {
    CopyPiece piece{};
    while (copying_.next(piece)) {
      std::size_t plain = 0, sealed = 0;
      for (std::size_t i = piece.first; i < piece.end; ++i) {
        plain += chunks_.lengths[i];
        sealed += sealed_len(chunks_, i);
      }
      const bool encrypts = copy_.direction == Direction::encrypt;
      in_.place(piece.source_offset, encrypts ? plain : sealed);
      out_.place(piece.target_offset, encrypts ? sealed : plain);
      const bool is_done = move(preadv, copy_.source, in_, piece.source_offset) && transform(piece) &&
                           move(pwritev, copy_.target, out_, piece.target_offset);
      if (!is_done) return copying_.end_before(piece.first);
    }
  }

 private:
  // What is read, or written. It begins as far in a page as in its file: the system copies by `rep movsb`, which is
  // fastest where both lie alike, and on Zen 3 is 3.3 times as slow where its target is 1 to 31 bytes further in a page
  // than its source (1 GiB: 0.53 s and 0.16). malloc() gives long buffers 16 bytes into a page.
  struct Buffer {
    void place(std::uint64_t offset, std::size_t size) {
      if (bytes.size() < size + page) bytes = SecretBytes(size + page);
      text = bytes.data() + (offset - reinterpret_cast<std::uintptr_t>(bytes.data())) % page;
      len = size;
    }

    SecretBytes bytes;
    std::uint8_t* text = nullptr;
    std::size_t len = 0;
  };

  // Reads or writes all of a buffer.
  bool move(ssize_t (*call)(int, const iovec*, int, off_t), int file, const Buffer& buffer, std::uint64_t offset) {
    for (std::size_t done = 0; done < buffer.len;) {
      const iovec rest{buffer.text + done, buffer.len - done};
      const ssize_t moved = call(file, &rest, 1, static_cast<off_t>(offset + done));
      if (moved < 0 && errno == EINTR) {
        copying_.interrupted();
        continue;
      }
      if (moved <= 0) return false;
      done += static_cast<std::size_t>(moved);
    }
    return true;
  }

  bool transform(const CopyPiece& piece) {
    messages_.clear();
    const bool encrypts = copy_.direction == Direction::encrypt;
    std::uint8_t *in = in_.text, *out = out_.text;
    for (std::size_t i = piece.first; i < piece.end; ++i) {
      const std::span<const std::uint8_t> head = chunks_.head(i), aad = chunks_.aad_of(i);
      if (encrypts) {
        out = std::ranges::copy(head, out).out;
      } else {
        if (!std::ranges::equal(head, std::span(in, head.size()))) return false;
        in += head.size();
      }
      Message m;
      m.key = &chunks_.key(i);
      m.direction = copy_.direction;
      m.in = in;
      m.out = out;
      m.in_len = m.out_len = chunks_.lengths[i];
      m.iv = chunks_.ivs.data() + i * chunks_.iv_len;
      m.iv_len = chunks_.iv_len;
      m.aad = aad.data();
      m.aad_len = aad.size();
      m.tag = (encrypts ? out : in) + m.in_len;
      m.tag_len = chunks_.tag_len;
      messages_.push_back(m);
      in += m.in_len + (encrypts ? 0 : m.tag_len);
      out += m.in_len + (encrypts ? m.tag_len : 0);
    }
    results_.assign(messages_.size(), {});
    naming_chunks(chunks_.first_number + piece.first, chunks_.first_number + piece.end - 1,
                  [&] { run(engine_, messages_, results_); });
    return std::ranges::all_of(results_, [](const Result& result) { return result.status == Status::ok; });
  }

  const std::string_view engine_;
  const ChunkCopy& copy_;
  const SealedChunks& chunks_;
  Copying& copying_;
  Buffer in_, out_;
  std::vector<Message> messages_;
  std::vector<Result> results_;
};

}  // namespace

std::size_t copy_chunks(std::string_view engine, const ChunkCopy& copy,
                        const std::function<void(bool interrupted)>& check) {
  const SealedChunks& c = copy.chunks;
  if (!c.algorithm().is_aead() || c.has_mac() || c.ivs.size() != c.count * c.iv_len ||
      std::ranges::any_of(c.lengths, [](std::uint64_t len) { return len == 0 || len > most_buffer_len; })) {
    throw Error(Status::invalid_argument,
                "these chunks cannot be copied: expected those of an AEAD, none of them empty");
  }
  Copying copying(copy, check);
  const std::size_t buffers_len = 2 * (copying.longest() + page);
  const std::size_t threads = threads_with_buffers(ThreadPool::instance().threads(), buffers_len);
  return copying.run(threads, [&] { CopyWorker(engine, copy, copying).work(); });
}

}  // namespace warpcipher
