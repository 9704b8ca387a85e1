// SPDX-License-Identifier: Apache-2.0
#include "parquet/open_chunks.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/thread_pool.hpp"
#include "core/wipe.hpp"
#include "dispatch/run.hpp"
#include "dispatch/select.hpp"
#include "engine/device_engine.hpp"
#include "flow/copy.hpp"
#include "flow/file/read_chunks.hpp"
#include "flow/file/work.hpp"
#include "flow/slot_memory.hpp"
#include "parquet/page_modules.hpp"

namespace warpcipher::parquet {
namespace {

constexpr std::size_t counter_iv_size = nonce_size + 4;

// The pages of a chunk, and their headers: decrypted, mended, back to back without padding.
struct Found {
  PageModules modules;
  PageAads aads;
  SecretBytes heads;
  Column head_sizes;
};

// Pages under keys of one algorithm, as a read of chunks takes them.
struct Pages {
  struct Place {
    std::size_t chunk, page;
  };

  std::vector<Place> places;
  std::vector<const Key*> keys;
  std::vector<std::uint32_t> key_index;
  Column offsets, lengths, outs, aad_offsets, aad_lengths;
  std::vector<std::uint8_t> ivs, aads;
};

class Opening {
 public:
  Opening(std::string_view engine, const ChunksToOpen& wanted, Stream stream, std::size_t threads,
          const std::function<void(bool)>& check)
      : engine_(engine), wanted_(wanted), stream_(stream), work_(check), found_(wanted.chunks.size()) {
    options_.threads = threads;
    options_.check = check;
  }

  OpenResult run() {
    const std::size_t most = std::max<std::size_t>(wanted_.chunks.size(), 1);
    work_.run(std::min(threads_for(options_.threads), most), [this] { find_chunks(); });
    if (!has_failed()) lay_out();
    if (!has_failed()) read_pages();
    if (!has_failed()) read_plain_chunks();
    if (has_failed()) {
      wipe(0);
      return {{}, work_.failure()};
    }
    put_heads();
    wipe(end_);
    return {std::move(opened_), std::nullopt};
  }

  // Of `out` what is from a place on.
  void wipe(std::uint64_t begin) const {
    const std::span<std::uint8_t> rest = wanted_.out.subspan(begin);
    if (!is_on_device()) return wipe_in_parallel(rest.data(), rest.size());
    try {
      engine().clear(rest.data(), rest.size(), stream_);
      engine().wait(stream_);
    } catch (const Error&) {  // the driver is gone, and with it what it held
    }
  }

 private:
  bool has_failed() const { return work_.failure().has_value(); }
  bool is_on_device() const { return wanted_.memory == Memory::device; }
  DeviceEngine& engine() const { return select_device_engine(engine_); }
  bool is_authenticated() const { return wanted_.page_keys.empty() || wanted_.page_keys[0]->algorithm().is_aead(); }
  std::uint64_t page_overhead() const { return is_authenticated() ? gcm_overhead : head_size; }

  void fail(const OpenFailure& failure) { work_.fail(failure); }
  void fail(std::size_t chunk, std::uint64_t module, const ReadFailure& failure) {
    if (failure.kind == ReadFailure::Kind::bad_tag) return fail({OpenFailure::Kind::bad_tag, chunk, module});
    fail({OpenFailure::Kind::file, chunk, OpenFailure::no_module, {}, {failure.position, failure.error}});
  }

  // --- modules and headers ------------------------------------------------------------------------

  void find_chunks() {
    while (work_.goes_on()) {
      const std::size_t chunk = next_.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= found_.size()) return;
      if (!wanted_.chunks[chunk].is_encrypted) continue;
      std::uint64_t module = OpenFailure::no_module;
      try {
        Found& found = found_[chunk];
        found.modules = scan_pages(wanted_.source, wanted_.chunks[chunk], page_overhead(), [&] { work_.check(true); });
        if (decrypt_heads(chunk)) mend_heads(chunk, module);
      } catch (const ReadError& error) {
        fail({OpenFailure::Kind::file, chunk, OpenFailure::no_module, {}, error});
      } catch (const Error& error) {
        if (error.status() != Status::invalid_argument) throw;
        fail({OpenFailure::Kind::wrong, chunk, module, error.what()});
      }
    }
  }

