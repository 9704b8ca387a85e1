// SPDX-License-Identifier: Apache-2.0
#include "parquet/open_chunks.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/thread_pool.hpp"
#include "core/wipe.hpp"
#include "dispatch/run.hpp"
#include "flow/file/file_work.hpp"
#include "parquet/page_header.hpp"

namespace warpcipher::parquet {
namespace {

constexpr std::size_t counter_iv_size = nonce_size + 4;

// A longer piece is one long page, which cores share.
constexpr std::uint64_t most_alone = std::uint64_t{1} << 20;

// Of a chunk that is not encrypted, read at once: signals are checked between.
constexpr std::uint64_t copied_at_once = std::uint64_t{4} << 20;

class Opening {
 public:
  Opening(const ChunksToOpen& wanted, const std::function<void(bool)>& check) : wanted_(wanted), work_(check) {
    for (const SealedChunk& chunk : wanted.chunks) {
      places_.push_back(end_);
      end_ += chunk.size;
      streams_.emplace_back(wanted.source, chunk, wanted.prefix,
                            is_authenticated() ? gcm_overhead : length_size + nonce_size);
    }
  }

  bool is_authenticated() const { return wanted_.page_keys.empty() || wanted_.page_keys[0]->algorithm().is_aead(); }
  const ChunksToOpen& wanted() const { return wanted_; }
  PageStream& stream(std::size_t chunk) { return streams_[chunk]; }
  std::uint8_t* out(std::size_t chunk) const { return wanted_.out.data() + places_[chunk]; }
  bool goes_on() const { return work_.goes_on(); }
  void check_signals() const { work_.check(false); }
  void interrupted() const { work_.check(true); }

  // A chunk that no thread has begun, or one that another is at; nothing where all are done.
  std::optional<std::size_t> take() {
    const std::lock_guard lock(mutex_);
    if (next_ < wanted_.chunks.size()) {
      open_.push_back(next_);
      return next_++;
    }
    if (open_.empty()) return std::nullopt;
    std::rotate(open_.begin(), open_.begin() + 1, open_.end());  // threads spread over them
    return open_.back();
  }

  void exhausted(std::size_t chunk) {
    const std::lock_guard lock(mutex_);
    std::erase(open_, chunk);
  }

  // The first in the order of the chunks is kept.
  void fail(OpenFailure failure) {
    work_.stop();
    const std::lock_guard lock(mutex_);
    const auto place = [](const OpenFailure& of) { return std::pair(of.chunk, of.module); };
    if (!failure_ || place(failure) < place(*failure_)) failure_ = std::move(failure);
  }

  template <class Body>
  void run(std::size_t threads, Body&& body) {
    work_.run(threads, std::forward<Body>(body));
  }

  OpenResult result() {
    OpenResult found;
    found.failure = std::move(failure_);
    if (found.failure) return found;
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      const bool is_encrypted = wanted_.chunks[i].is_encrypted;
      const std::uint64_t size = is_encrypted ? streams_[i].out_size() : wanted_.chunks[i].size;
      found.chunks.push_back({end, size, streams_[i].pages()});
      close_up(out(i), found.chunks.back());
      end += found.chunks.back().size;
    }
    const std::span<std::uint8_t> rest = wanted_.out.subspan(end);
    secure_wipe(rest.data(), rest.size());
    return found;
  }

 private:
  // Moves a chunk to where it belongs, its pages without the padding of their headers.
  void close_up(std::uint8_t* from, OpenedChunk& chunk) const {
    std::uint8_t* to = wanted_.out.data() + chunk.out;
    const auto move = [&](std::uint64_t begin, std::uint64_t size) {
      if (to != from + begin) std::memmove(to, from + begin, size);
      to += size;
    };
    std::uint64_t moved = 0, padding = 0;  // what lies before a padding goes at once
    for (OpenedPage& page : chunk.pages) {
      const std::uint64_t before = page.out;
      page.out -= padding;
      if (page.padding == 0) continue;
      move(moved, before + page.head_size - page.padding - moved);
      moved = before + page.head_size;
      page.size -= page.padding;
      padding += page.padding;
    }
    move(moved, chunk.size - moved);
    chunk.size -= padding;
  }

