// SPDX-License-Identifier: Apache-2.0
// The steps of a columnar batch, in the order of its stream:
//
//   columns of the host are copied                  PlacedColumns
//   XTS: sectors, speculatively                     start_sectors(): that is all for them, except for results
//   keys                                            place_keys()
//   views, prefix sums, checks                      summarize()
//   first blocks; nonces used twice; equal halves   encrypt_first_blocks(), check_nonces(), check_key_halves()
//   CTR, GCM's encryption: text, speculatively;     start_early()
//   ChaCha20-Poly1305: with its tags
//   --- the host waits for the summary: nothing has been written yet, unless it finds no fault
//   text, tags, verdicts                            execute()
//   padding taken off, results                      settle()
#include "engine/cuda/execution/columns.hpp"

#include <cuda_runtime_api.h>
#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <random>
#include <vector>

#include "core/error.hpp"
#include "core/thread_pool.hpp"
#include "engine/cuda/aes/launches.hpp"
#include "engine/cuda/chacha/launches.hpp"
#include "engine/cuda/execution/device_batch.hpp"
#include "engine/cuda/inputs/host_views.hpp"
#include "engine/cuda/inputs/keys.hpp"
#include "engine/cuda/inputs/order.hpp"
#include "engine/cuda/inputs/placed_columns.hpp"
#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/inputs/summary.hpp"
#include "engine/cuda/inputs/texts.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "message/message.hpp"

namespace warpcipher::cuda {
namespace {

constexpr std::size_t results_at_once = 16384;

// Checks everything that is the same for all messages. run() reports the errors.
bool can_run(const Columns& c) {
  const Algorithm& algorithm = c.algorithm_of_all();
  if (c.padding != Padding::none && !algorithm.takes_padding()) return false;
  if (c.count >= UINT32_MAX || c.key_count() >= UINT32_MAX) return false;
  if (c.in.size() > most_buffer_len || c.out.size() > most_buffer_len || c.aad.size() > most_buffer_len) return false;
  switch (algorithm.mode.id) {
    case Mode::gcm: return c.iv_len == gcm_plain_iv_len && is_gcm_tag_len(c.tag_len);
    case Mode::poly1305:
    case Mode::gcm_siv:
    case Mode::ccm:  // of nonces of another length the host makes messages
      return c.iv_len == algorithm.iv_len && algorithm.takes_tag_len(c.tag_len);
    default: return c.iv_len == algorithm.iv_len && c.tag_len == 0 && c.aad.empty();
  }
}

void clear(void* memory, std::size_t len, Stream stream) {
  check(cudaMemsetAsync(memory, 0, len, native(stream)), "clear device memory");
}

class ColumnsRun {
 public:
  ColumnsRun(const Columns& columns, const Device& device, Stream stream)
      : c_(columns),
        stream_(stream),
        placed_(columns, stream),
        view_(placed_.view()),
        count_(static_cast<std::uint32_t>(columns.count)),
        keys_(static_cast<std::uint32_t>(columns.key_count())),
        only_key_(columns.algorithm == nullptr && keys_ == 1 ? columns.keys[0] : nullptr),
        algorithm_(columns.algorithm_of_all()),
        encrypting_(columns.direction == Direction::encrypt),
        takes_padding_off_(!encrypting_ && columns.padding == Padding::pkcs7),
        aes_keys_(device, stream, algorithm_, columns.direction),
        siv_keys_(device, stream, algorithm_),
        batch_{device, stream, algorithm_, columns.direction},
        device_summary_(sizeof(BatchSummary), stream, Wiping::needless) {}

  std::optional<Status> run(std::span<Result> results) {
    clear_summary();
    if (start_sectors()) {
      if (await_mailbox()) return settle(nullptr, results);
      clear_summary();
    }
    place_keys();
    summarize();
    const bool has_words = batch_.checks_tags() || takes_padding_off_;
    const StreamBuffer memory(has_words ? count_ * sizeof(std::uint32_t) : 0, stream_, Wiping::needless);
    auto* const words = reinterpret_cast<std::uint32_t*>(memory.data());
    std::uint32_t* const verdicts = batch_.checks_tags() ? words : nullptr;
    if (!start_early(verdicts) || !await_mailbox()) started_.reset();
    if (summary_.bad != 0 || summary_.tiles > most_tiles) return std::nullopt;
    finish_batch();
    execute(batch_, verdicts, started_);
    if (takes_padding_off_) take_padding_off(batch_.device, stream_, batch_.views, count_, words);
    return settle(words, results);
  }

