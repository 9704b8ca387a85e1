// SPDX-License-Identifier: Apache-2.0
#include "flow/file/copy_chunks.hpp"

#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <vector>

#include "core/error.hpp"
#include "core/system_random.hpp"
#include "core/thread_pool.hpp"
#include "core/wipe.hpp"
#include "dispatch/run.hpp"
#include "engine/cpu/hmac.hpp"
#include "flow/copy.hpp"
#include "flow/file/file_piece.hpp"
#include "flow/file/reading.hpp"
#include "flow/file/work.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t page = 4096;

// Of a piece that has several chunks: input and output lie in a quarter of a core's second cache.
std::size_t most_of_a_piece() {
  const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);  // 0: unknown
  return static_cast<std::size_t>(std::clamp(cache / 8, 128L << 10, 512L << 10));
}

// A buffer to read to or write from. It begins as far in a page as in its file: the system copies by `rep movsb`,
// fastest where both lie alike, and on Zen 3 is 3.3 times as slow where its target is 1 to 31 bytes further in a page
// than its source (1 GiB: 0.53 s and 0.16). malloc() gives long buffers 16 bytes into a page.
class CopyBuffer {
 public:
  std::span<std::uint8_t> place(std::uint64_t offset, std::size_t len) {
    if (bytes_.size() < len + page) bytes_ = SecretBytes(len + page);
    return text_ = {bytes_.data() + (offset - reinterpret_cast<std::uintptr_t>(bytes_.data())) % page, len};
  }

  // Reads or writes all of it.
  bool move(ssize_t (*call)(int, const iovec*, int, off_t), int file, std::uint64_t offset, const FileWork& work) {
    const auto some = [&](std::size_t done, std::size_t left) {
      const iovec rest{text_.data() + done, left};
      return call(file, &rest, 1, static_cast<off_t>(offset + done));
    };
    return move_all(text_.size(), some, [&] { work.check(true); }) == text_.size();
  }

 private:
  SecretBytes bytes_;
  std::span<std::uint8_t> text_;
};

}  // namespace

CopiedChunks copy_chunks(std::string_view engine, const Sealing& sealing, const ChunkCopy& copy,
                         const std::function<void(bool interrupted)>& check) {
  // A piece is longer than others only where it is one chunk.
  const std::size_t sealed_len = sealing.chunk_len + sealing.overhead();
  const std::size_t at_once = std::max<std::size_t>(1, most_of_a_piece() / sealed_len);
  std::atomic<std::size_t> next{0};
  // All before the first piece that failed are done: pieces are given out in order, and a thread finishes what it has.
  FailingWork<CopiedChunks> work(check);
  const bool encrypts = copy.direction == Direction::encrypt;
  const std::size_t threads = threads_with_buffers(ThreadPool::instance().threads(), 2 * (at_once * sealed_len + page));
  work.run(threads, [&] {
    CopyBuffer in, out;
    while (work.goes_on()) {
      const std::size_t begin = next.fetch_add(at_once, std::memory_order_relaxed);
      if (begin >= copy.count) return;
      const std::size_t count = std::min(at_once, copy.count - begin);
      const std::uint64_t first = copy.first + begin;
      const std::uint64_t before = sealing.begin_of(first) - sealing.begin_of(copy.first);
      const std::uint64_t sealed_before = before + begin * sealing.overhead();
      const std::size_t plain = sealing.begin_of(first + count) - sealing.begin_of(first);
      const std::size_t sealed = plain + count * sealing.overhead();
      const std::uint64_t source = copy.source_offset + (encrypts ? before : sealed_before);
      const std::uint64_t target = copy.target_offset + (encrypts ? sealed_before : before);
      const ChunksInMemory chunks{copy.direction,
                                  first,
                                  count,
                                  false,
                                  Memory::host,
                                  in.place(source, encrypts ? plain : sealed),
                                  out.place(target, encrypts ? sealed : plain)};
      if (!in.move(preadv, copy.source, source, work)) return work.fail({begin, errno, 0});
      if (crypt_chunks(engine, sealing, chunks)) return work.fail({begin});
      if (!out.move(pwritev, copy.target, target, work)) {
        return work.fail({begin, 0, errno != 0 ? errno : ENOSPC});
      }
    }
  });
  return work.failure().value_or(CopiedChunks{copy.count});
}

