/* SPDX-License-Identifier: Apache-2.0
 *
 * warpcipher for C++17 and later: the C ABI of warpcipher.h with owners, spans and exceptions. It has no code of its
 * own: every function is inline and is one call of the C function that its comment names, where the details are.
 *
 *     warpcipher::key key("aes-256-gcm", bytes);
 *     std::vector<std::byte> sealed(text.size() + 16);
 *     warpcipher::seal(key, sealed, text, nonce, header);
 */
#ifndef WARPCIPHER_HPP
#define WARPCIPHER_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "warpcipher.h"

namespace warpcipher {

/* The failure of a call: its status, and wc_last_error() as the text. */
class error : public std::runtime_error {
 public:
  error(wc_status status, const std::string &text) : std::runtime_error(text), status_(status) {}
  wc_status status() const noexcept { return status_; }

 private:
  wc_status status_;
};

/* A tag that does not match; the output is zeros. */
class invalid_tag : public error {
 public:
  using error::error;
};

/* Throws the exception of a status; nothing for WC_OK. std::bad_alloc stands for WC_OUT_OF_MEMORY. */
inline void check(wc_status status) {
  if (status == WC_OK) return;
  if (status == WC_OUT_OF_MEMORY) throw std::bad_alloc();
  if (status == WC_INVALID_TAG) throw invalid_tag(status, wc_last_error());
  throw error(status, wc_last_error());
}

/* Bytes that somebody else owns: of std::span, std::vector, std::array, std::string_view, a C array, of any trivially
 * copyable items, or a pointer and a size in bytes. Data is `const void` or `void`. */
template <typename Data>
class basic_view {
  template <typename Range>
  using item = std::remove_pointer_t<decltype(std::declval<Range &>().data())>;
  template <typename Item>
  static constexpr bool fits =
      std::is_trivially_copyable_v<std::remove_cv_t<Item>> && (std::is_const_v<Data> || !std::is_const_v<Item>);

 public:
  constexpr basic_view() noexcept = default;
  constexpr basic_view(Data *data, std::size_t size) noexcept : data_(data), size_(size) {}
  template <typename Item, std::size_t count, typename = std::enable_if_t<fits<Item>>>
  constexpr basic_view(Item (&items)[count]) noexcept : data_(items), size_(sizeof items) {}
  // A literal is longer than its text by a zero byte: give std::string_view(text).
  template <std::size_t count>
  basic_view(const char (&literal)[count]) = delete;
  template <typename Other, typename = std::enable_if_t<std::is_void_v<Other> && std::is_const_v<Data>>>
  constexpr basic_view(const basic_view<Other> &other) noexcept : data_(other.data()), size_(other.size()) {}
  template <typename Range, typename = std::enable_if_t<fits<item<Range>>>,
            typename = decltype(std::declval<Range &>().size())>
  constexpr basic_view(Range &&range) noexcept : data_(range.data()), size_(range.size() * sizeof(item<Range>)) {}

  constexpr Data *data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }

 private:
  Data *data_ = nullptr;
  std::size_t size_ = 0;
};

using view = basic_view<const void>;
using mutable_view = basic_view<void>;

/* The library's version, "major.minor.patch", of the library that runs: WC_VERSION is of the header. */
inline std::string version() { return wc_version(); }

/* All algorithms: wc_algorithm_at. */
inline std::vector<wc_algorithm_info> algorithms() {
  std::vector<wc_algorithm_info> all(wc_algorithm_count());
  for (std::size_t i = 0; i < all.size(); ++i) check(wc_algorithm_at(&all[i], i));
  return all;
}

/* All engines, those that cannot run here too: wc_engine_at. */
inline std::vector<wc_engine_info> engines() {
  std::vector<wc_engine_info> all(wc_engine_count());
  for (std::size_t i = 0; i < all.size(); ++i) check(wc_engine_at(&all[i], i));
  return all;
}

/* A key bound to an algorithm: wc_key. Moves, and is never copied. */
class key {
 public:
  key(const char *algorithm, view bytes) {
    wc_key *made = nullptr;
    check(wc_key_new(&made, algorithm, bytes.data(), bytes.size()));
    owned_.reset(made);
  }
  key(const std::string &algorithm, view bytes) : key(algorithm.c_str(), bytes) {}
  const wc_key *get() const noexcept { return owned_.get(); }

 private:
  struct free {
    void operator()(wc_key *owned) const noexcept { wc_key_free(owned); }
  };
  std::unique_ptr<wc_key, free> owned_;
};

/* wc_encrypt. Returns the bytes of text at out. */
inline std::size_t encrypt(const key &key, mutable_view out, view in, view iv = {},
                           wc_padding padding = WC_PADDING_NONE) {
  std::size_t written = 0;
  check(wc_encrypt(key.get(), out.data(), out.size(), &written, in.data(), in.size(), iv.data(), iv.size(), padding));
  return written;
}

/* wc_decrypt. Returns the bytes of text at out. */
inline std::size_t decrypt(const key &key, mutable_view out, view in, view iv = {},
                           wc_padding padding = WC_PADDING_NONE) {
  std::size_t written = 0;
  check(wc_decrypt(key.get(), out.data(), out.size(), &written, in.data(), in.size(), iv.data(), iv.size(), padding));
  return written;
}

/* wc_seal: in.size() + 16 bytes at out. */
inline void seal(const key &key, mutable_view out, view in, view nonce, view aad = {}) {
  check(wc_seal(key.get(), out.data(), out.size(), in.data(), in.size(), nonce.data(), nonce.size(), aad.data(),
                aad.size()));
}