 private:
  void clear_summary() { clear(device_summary_.data(), device_summary_.size(), stream_); }

  void place_keys() {
    const auto key_len = static_cast<std::uint32_t>(algorithm_.key_len());
    batch_.aes_keys = &aes_keys_;
    batch_.siv_keys = &siv_keys_;
    batch_.only_key = only_key_;
    if (batch_.is_aes() && only_key_ != nullptr) {
      aes_keys_.reserve(key_upload_, {&only_key_, 1});
      key_upload_.allocate(stream_);
      aes_keys_.fill(key_upload_);
      return key_upload_.send();
    }
    const std::uint8_t* const bytes = placed_.place_key_bytes();
    if (batch_.is_aes()) {
      aes_keys_.take_bytes(bytes, keys_);
      // Kernels of CTR and GCM-SIV may do that themselves.
      if (algorithm_.mode.id != Mode::ctr && !batch_.is_gcm_siv()) aes_keys_.derive();
    }
    batch_.stream_keys = &stream_keys_;
    stream_keys_.take_bytes(bytes);
    batch_.des_keys = {bytes, key_len, keys_, algorithm_.inverse(c_.direction)};
    if (algorithm_.mode.two_keys && c_.algorithm != nullptr) {  // a Key has been checked already
      check_key_halves(batch_.device, stream_, bytes, key_len, keys_, &summary_of_device()->bad);
    }
  }

  void summarize() {
    const bool is_aead = algorithm_.is_aead();
    // Texts may not fill their buffer; then they are cut into fewer chunks than would be best.
    if (is_aead) {
      const std::uint64_t blocks = (c_.scattered ? c_.texts_len : std::min(view_.in_len, view_.out_len)) / 16;
      placed_.set_chunk_blocks(batch_.is_chacha() ? chacha::chunk_blocks_for(batch_.device, blocks, count_)
                                                  : ghash::estimate_chunk_blocks(batch_.device, blocks, count_));
    }
    const Conditions now = conditions_of(batch_.device);
    if (batch_.is_gcm()) placed_.set_least_chunked(least_chunked(now, count_, keys_));
    batch_.lacks_ends = leaves_ends(now, algorithm_.mode.id, count_);
    if (batch_.lacks_ends) placed_.leave_ends();
    plan_.emplace(count_, is_aead, summary_of_device(), stream_);
    const SummaryBuffers& buffers = plan_->buffers();
    summarize_columns(batch_.device, stream_, view_, buffers);
    batch_.views = buffers.views;
    batch_.first_tile = buffers.first_tile;
    batch_.messages = count_;
    batch_.in_place = !view_.apart;
    const bool has_masks = is_aead && !batch_.is_chacha();
    masks_ = std::make_unique<StreamBuffer>(has_masks ? count_ * sizeof(Block) : 0, stream_, Wiping::needed);
    auto* const masks = reinterpret_cast<Block*>(masks_->data());
    batch_.hashes.views = buffers.hash_views;
    if (!is_aead || has_masks) encrypt_first_blocks(batch_, masks);
    if (!is_aead) return;
    batch_.hashes.masks = masks;
    batch_.hashes.hash_keys = aes_keys_.hash_keys();
    batch_.hashes.first_chunk = buffers.first_chunk;
    batch_.hashes.keys_of_host = aes_keys_.of_host();
    batch_.hashes.chunk_blocks = view_.chunk_blocks;
    if (encrypting_ && !algorithm_.mode.nonces_may_repeat) find_nonces_used_twice(masks);
  }

  // The facts of the summary.
  void finish_batch() {
    batch_.tiles = summary_.tiles;
    batch_.units = summary_.units;
    batch_.most_units = summary_.most_units;
    batch_.end_units = summary_.end_units;
    batch_.is_aligned = summary_.unaligned == 0;
    if (algorithm_.is_aead()) finish_hashes();
    batch_.plan = batch_.plan_of();
    if (batch_.plan.ghash) batch_.hashes.algorithm = batch_.plan.ghash->chosen;
  }

