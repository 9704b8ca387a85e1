// SPDX-License-Identifier: Apache-2.0
#include "flow/file/copy_chunks.hpp"

#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/system_random.hpp"
#include "core/thread_pool.hpp"
#include "core/wipe.hpp"
#include "dispatch/run.hpp"
#include "engine/cpu/hmac.hpp"
#include "flow/copy.hpp"
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
  void end_before(const CopiedChunks& done) {
    work_.stop();
    const std::lock_guard lock(mutex_);
    if (done.count < done_.count) done_ = done;
  }

  void interrupted() const { work_.check(true); }

  template <class Body>
  CopiedChunks run(std::size_t threads, Body&& body) {
    work_.run(threads, std::forward<Body>(body));
    return done_;
  }

 private:
  const ChunkCopy& copy_;
  const std::size_t piece_len_ = most_of_a_piece();
  FileWork work_;
  std::mutex mutex_;
  std::size_t next_ = 0;
  CopiedChunks done_{copy_.chunks.count};
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
      if (!move(preadv, copy_.source, in_, piece.source_offset)) return copying_.end_before({piece.first, errno, 0});
      if (!transform(piece)) return copying_.end_before({piece.first});
      if (!move(pwritev, copy_.target, out_, piece.target_offset)) {
        return copying_.end_before({piece.first, 0, errno != 0 ? errno : ENOSPC});
      }
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
    const auto some = [&](std::size_t done, std::size_t left) {
      const iovec rest{buffer.text + done, left};
      return call(file, &rest, 1, static_cast<off_t>(offset + done));
    };
    return move_all(buffer.len, some, [&] { copying_.interrupted(); }) == buffer.len;
  }

  bool transform(const CopyPiece& piece) {
    messages_.clear();
    const bool encrypts = copy_.direction == Direction::encrypt;
    std::uint8_t *in = in_.text, *out = out_.text;
    for (std::size_t i = piece.first; i < piece.end; ++i) {
      const std::span<const std::uint8_t> head = chunks_.head(i);
      if (encrypts) {
        out = std::ranges::copy(head, out).out;
      } else {
        if (!std::ranges::equal(head, std::span(in, head.size()))) return false;
        in += head.size();
      }
      const std::size_t len = chunks_.lengths[i];
      messages_.push_back(chunks_.message(i, copy_.direction, in, out, chunks_.ivs.data() + i * chunks_.iv_len,
                                          (encrypts ? out : in) + len));
      in += len + (encrypts ? 0 : chunks_.tag_len);
      out += len + (encrypts ? chunks_.tag_len : 0);
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

CopiedChunks copy_chunks(std::string_view engine, const ChunkCopy& copy,
                         const std::function<void(bool interrupted)>& check) {
  const SealedChunks& c = copy.chunks;
  if (!c.algorithm().is_aead() || c.has_mac() || c.ivs.size() != c.count * c.iv_len ||
      std::ranges::any_of(c.lengths, [](std::uint64_t len) { return len == 0 || len > most_buffer_len; })) {
    refuse("these chunks cannot be copied: expected those of an AEAD, none of them empty");
  }
  Copying copying(copy, check);
  const std::size_t buffers_len = 2 * (copying.longest() + page);
  const std::size_t threads = threads_with_buffers(ThreadPool::instance().threads(), buffers_len);
  return copying.run(threads, [&] { CopyWorker(engine, copy, copying).work(); });
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
    if (const auto bad = move_heads()) return chunks_.first + *bad;
    if (sealing_.has_mac() && !encrypts_) {
      if (const auto bad = find_bad_mac()) return chunks_.first + *bad;
    }
    const std::size_t keys = sealing_.keys.size(), begin = favourite != nullptr ? *favourite % keys : 0;
    for (std::size_t turn = 0; turn < keys && !left_.empty(); ++turn) {
      const std::size_t number = (begin + turn) % keys;
      const std::size_t before = left_.size();
      run_under(sealing_.keys[number]);
      if (favourite != nullptr && left_.size() < before) *favourite = number;
    }
    if (!left_.empty() && encrypts_) throw Error(Status::engine_failure, "a chunk was not encrypted");
    if (!left_.empty()) return chunks_.first + left_.front();
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

  // Where ciphertext and plaintext of each chunk begin in their buffers.
  void place() {
    std::uint64_t plain = 0, sealed = 0;
    for (std::size_t i = 0; i < chunks_.count; ++i) {
      plain_.push_back(plain);
      sealed_.push_back(sealed + places_.front_len(i));
      plain += places_.lengths[i];
      sealed += places_.len_in_file(i);
      left_.push_back(i);
    }
  }

  // Writes the heads, or finds the first chunk whose head is not right.
  std::optional<std::size_t> move_heads() {
    for (std::size_t i = 0; i < chunks_.count && !places_.heads.empty(); ++i) {
      const std::span<const std::uint8_t> head = places_.head(i);
      const std::size_t begin = sealed_[i] - head.size();
      if (encrypts_) {
        std::ranges::copy(head, chunks_.out.data() + begin);
      } else if (!std::ranges::equal(head, chunks_.in.subspan(begin, head.size()))) {
        return i;
      }
    }
    return std::nullopt;
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
        std::copy_n(iv, len, chunks_.out.data() + sealed_[i] - len);
      } else {
        std::copy_n(chunks_.in.data() + sealed_[i] - len, len, iv);
      }
    }
    places_.ivs = random_ivs_;
  }

  // Runs the chunks that are left, and leaves those whose tag does not match.
  void run_under(const Key* const& key) {
    const std::size_t tag_len = sealing_.has_mac() ? 0 : sealing_.tag_len, iv_len = sealing_.iv_len;
    std::vector<std::uint64_t> in_offsets, in_lengths, out_offsets, aad_offsets, aad_lengths;
    std::vector<std::uint8_t> ivs;
    // Without offsets they are back to back.
    const bool are_back_to_back =
        left_.size() == chunks_.count && !sealing_.nonce_base.empty() && !sealing_.has_mac() && places_.heads.empty();
    for (const std::size_t i : left_) {
      if (!are_back_to_back) {
        in_offsets.push_back(encrypts_ ? plain_[i] : sealed_[i]);
        out_offsets.push_back(encrypts_ ? sealed_[i] : plain_[i]);
      }
      in_lengths.push_back(places_.lengths[i] + (encrypts_ ? 0 : tag_len));
      const std::uint8_t* const iv = places_.ivs.data() + i * iv_len;
      ivs.insert(ivs.end(), iv, iv + iv_len);
      if (places_.aad_offsets.empty()) continue;
      aad_offsets.push_back(places_.aad_offsets[i]);
      aad_lengths.push_back(places_.aad_lengths[i]);
    }
    Columns columns;
    columns.direction = chunks_.direction;
    columns.memory = chunks_.memory;
    columns.keys = {&key, 1};
    columns.count = left_.size();
    columns.in = chunks_.in;
    columns.in_offsets = in_offsets;
    columns.in_lengths = in_lengths;
    columns.out = chunks_.out;
    columns.out_offsets = out_offsets;
    columns.ivs = ivs;
    columns.iv_len = iv_len;
    columns.aad = places_.aad;
    columns.aad_offsets = aad_offsets;
    columns.aad_lengths = aad_lengths;
    columns.tag_len = tag_len;
    std::vector<Result> results(left_.size());
    run_columns(engine_, columns, results, stream_);
    std::vector<std::size_t> bad;
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (results[k].status != Status::ok) bad.push_back(left_[k]);
    }
    left_ = std::move(bad);
  }

  // Calls body(hmac, number) for each chunk, on all cores where chunks are long.
  template <class Body>
  void for_macs(Body&& body) {
    const Hmac first(sealing_.mac.hash, sealing_.mac.key);
    const std::size_t at_once = std::max<std::size_t>(1, hashed_at_once / sealing_.chunk_len);
    ThreadPool::instance().parallel_for(chunks_.count, at_once, [&](std::size_t begin, std::size_t end) {
      Hmac hmac(first);
      for (std::size_t i = begin; i < end; ++i) body(hmac, i);
    });
  }

  std::array<std::span<const std::uint8_t>, 2> mac_text(std::span<const std::uint8_t> sealed, std::size_t i) const {
    const std::size_t len = sealing_.iv_len;
    return {places_.ivs.subspan(i * len, len), sealed.subspan(sealed_[i], places_.lengths[i])};
  }

  std::optional<std::size_t> find_bad_mac() {
    std::atomic<std::size_t> first_bad{chunks_.count};
    for_macs([&](Hmac& hmac, std::size_t i) {
      const std::span<const std::uint8_t> tag = chunks_.in.subspan(sealed_[i] + places_.lengths[i], sealing_.tag_len);
      if (hmac.matches(mac_text(chunks_.in, i), tag)) return;
      std::size_t before = first_bad;
      while (i < before && !first_bad.compare_exchange_weak(before, i)) {
      }
    });
    if (first_bad == chunks_.count) return std::nullopt;
    return first_bad;
  }

  void add_macs() {
    for_macs([&](Hmac& hmac, std::size_t i) {
      hmac.compute(mac_text(chunks_.out, i), chunks_.out.subspan(sealed_[i] + places_.lengths[i], sealing_.tag_len));
    });
  }

  const std::string_view engine_;
  const Sealing& sealing_;
  const ChunksInMemory& chunks_;
  const Stream stream_;
  const bool encrypts_;
  const RegularChunks columns_;
  FileChunks places_;
  std::vector<std::uint64_t> plain_, sealed_;
  std::vector<std::uint8_t> random_ivs_;
  std::vector<std::size_t> left_;  // chunks that no key has opened
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