namespace {

constexpr std::size_t hashed_at_once = std::size_t{64} << 10;  // bytes for which another core is worth waking

class Crypting {
 public:
  Crypting(std::string_view engine, const Sealing& sealing, const ChunksInMemory& chunks, Stream stream)
      : engine_(engine),
        sealing_(sealing),
        chunks_(chunks),
        stream_(stream),
        encrypts_(chunks.direction == Direction::encrypt),
        columns_(RegularChunks::whole(sealing, chunks.first, chunks.count, text_len(), chunks.is_final)),
        places_(columns_.chunks()) {
    const std::size_t expected = text_len() + (encrypts_ ? gain() : 0);
    if (chunks.out.size() != expected) {
      refuse("out has ", chunks.out.size(), " bytes, expected ", expected);
    }
    if (encrypts_ && sealing.keys.size() != 1) refuse("chunks are encrypted under one key");
    place();
  }

  std::optional<std::uint64_t> run(std::size_t* favourite) {
    find_ivs();
    if (encrypts_) {
      write_heads();
    } else if (const auto bad = find_bad()) {
      return chunks_.first + *bad;
    }
    const std::size_t keys = sealing_.keys.size(), begin = favourite != nullptr ? *favourite % keys : 0;
    for (std::size_t turn = 0; turn < keys && !left_.empty(); ++turn) {
      const std::size_t number = (begin + turn) % keys;
      const std::size_t before = left_.size();
      run_under(sealing_.keys[number]);
      if (favourite != nullptr && left_.size() < before) *favourite = number;
    }
    if (!left_.empty() && encrypts_) throw Error(Status::engine_failure, "a chunk was not encrypted");
    if (!left_.empty()) return chunks_.first + left_.front().chunk;
    if (sealing_.has_mac() && encrypts_) add_macs();
    return std::nullopt;
  }

 private:
  std::size_t gain() const {
    return chunks_.count * sealing_.overhead() + sealing_.overhead(chunks_.is_final) - sealing_.overhead();
  }
  std::size_t text_len() const {
    if (!encrypts_ && chunks_.in.size() < gain()) refuse("sealed chunks are shorter than their tags");
    return chunks_.in.size() - (encrypts_ ? 0 : gain());
  }

  // Where the text of each chunk begins in both buffers.
  void place() {
    std::uint64_t plain = 0, sealed = 0;
    items_.reserve(chunks_.count);
    for (std::size_t i = 0; i < chunks_.count; ++i) {
      const std::uint64_t text = sealed + places_.front_len(i);
      items_.push_back(encrypts_ ? FilePiece::Item{i, plain, text} : FilePiece::Item{i, text, plain});
      plain += places_.lengths[i];
      sealed += places_.len_in_file(i);
    }
    left_ = items_;
  }

  // Where the ciphertext begins.
  std::uint64_t text_at(std::size_t i) const { return encrypts_ ? items_[i].place : items_[i].at; }

  void write_heads() {
    for (std::size_t i = 0; i < chunks_.count && !places_.heads.empty(); ++i) {
      const std::span<const std::uint8_t> head = places_.head(i);
      std::ranges::copy(head, chunks_.out.data() + text_at(i) - head.size());
    }
  }

  // The nonces that no rule gives: before each ciphertext.
  void find_ivs() {
    if (!sealing_.nonce_base.empty()) return;
    const std::size_t len = sealing_.iv_len;
    random_ivs_.resize(chunks_.count * len);
    if (encrypts_) fill_from_system(random_ivs_);
    for (std::size_t i = 0; i < chunks_.count; ++i) {
      std::uint8_t* const iv = random_ivs_.data() + i * len;
      if (encrypts_) {
        std::copy_n(iv, len, chunks_.out.data() + text_at(i) - len);
      } else {
        std::copy_n(chunks_.in.data() + text_at(i) - len, len, iv);
      }
    }
    places_.ivs = random_ivs_;
  }