  void finish_hashes() {
    batch_.hashes.chunks = summary_.chunks;
    batch_.hashes.is_aligned = batch_.is_aligned;
    const std::uint32_t hash_keys = batch_.is_gcm_siv() ? count_ : keys_;
    batch_.hashes.work = {count_, hash_keys, summary_.hash_blocks, summary_.most_hash_blocks};
    if (!batch_.is_chacha()) batch_.hashes.in_rows = {summary_.in_rows, summary_.row_blocks, view_.least_chunked};
  }

  // Expects a kernel to put the summary into the mailbox.
  void begin_speculation() {
    mailbox_.emplace(stream_);
    speculation_.summary = summary_of_device();
    speculation_.mailbox = mailbox_->get();
  }

  // Starts the text of a counter mode, or text and tags of ChaCha20-Poly1305, before the summary is known
  // (speculation.hpp). False: the suitable kernel does not check the assumption; then the summary is known. Not for
  // decryption of GCM, which checks tags first.
  bool start_early(std::uint32_t* verdicts) {
    const Mode mode = algorithm_.mode.id;
    const bool starts = mode == Mode::ctr || mode == Mode::poly1305 || (batch_.is_gcm() && encrypting_);
    if (starts && count_ != 0) {
      DeviceBatch alike = batch_;
      BatchFacts facts{algorithm_, c_.direction, count_};
      set_equal_lengths(facts, estimate_text_len(), alike.lacks_ends);
      alike.tiles = facts.tiles;
      alike.units = facts.units;
      alike.most_units = facts.most_units;
      alike.end_units = facts.end_units;
      const auto buffers = reinterpret_cast<std::uintptr_t>(view_.in) | reinterpret_cast<std::uintptr_t>(view_.out);
      alike.is_aligned = buffers % 16 == 0;
      alike.plan = alike.plan_of();
      begin_speculation();
      try {
        started_ = start_text(alike, verdicts, speculation_);
      } catch (...) {
        mailbox_->expect();  // the first of two kernels may be in flight
        throw;
      }
      if (started_) {
        mailbox_->expect();
        return true;
      }
    }
    fetch_summary();
    return false;
  }

  // The units of a message if all have the same length.
  std::uint64_t estimate_text_len() const {
    if (c_.scattered) return c_.texts_len / count_;
    const std::uint64_t room = view_.out_len / count_ > view_.tag_len ? view_.out_len / count_ - view_.tag_len : 0;
    return std::min(view_.in_len / count_, room);
  }

  // The same for data units of XTS that may be sectors; the kernel makes their summary itself. False: they cannot be
  // sectors; nothing has been launched.
  bool start_sectors() {
    const bool is_xts = algorithm_.mode.id == Mode::xts;
    if (!is_xts || only_key_ == nullptr) return false;
    BatchFacts facts{algorithm_, c_.direction, count_};
    facts.has_only_key = true;
    facts.sectors_len = view_.room();
    if (count_ != 0) set_equal_lengths(facts, estimate_text_len(), false);
    if (plan_launches(batch_.device, facts).text_launch != TextLaunch::sectors) return false;
    if (view_.aad_offsets != nullptr || view_.aad_lengths != nullptr) return false;  // they need a check, too
    begin_speculation();
    speculation_.most_units = UINT64_MAX;
    lane_table::start_hybrid_rows(batch_.device, stream_, view_, *only_key_, aes_keys_.rounds(), speculation_);
    mailbox_->expect();
    return true;
  }

  // Waits until the started kernel has sent the summary. True: the assumption held.
  bool await_mailbox() {
    mailbox_->wait();
    summary_ = speculation_.mailbox->summary;
    placed_.release();
    return holds(speculation_, summary_);
  }

  void find_nonces_used_twice(const Block* masks) {
    NonceTable table{};
    const std::size_t places = std::bit_ceil(2 * std::size_t{count_});
    // Of ChaCha20's keys the table has hashes of their bytes; else of an encrypted block.
    const StreamBuffer memory(places * sizeof *table.places, stream_,
                              batch_.is_chacha() ? Wiping::needed : Wiping::needless);
    clear(memory.data(), memory.size(), stream_);
    table.places = reinterpret_cast<unsigned long long*>(memory.data());
    table.mask = static_cast<std::uint32_t>(places - 1);
    std::random_device random;
    for (std::uint64_t& seed : table.seeds) seed = std::uint64_t{random()} << 32 | random();
    if (!batch_.is_chacha()) {
      return check_nonces(batch_.device, stream_, batch_.views, masks, count_, table, summary_of_device());
    }
    const HashView* const hash_views = algorithm_.iv_len > sizeof(Block) ? batch_.hashes.views : nullptr;
    check_nonces(batch_.device, stream_, {batch_.views, hash_views, keys_ == 1 ? nullptr : stream_keys_.bytes()},
                 count_, table, summary_of_device());
  }