  bool decrypt_heads(std::size_t chunk) {
    const SealedChunk& sealed = wanted_.chunks[chunk];
    Found& found = found_[chunk];
    const std::vector<PageModules::Page>& pages = found.modules.pages;
    found.aads = page_aads(wanted_.prefix, sealed.row_group, sealed.column, sealed.dictionary, pages.size());
    found.heads = SecretBytes(found.modules.heads.size() - gcm_overhead * pages.size());
    std::vector<Message> messages(pages.size());
    std::uint8_t* module = found.modules.heads.data();
    std::uint8_t* out = found.heads.data();
    const std::uint8_t* aad = found.aads.heads.data();
    for (std::size_t i = 0; i < pages.size(); ++i) {
      Message& m = messages[i];
      m.key = wanted_.head_keys[wanted_.key_index[chunk]];
      m.direction = Direction::decrypt;
      m.in = module + head_size;
      m.in_len = m.out_len = pages[i].head_size;
      m.out = out;
      m.iv = module + length_size;
      m.iv_len = nonce_size;
      m.aad = aad;
      m.aad_len = found.aads.sizes[i];
      m.tag = module + head_size + pages[i].head_size;
      m.tag_len = tag_size;
      module += gcm_overhead + pages[i].head_size;
      out += pages[i].head_size;
      aad += found.aads.sizes[i];
    }
    std::vector<Result> results(messages.size());
    const ThreadPool::Alone alone;  // other threads have other chunks
    warpcipher::run(engine_, messages, results);
    const auto bad =
        std::find_if(results.begin(), results.end(), [](const Result& r) { return r.status != Status::ok; });
    if (bad == results.end()) return true;
    fail({OpenFailure::Kind::bad_tag, chunk, 2 * static_cast<std::uint64_t>(bad - results.begin())});
    return false;
  }

  // module: of the header that is mended, for errors.
  void mend_heads(std::size_t chunk, std::uint64_t& module) {
    Found& found = found_[chunk];
    std::uint8_t *from = found.heads.data(), *to = from;
    for (std::size_t i = 0; i < found.modules.pages.size(); ++i) {
      const auto& [position, head, page] = found.modules.pages[i];
      module = 2 * i;
      const bool is_dictionary = wanted_.chunks[chunk].dictionary && i == 0;
      const std::size_t size = shrink_header({from, head}, page + page_overhead(), page, is_dictionary);
      if (to != from) std::memmove(to, from, size);
      found.head_sizes.push_back(size);
      from += head;
      to += size;
    }
  }

  // --- pages --------------------------------------------------------------------------------------

  void lay_out() {
    opened_.reserve(found_.size());
    for (std::size_t chunk = 0; chunk < found_.size(); ++chunk) {
      const SealedChunk& sealed = wanted_.chunks[chunk];
      const Found& found = found_[chunk];
      OpenedChunk opened{end_, sealed.is_encrypted ? 0 : sealed.size, {}};
      opened.pages.reserve(found.head_sizes.size());
      for (std::size_t i = 0; i < found.head_sizes.size(); ++i) {
        const PageModules::Page& page = found.modules.pages[i];
        const std::uint64_t size = found.head_sizes[i] + page.page_size;
        opened.pages.push_back({page.position - sealed.position, opened.size, size});
        opened.size += size;
      }
      end_ += opened.size;
      opened_.push_back(std::move(opened));
    }
  }

  void read_pages() {
    if (is_on_device()) engine().wait(stream_);  // what the caller has put on it may still use `out`
    std::vector<Pages> all, long_ones;
    for (std::size_t chunk = 0; chunk < found_.size(); ++chunk) {
      if (!found_[chunk].modules.pages.empty()) add_pages(chunk, all, long_ones);
    }
    for (const Pages& pages : all) {
      if (has_failed() || pages.places.empty()) continue;
      fail(pages, read_chunks(engine_, chunks_of(pages), stream_, options_));
    }
    for (const Pages& page : long_ones) {
      if (!has_failed()) fail(page, read_long_page(chunks_of(page)));
    }
  }

  void fail(const Pages& pages, const std::optional<ReadFailure>& failure) {
    if (failure) fail(pages.places[failure->chunk].chunk, 2 * pages.places[failure->chunk].page + 1, *failure);
  }