  const ChunksToOpen& wanted_;
  FileWork work_;
  std::vector<std::uint64_t> places_;
  std::uint64_t end_ = 0;
  std::deque<PageStream> streams_;
  std::mutex mutex_;
  std::size_t next_ = 0;
  std::vector<std::size_t> open_;
  std::optional<OpenFailure> failure_;
};

// Of a thread: it serves its next pieces too, since memory that is new costs as much as reading. It holds ciphertext.
thread_local PagePiece piece_of_this_thread;

class Worker {
 public:
  Worker(std::string_view engine, Opening& opening, bool shares)
      : engine_(engine), opening_(opening), shares_(shares) {}

  ~Worker() { piece_.buffer.trim(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void work() {
    while (opening_.goes_on()) {
      const std::optional<std::size_t> chunk = opening_.take();
      if (!chunk) return;
      try {
        open(*chunk);
      } catch (const ReadError& error) {
        opening_.fail({OpenFailure::Kind::file, *chunk, OpenFailure::no_module, {}, error});
      } catch (const Refused& refused) {
        opening_.fail({OpenFailure::Kind::wrong, *chunk, refused.module, refused.why});
      }
    }
  }

 private:
  struct Refused {
    std::uint64_t module;
    std::string why;
  };

  void open(std::size_t chunk) {
    if (!opening_.wanted().chunks[chunk].is_encrypted) {
      opening_.exhausted(chunk);
      return copy(chunk);
    }
    while (opening_.goes_on()) {
      if (!next(chunk)) return opening_.exhausted(chunk);
      if (const auto bad = decrypt(chunk)) return opening_.fail({OpenFailure::Kind::bad_tag, chunk, *bad});
      mend(chunk);
    }
  }

  bool next(std::size_t chunk) {
    try {
      return opening_.stream(chunk).next(piece_, [this] { opening_.interrupted(); });
    } catch (const Error& error) {
      throw Refused{OpenFailure::no_module, error.what()};
    }
  }

  void copy(std::size_t chunk) {
    const ChunksToOpen& wanted = opening_.wanted();
    const SealedChunk& sealed = wanted.chunks[chunk];
    std::uint8_t* const out = opening_.out(chunk);
    if (wanted.source.descriptor < 0) {
      std::memcpy(out, wanted.source.bytes.data() + (sealed.position - wanted.source.begin), sealed.size);
      return;
    }
    for (std::uint64_t done = 0; done < sealed.size; done += copied_at_once) {
      opening_.check_signals();
      const std::uint64_t len = std::min(copied_at_once, sealed.size - done);
      read_at(wanted.source.descriptor, sealed.position + done, {out + done, len}, [this] { opening_.interrupted(); });
    }
  }

  // The number of the first module whose tag does not match.
  std::optional<std::uint64_t> decrypt(std::size_t chunk) {
    messages_.clear();
    ivs_.clear();
    if (!opening_.is_authenticated()) ivs_.reserve(counter_iv_size * piece_.pages.size());
    const ChunksToOpen& wanted = opening_.wanted();
    const std::uint32_t key = wanted.key_index[chunk];
    for (const PagePiece::Page& page : piece_.pages) {
      add(chunk, page.head, *wanted.head_keys[key]);
      add(chunk, page.page, *wanted.page_keys[key]);
    }
    results_.assign(messages_.size(), {});
    run_messages();
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (results_[i].status != Status::ok) return 2 * piece_.first_page + i;
    }
    return std::nullopt;
  }

  void run_messages() {
    if (shares_ && piece_.len > most_alone) return run(engine_, messages_, results_);
    const ThreadPool::Alone alone;
    run(engine_, messages_, results_);
  }

  void add(std::size_t chunk, const PagePiece::Module& module, const Key& key) {
    Message m;
    m.key = &key;
    m.direction = Direction::decrypt;
    m.in = module.at + head_size;
    m.in_len = m.out_len = module.text_size;
    m.out = opening_.out(chunk) + module.out;
    m.iv = module.at + length_size;
    m.iv_len = nonce_size;
    if (key.algorithm().is_aead()) {
      const std::size_t i = messages_.size();
      const std::size_t begin = i == 0 ? 0 : piece_.aad_ends[i - 1];
      m.aad = piece_.aads.data() + begin;
      m.aad_len = piece_.aad_ends[i] - begin;
      m.tag = const_cast<std::uint8_t*>(m.in + m.in_len);
      m.tag_len = tag_size;
    } else {
      const std::size_t at = ivs_.size();
      ivs_.insert(ivs_.end(), m.iv, m.iv + nonce_size);
      ivs_.resize(at + counter_iv_size);
      store_be32(ivs_.data() + at + nonce_size, 1);
      m.iv = ivs_.data() + at;
      m.iv_len = counter_iv_size;
    }
    messages_.push_back(m);
  }

  void mend(std::size_t chunk) {
    const std::uint64_t overhead = opening_.is_authenticated() ? gcm_overhead : length_size + nonce_size;
    for (std::size_t i = 0; i < piece_.pages.size(); ++i) {
      const auto& [head, page, is_dictionary] = piece_.pages[i];
      try {
        const std::size_t size = shrink_header({opening_.out(chunk) + head.out, head.text_size},
                                               page.text_size + overhead, page.text_size, is_dictionary);
        if (size != head.text_size) opening_.stream(chunk).set_padding(piece_.first_page + i, head.text_size - size);
      } catch (const Error& error) {
        throw Refused{2 * (piece_.first_page + i), error.what()};
      }
    }
  }

  const std::string_view engine_;
  Opening& opening_;
  const bool shares_;
  PagePiece& piece_ = piece_of_this_thread;
  std::vector<std::uint8_t> ivs_;
  std::vector<Message> messages_;
  std::vector<Result> results_;
};

void check(const ChunksToOpen& wanted) {
  std::uint64_t room = wanted.out.size();
  for (std::size_t i = 0; i < wanted.chunks.size(); ++i) {
    const SealedChunk& chunk = wanted.chunks[i];
    const ChunkSource& source = wanted.source;
    const std::uint64_t begin = chunk.position - source.begin;
    const bool is_in_source =
        source.descriptor >= 0 ||
        (chunk.position >= source.begin && begin <= source.bytes.size() && chunk.size <= source.bytes.size() - begin);
    const bool has_key = !chunk.is_encrypted || wanted.key_index[i] < wanted.head_keys.size();
    if (chunk.size > room || !is_in_source || !has_key) {
      throw Error(Status::invalid_argument,
                  "chunk " + std::to_string(i) + ": " + (has_key ? "it does not fit" : "it has no key"));
    }
    room -= chunk.size;
  }
}

}  // namespace

OpenResult open_chunks(std::string_view engine, const ChunksToOpen& wanted, std::size_t threads,
                       const std::function<void(bool interrupted)>& check_signals) {
  check(wanted);
  const auto wipe = [&] { secure_wipe(wanted.out.data(), wanted.out.size()); };
  try {
    const std::size_t most = ThreadPool::instance().threads();
    Opening opening(wanted, check_signals);
    opening.run(threads == 0 ? most : std::min(threads, most), [&] { Worker(engine, opening, threads != 1).work(); });
    OpenResult found = opening.result();
    if (found.failure) wipe();
    return found;
  } catch (...) {
    wipe();
    throw;
  }
}

}  // namespace warpcipher::parquet