  // Fills in the results. words: as in Outcome; without them, the host need not read anything from the device.
  Status settle(const std::uint32_t* words, std::span<Result> results) {
    const Outcome outcome{summary_.most_units << view_.unit_log, words,
                          algorithm_.is_aead() ? Status::invalid_tag : Status::invalid_padding,
                          static_cast<std::uint32_t>(encrypting_ ? c_.tag_len : 0), takes_padding_off_};
    if (c_.columns_memory == Memory::device) {
      write_results(batch_.device, stream_, batch_.views, count_, outcome, results.data(), summary_of_device());
      if (words == nullptr) return Status::ok;
      fetch_summary();
      return summary_.failed == 0 ? Status::ok : outcome.failure;
    }
    std::vector<std::uint32_t> fetched(words != nullptr ? count_ : 0);
    if (words != nullptr) {
      check(cudaMemcpyAsync(fetched.data(), words, fetched.size() * sizeof fetched[0], cudaMemcpyDeviceToHost,
                            native(stream_)),
            "copy the verdicts of messages from the device");
      check(cudaStreamSynchronize(native(stream_)), "wait for the verdicts of messages");
    }
    ThreadPool::instance().parallel_for(count_, results_at_once, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const bool is_good = fetched.empty() || fetched[i] != 0;
        const std::uint32_t taken_off = takes_padding_off_ ? fetched[i] : 0;
        const std::uint64_t text_len = encrypting_ ? c_.in_lengths[i] : c_.in_lengths[i] - c_.tag_len;
        const std::uint64_t written = output_len(text_len, view_.pads, algorithm_.block_len());
        results[i] = is_good ? Result{Status::ok, written + outcome.added - taken_off} : Result{outcome.failure, 0};
      }
    });
    return std::find(fetched.begin(), fetched.end(), 0u) == fetched.end() ? Status::ok : outcome.failure;
  }

  void fetch_summary() {
    check(cudaMemcpyAsync(&summary_, device_summary_.data(), sizeof summary_, cudaMemcpyDeviceToHost, native(stream_)),
          "copy the summary of a batch from the device");
    check(cudaStreamSynchronize(native(stream_)), "wait for the summary of a batch");
    placed_.release();
  }

  BatchSummary* summary_of_device() const { return reinterpret_cast<BatchSummary*>(device_summary_.data()); }

  const Columns& c_;
  const Stream stream_;
  PlacedColumns placed_;
  const ColumnView& view_;
  const std::uint32_t count_;
  const std::uint32_t keys_;
  const Key* const only_key_;
  const Algorithm& algorithm_;
  const bool encrypting_;
  const bool takes_padding_off_;
  Upload key_upload_;
  std::optional<PlanMemory> plan_;
  AesKeys aes_keys_;
  StreamKeys stream_keys_;
  SivKeys siv_keys_;
  DeviceBatch batch_;
  StreamBuffer device_summary_;
  std::unique_ptr<StreamBuffer> masks_;
  BatchSummary summary_{};
  Speculation speculation_{};
  std::optional<HostMailbox> mailbox_;
  std::optional<CounterChoice> started_;  // the text, and with success
};

}  // namespace

std::optional<Status> run_columns(const Columns& columns, std::span<Result> results, Stream stream) {
  const Device& device = device_of(columns);
  const bool is_worth_it = columns.columns_memory == Memory::device || columns.count >= least_columns(overrides());
  if (!is_worth_it || !can_run(columns)) return std::nullopt;
  const DeviceScope scope(device.index);
  return ColumnsRun(columns, device, stream).run(results);
}