  // Runs the chunks that are left, and leaves those whose tag does not match.
  void run_under(const Key* const& key) {
    Columns& columns = batch_.make(places_, chunks_.direction, left_, chunks_.in, chunks_.out);
    columns.memory = chunks_.memory;
    columns.keys = {&key, 1};
    // Without offsets they are back to back.
    if (left_.size() == chunks_.count && !sealing_.nonce_base.empty() && !sealing_.has_mac() && places_.heads.empty()) {
      columns.in_offsets = columns.out_offsets = {};
    }
    std::vector<Result> results(left_.size());
    run_columns(engine_, columns, results, stream_);
    std::size_t bad = 0;
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (results[k].status != Status::ok) left_[bad++] = left_[k];
    }
    left_.resize(bad);
  }

  // Calls body(own, number) for each chunk, on all cores where HMACs of long chunks are worth it. own: of each core, as
  // `first`.
  template <class Own, class Body>
  void for_all(const Own& first, Body&& body) {
    const std::size_t some = std::max<std::size_t>(1, hashed_at_once / sealing_.chunk_len);
    const std::size_t at_once = sealing_.has_mac() ? some : chunks_.count;
    ThreadPool::instance().parallel_for(chunks_.count, at_once, [&](std::size_t begin, std::size_t end) {
      Own own(first);
      for (std::size_t i = begin; i < end; ++i) body(own, i);
    });
  }

  std::optional<std::size_t> find_bad() {
    std::atomic<std::size_t> first_bad{chunks_.count};
    for_all(PieceCheck(places_), [&](PieceCheck& check, std::size_t i) {
      if (check.is_right(items_[i], chunks_.in.data())) return;
      std::size_t before = first_bad;
      while (i < before && !first_bad.compare_exchange_weak(before, i)) {
      }
    });
    if (first_bad == chunks_.count) return std::nullopt;
    return first_bad;
  }

  void add_macs() {
    for_all(Hmac(sealing_.mac.hash, sealing_.mac.key), [&](Hmac& hmac, std::size_t i) {
      const std::size_t at = text_at(i), len = places_.lengths[i], iv_len = sealing_.iv_len;
      hmac.compute({{places_.ivs.subspan(i * iv_len, iv_len), chunks_.out.subspan(at, len)}},
                   chunks_.out.subspan(at + len, sealing_.tag_len));
    });
  }

  const std::string_view engine_;
  const Sealing& sealing_;
  const ChunksInMemory& chunks_;
  const Stream stream_;
  const bool encrypts_;
  const RegularChunks columns_;
  FileChunks places_;
  std::vector<FilePiece::Item> items_, left_;  // left_: those that no key has opened
  PieceColumns batch_;
  std::vector<std::uint8_t> random_ivs_;
};

}  // namespace

std::optional<std::uint64_t> crypt_chunks(std::string_view engine, const Sealing& sealing, const ChunksInMemory& chunks,
                                          Stream stream, std::size_t* key) {
  if (chunks.memory == Memory::device && (sealing.has_mac() || sealing.nonce_base.empty() || sealing.head_rule)) {
    refuse("chunks with an HMAC, a head or nonces of their own lie in host memory");
  }
  Crypting crypting(engine, sealing, chunks, stream);
  std::optional<std::uint64_t> bad;
  const auto wipe = [&] {
    if (chunks.memory == Memory::host) wipe_in_parallel(chunks.out.data(), chunks.out.size());
  };
  try {
    bad = crypting.run(key);
  } catch (...) {
    wipe();
    throw;
  }
  if (bad) wipe();
  return bad;
}

}  // namespace warpcipher