  // Each page lies in the file apart from its nonce, which is known: pages of both algorithms are read in one way.
  FileChunks chunks_of(const Pages& pages) const {
    FileChunks chunks;
    chunks.source = wanted_.source;
    chunks.count = pages.places.size();
    chunks.keys = pages.keys;
    chunks.key_index = pages.key_index;
    chunks.file_offsets = pages.offsets;
    chunks.lengths = pages.lengths;
    chunks.ivs = pages.ivs;
    chunks.iv_len = is_authenticated() ? nonce_size : counter_iv_size;
    chunks.aad = pages.aads;
    chunks.aad_offsets = pages.aad_offsets;
    chunks.aad_lengths = pages.aad_lengths;
    chunks.tag_len = is_authenticated() ? tag_size : 0;
    chunks.is_authenticated = is_authenticated();
    chunks.memory = wanted_.memory;
    chunks.out = wanted_.out;
    chunks.out_offsets = pages.outs;
    return chunks;
  }

  // all: pages under keys of one algorithm together. long_ones: each by itself.
  void add_pages(std::size_t chunk, std::vector<Pages>& all, std::vector<Pages>& long_ones) {
    const Key* const key = wanted_.page_keys[wanted_.key_index[chunk]];
    auto pages = std::find_if(all.begin(), all.end(),
                              [&](const Pages& of) { return &of.keys[0]->algorithm() == &key->algorithm(); });
    if (pages == all.end()) pages = all.insert(all.end(), Pages{});
    const auto known = std::find(pages->keys.begin(), pages->keys.end(), key);
    const auto number = static_cast<std::uint32_t>(known - pages->keys.begin());
    if (known == pages->keys.end()) pages->keys.push_back(key);
    const Found& found = found_[chunk];
    const std::uint8_t *nonce = found.modules.nonces.data(), *aad = found.aads.pages.data();
    for (std::size_t i = 0; i < found.modules.pages.size(); ++i) {
      const PageModules::Page& page = found.modules.pages[i];
      const bool is_long = is_on_device() && page.page_size + page_overhead() > wanted_.longest_page;
      Pages& to = is_long ? long_ones.emplace_back() : *pages;
      if (is_long) to.keys = {key};
      to.places.push_back({chunk, i});
      to.key_index.push_back(is_long ? 0 : number);
      to.offsets.push_back(page.position + gcm_overhead + page.head_size + head_size);
      to.lengths.push_back(page.page_size);
      to.outs.push_back(opened_[chunk].out + opened_[chunk].pages[i].out + found.head_sizes[i]);
      to.ivs.insert(to.ivs.end(), nonce, nonce + nonce_size);
      nonce += nonce_size;
      if (is_authenticated()) {
        to.aad_offsets.push_back(to.aads.size());
        to.aad_lengths.push_back(found.aads.sizes[i]);
        to.aads.insert(to.aads.end(), aad, aad + found.aads.sizes[i]);
        aad += found.aads.sizes[i];
      } else {
        to.ivs.insert(to.ivs.end(), {0, 0, 0, 1});
      }
    }
  }

  // All of it is on the device before it is decrypted.
  std::optional<ReadFailure> read_long_page(const FileChunks& page) const {
    SlotMemory slot(engine());
    const std::size_t len = page.len_in_file(0);
    std::uint8_t* const sealed = slot.on_device(len);
    slot.wait();  // other streams use it
    if (auto failure = read(page.file_offsets[0], {sealed, len})) return failure;
    std::uint8_t* const out = page.out.data() + page.out_offsets[0];
    Message m = page.message(0, Direction::decrypt, sealed, out, page.ivs.data(), sealed + page.lengths[0]);
    m.memory = Memory::device;
    Result result;
    warpcipher::run(engine_, {&m, 1}, {&result, 1}, slot.stream());
    slot.wait();
    if (result.status != Status::ok) return ReadFailure{ReadFailure::Kind::bad_tag, 0};
    return std::nullopt;
  }

  // --- what is not encrypted ----------------------------------------------------------------------

  std::optional<ReadFailure> read(std::uint64_t position, std::span<std::uint8_t> out) const {
    const ChunkSource& source = wanted_.source;
    PlainBytes bytes{source.descriptor, position, wanted_.memory, out};
    if (source.descriptor < 0) bytes.source = source.bytes.subspan(position - source.begin);
    return read_plain(engine_, bytes, stream_, options_);
  }