namespace {

constexpr std::size_t texts_at_once = 16384;

// For texts with their own memory each, and columns on the host. run() reports the errors.
const Device& device_of_texts(const Columns& c) {
  std::atomic<int> found{-1};
  ThreadPool::instance().parallel_for(c.count, texts_at_once, [&](std::size_t begin, std::size_t end) {
    TextLocator locator;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t tag_len = c.direction == Direction::encrypt ? c.tag_len : 0;
      const std::size_t out_len = c.in_lengths[i] + tag_len;
      if (c.in_lengths[i] != 0) locator.add(c.in.data() + c.in_offsets[i], "in", i);
      if (out_len != 0) locator.add(c.out.data() + c.out_offsets[i], "out", i);
    }
    int before = -1;
    if (locator.device() >= 0 && !found.compare_exchange_strong(before, locator.device()) &&
        before != locator.device()) {
      throw Error(Status::invalid_argument, "texts lie on several GPUs");
    }
  });
  return found < 0 ? current_device() : find_device(found);
}

}  // namespace

const Device& device_of(const Columns& c) {
  if (c.scattered) return device_of_texts(c);
  BufferLocator locator;
  if (!c.in.empty()) locator.add(c.in.data(), "in");
  if (!c.out.empty()) locator.add(c.out.data(), "out");
  if (c.columns_memory == Memory::device) {
    const auto add = [&](const auto& column, const char* what) {
      if (!column.empty()) locator.add(column.data(), what);
    };
    add(c.key_bytes, "key_bytes");
    add(c.key_index, "key_index");
    add(c.in_offsets, "in_offsets");
    add(c.in_lengths, "in_lengths");
    add(c.out_offsets, "out_offsets");
    add(c.ivs, "ivs");
    add(c.aad, "aad");
    add(c.aad_offsets, "aad_offsets");
    add(c.aad_lengths, "aad_lengths");
  }
  return locator.device();
}

void run_sectors(const Device& device, const Message& first, std::size_t count, Stream stream) {
  const Algorithm& algorithm = first.algorithm();
  const std::uint64_t text_len = first.in_len * count;
  const StreamBuffer ivs(count * sizeof(Block), stream, Wiping::needless);
  check(cudaMemcpyAsync(ivs.data(), first.iv, ivs.size(), cudaMemcpyHostToDevice, native(stream)),
        "copy IVs to the device");
  ColumnView view{};
  view.ivs = ivs.data();
  view.in = first.in;
  view.out = first.out;
  view.in_len = view.out_len = text_len;
  view.in_len_of_all = first.in_len;
  view.least_text_len = xts_least_text_len;
  view.most_text_len = xts_most_text_len;
  view.count = static_cast<std::uint32_t>(count);
  view.keys = 1;
  view.iv_len = sizeof(Block);
  view.block_log = view.unit_log = static_cast<std::uint32_t>(std::countr_zero(algorithm.block_len()));
  view.steals = true;
  view.encrypting = first.direction == Direction::encrypt;
  view.apart = first.in != first.out;
  const StreamBuffer memory(sizeof(BatchSummary), stream, Wiping::needless);
  auto* const summary = reinterpret_cast<BatchSummary*>(memory.data());
  check(cudaMemsetAsync(summary, 0, sizeof(BatchSummary), native(stream)), "clear device memory");
  AesKeys keys(device, stream, algorithm, first.direction);
  DeviceBatch batch{device, stream, algorithm, first.direction};
  batch.messages = view.count;
  batch.units = first.units() * count;
  batch.most_units = first.units();
  batch.tiles = (first.units() + tile_units - 1) / tile_units * count;
  batch.only_key = first.key;
  batch.aes_keys = &keys;
  batch.plan = batch.plan_of(view.room());
  if (batch.plan.text_launch == TextLaunch::sectors) {
    Speculation certain{};
    certain.summary = summary;
    certain.most_units = UINT64_MAX;
    return lane_table::start_hybrid_rows(device, stream, view, *first.key, keys.rounds(), certain);
  }
  const PlanMemory plan(view.count, false, summary, stream);
  summarize_columns(device, stream, view, plan.buffers());
  Upload upload;
  keys.reserve(upload, {&first.key, 1});
  upload.allocate(stream);
  keys.fill(upload);
  upload.send();
  batch.views = plan.buffers().views;
  batch.first_tile = plan.buffers().first_tile;
  encrypt_first_blocks(batch, nullptr);
  execute(batch, nullptr);
}

}  // namespace warpcipher::cuda