/* wc_open: in.size() - 16 bytes at out. Throws invalid_tag. */
inline void open(const key &key, mutable_view out, view in, view nonce, view aad = {}) {
  check(wc_open(key.get(), out.data(), out.size(), in.data(), in.size(), nonce.data(), nonce.size(), aad.data(),
                aad.size()));
}

/* A message, zeroed except for these; the other fields are set by name. */
inline wc_message message(const key &key, wc_direction direction, mutable_view out, view in, view iv = {}) {
  wc_message made{};
  made.key = key.get();
  made.direction = direction;
  made.in = in.data();
  made.in_len = in.size();
  made.out = out.data();
  made.out_len = out.size();
  made.iv = iv.data();
  made.iv_len = iv.size();
  return made;
}

/* wc_run. A message that fails has its status in the results and throws nothing; one that cannot run at all throws. */
inline std::vector<wc_result> run(const std::vector<wc_message> &messages, const char *engine = nullptr,
                                  void *stream = nullptr) {
  std::vector<wc_result> results(messages.size());
  const wc_status status = wc_run(engine, results.data(), messages.data(), messages.size(), stream);
  if (status != WC_INVALID_TAG && status != WC_INVALID_PADDING) check(status);
  return results;
}

/* wc_run_columns, with as many results as messages, in host memory. As `run`. */
inline std::vector<wc_result> run(const wc_columns &columns, const char *engine = nullptr, void *stream = nullptr) {
  std::vector<wc_result> results(columns.count);
  const wc_status status = wc_run_columns(engine, results.data(), &columns, stream);
  if (status != WC_INVALID_TAG && status != WC_INVALID_PADDING) check(status);
  return results;
}

/* Messages that run together in the background: wc_batch. Their memory must stay valid until it is done; the destructor
 * waits for that. Moves, and is never copied. */
class batch {
 public:
  explicit batch(const char *engine = nullptr) {
    wc_batch *made = nullptr;
    check(wc_batch_new(&made, engine));
    owned_.reset(made);
  }
  std::size_t add(const wc_message &message) {
    std::size_t index = 0;
    check(wc_batch_add(owned_.get(), &index, &message));
    return index;
  }
  void start(void *stream = nullptr) { check(wc_batch_start(owned_.get(), stream)); }
  bool done() const {
    int done = 0;
    check(wc_batch_query(&done, owned_.get()));
    return done != 0;
  }
  /* Throws for the first message that failed; result() has each. */
  void wait() { check(wc_batch_wait(owned_.get())); }
  wc_result result(std::size_t index) const {
    wc_result result{};
    check(wc_batch_result(&result, owned_.get(), index));
    return result;
  }
  wc_batch *get() const noexcept { return owned_.get(); }

 private:
  struct free {
    void operator()(wc_batch *owned) const noexcept { wc_batch_free(owned); }
  };
  std::unique_ptr<wc_batch, free> owned_;
};

/* A message in a queue, to wait for: wc_job. Empty when default-made. */
class job {
 public:
  job() noexcept = default;
  explicit job(wc_job *owned) noexcept : owned_(owned) {}
  /* Waits until the message is done; throws its failure. Returns the bytes of text written. */
  std::size_t wait() const {
    wc_result result{};
    check(wc_job_wait(nullptr, &result, owned_.get(), -1));
    return result.written;
  }
  bool done() const {
    int done = 0;
    (void)wc_job_wait(&done, nullptr, owned_.get(), 0);
    return done != 0;
  }
  wc_job *get() const noexcept { return owned_.get(); }

 private:
  struct free {
    void operator()(wc_job *owned) const noexcept { wc_job_free(owned); }
  };
  std::unique_ptr<wc_job, free> owned_;
};

/* Messages that come one by one from many threads: wc_queue. The destructor waits until all are done. */
class queue {
 public:
  explicit queue(const char *engine = nullptr, const wc_queue_limits &limits = {}) {
    wc_queue *made = nullptr;
    check(wc_queue_new(&made, engine, &limits));
    owned_.reset(made);
  }
  /* wc_queue_submit; throws an error with WC_QUEUE_FULL or WC_QUEUE_CLOSED where the message was not taken. */
  job submit(const wc_message &message, std::uint64_t submitter = 0, std::int64_t timeout_us = -1) {
    wc_job *made = nullptr;
    check(wc_queue_submit(owned_.get(), &made, &message, submitter, timeout_us, nullptr, nullptr));
    return job(made);
  }
  /* The same with a callback, which must not throw, in place of a job. */
  void submit(const wc_message &message, wc_queue_callback callback, void *context, std::uint64_t submitter = 0,
              std::int64_t timeout_us = -1) {
    check(wc_queue_submit(owned_.get(), nullptr, &message, submitter, timeout_us, callback, context));
  }
  bool cancel(const job &job) {
    int cancelled = 0;
    check(wc_queue_cancel(&cancelled, owned_.get(), job.get()));
    return cancelled != 0;
  }
  void flush() { check(wc_queue_flush(owned_.get())); }
  void close(bool cancel = false) { check(wc_queue_close(owned_.get(), cancel ? 1 : 0)); }
  wc_queue_statistics statistics() const {
    wc_queue_statistics now{};
    check(wc_queue_stats(&now, owned_.get()));
    return now;
  }
  wc_queue *get() const noexcept { return owned_.get(); }

 private:
  struct free {
    void operator()(wc_queue *owned) const noexcept { wc_queue_free(owned); }
  };
  std::unique_ptr<wc_queue, free> owned_;
};

}  // namespace warpcipher

#endif /* WARPCIPHER_HPP */