  // Chunks that follow each other in the file and in `out` are read at once.
  void read_plain_chunks() {
    const std::span<const SealedChunk> chunks = wanted_.chunks;
    for (std::size_t first = 0, end = 0; first < chunks.size() && !has_failed(); first = end) {
      end = first + 1;
      if (chunks[first].is_encrypted) continue;
      std::uint64_t size = chunks[first].size;
      while (end < chunks.size() && !chunks[end].is_encrypted &&
             chunks[end].position == chunks[first].position + size) {
        size += chunks[end++].size;
      }
      const auto failure = read(chunks[first].position, wanted_.out.subspan(opened_[first].out, size));
      if (failure) fail(first, OpenFailure::no_module, *failure);
    }
  }

  // Calls body(out, data, size) for each header.
  template <class Body>
  void for_heads(Body&& body) const {
    for (std::size_t chunk = 0; chunk < found_.size(); ++chunk) {
      const std::uint8_t* head = found_[chunk].heads.data();
      for (std::size_t i = 0; i < found_[chunk].head_sizes.size(); ++i) {
        const std::size_t size = found_[chunk].head_sizes[i];
        body(wanted_.out.data() + opened_[chunk].out + opened_[chunk].pages[i].out, head, size);
        head += size;
      }
    }
  }

  // To a device in one copy, and from there to where they go by a list that lies before them.
  void put_heads() const {
    if (!is_on_device()) {
      return for_heads(
          [](std::uint8_t* out, const std::uint8_t* data, std::size_t size) { std::memcpy(out, data, size); });
    }
    std::size_t count = 0, size = 0;
    for_heads([&](std::uint8_t*, const std::uint8_t*, std::size_t len) {
      ++count;
      size += len;
    });
    if (count == 0) return;
    const std::size_t list_size = count * sizeof(DeviceCopy);
    SlotMemory slot(engine());
    std::uint8_t* const there = slot.on_device(list_size + size);
    slot.set_secret(there, list_size + size);
    SecretBytes here(list_size + size);
    std::size_t number = 0, at = list_size;
    for_heads([&](std::uint8_t* out, const std::uint8_t* data, std::size_t len) {
      const DeviceCopy copy{out, there + at, len};
      std::memcpy(here.data() + number++ * sizeof copy, &copy, sizeof copy);
      std::memcpy(here.data() + at, data, len);
      at += len;
    });
    engine().copy_to_device(there, here.data(), here.size(), slot.stream());
    engine().copy_many(reinterpret_cast<const DeviceCopy*>(there), count, Pace::full, slot.stream());
    slot.wait();
  }

  const std::string_view engine_;
  const ChunksToOpen& wanted_;
  const Stream stream_;
  ReadOptions options_;
  FailingWork<OpenFailure> work_;
  std::vector<Found> found_;
  std::atomic<std::size_t> next_{0};
  std::vector<OpenedChunk> opened_;
  std::uint64_t end_ = 0;  // of the chunks in `out`
};

void check_chunks(const ChunksToOpen& wanted) {
  std::uint64_t room = wanted.out.size();
  for (std::size_t i = 0; i < wanted.chunks.size(); ++i) {
    const SealedChunk& chunk = wanted.chunks[i];
    const ChunkSource& source = wanted.source;
    const std::uint64_t begin = chunk.position - source.begin;
    const bool is_in_source = source.descriptor >= 0 ? chunk.position <= most_offset
                                                     : chunk.position >= source.begin && begin <= source.bytes.size() &&
                                                           chunk.size <= source.bytes.size() - begin;
    const bool has_key = !chunk.is_encrypted || wanted.key_index[i] < wanted.head_keys.size();
    if (chunk.size > room || !is_in_source || !has_key) {
      refuse("chunk ", i, ": ", (has_key ? "it does not fit" : "it has no key"));
    }
    room -= chunk.size;
  }
}

}  // namespace

OpenResult open_chunks(std::string_view engine, const ChunksToOpen& wanted, Stream stream, std::size_t threads,
                       const std::function<void(bool interrupted)>& check) {
  check_chunks(wanted);
  Opening opening(engine, wanted, stream, threads, check);
  try {
    return opening.run();
  } catch (...) {
    opening.wipe(0);
    throw;
  }
}

}  // namespace warpcipher::parquet
