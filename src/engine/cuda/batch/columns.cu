// SPDX-License-Identifier: Apache-2.0
// What happens to a columnar batch, in the order of its stream:
//
//   columns of the host are copied               PlacedColumns
//   XTS: sectors on a guess                      start_sectors(); for them that is all, but for results
//   AES: round keys, H                           expand_keys()
//   views, prefix sums, checks                   survey_columns()
//   GCM: E(J0), counters; nonces used twice      encrypt_starts(), check_nonces()
//   XTS: keys of equal halves                    check_key_halves()
//   CTR, GCM's encryption: text on a guess       start_counters()
//   --- the host waits for the survey: nothing has been written yet, unless it finds no fault
//   serial modes: an order of the messages       order_by_length()
//   DES: key schedules, by key or message        DesSchedules
//   XTS: first tweaks                            encrypt_starts()
//   text, tags, verdicts, results
//   padding taken off                            take_padding_off()
#include "engine/cuda/batch/columns.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <random>
#include <vector>

#include "core/thread_pool.hpp"
#include "engine/cuda/batch/aes_batch.hpp"
#include "engine/cuda/batch/derive.hpp"
#include "engine/cuda/batch/des_batch.hpp"
#include "engine/cuda/batch/order.hpp"
#include "engine/cuda/batch/padding.hpp"
#include "engine/cuda/batch/placed_columns.hpp"
#include "engine/cuda/batch/survey.hpp"
#include "engine/cuda/bitslice/des.hpp"
#include "engine/cuda/check.hpp"
#include "engine/cuda/device.hpp"
#include "engine/cuda/ghash/ghash.hpp"
#include "engine/cuda/keys.hpp"
#include "engine/cuda/lane_table/mixed_rows.hpp"
#include "engine/cuda/lane_table/packed.hpp"
#include "engine/cuda/lane_table/parallel.hpp"
#include "engine/cuda/lane_table/run.hpp"
#include "engine/cuda/lane_table/serial_aes.hpp"
#include "engine/cuda/lane_table/serial_des.hpp"
#include "engine/cuda/lane_table/starts.hpp"
#include "engine/cuda/memory.hpp"
#include "engine/cuda/pinned_answer.hpp"
#include "engine/cuda/stream.hpp"
#include "engine/cuda/tunable.hpp"

namespace warpcipher::cuda {
namespace {

// Fewer messages than these take the host less time than the launches that spare it the work.
constexpr std::size_t least_messages = 512;
constexpr std::size_t results_at_once = 16384;

// WARPCIPHER_COLUMNS ("device" or "host") forces one where both are possible, for tests and measurements.
bool is_worth_it(const Columns& c) {
  const std::string_view forced = forced_value("WARPCIPHER_COLUMNS", {"device", "host"});
  if (!forced.empty()) return forced == "device";
  return c.columns_memory == Memory::device || c.count >= least_messages;
}

// Everything that is the same for all messages. What is wrong here is for run() to say.
bool can_run(const Columns& c) {
  const Algorithm& algorithm = c.algorithm_of_all();
  if (c.padding != Padding::none && !algorithm.takes_padding()) return false;
  if (c.count >= UINT32_MAX || c.key_count() >= UINT32_MAX) return false;
  if (c.in.size() > most_buffer_len || c.out.size() > most_buffer_len || c.aad.size() > most_buffer_len) return false;
  switch (algorithm.mode.id) {
    case Mode::gcm:
      return c.iv_len == gcm_plain_iv_len && is_gcm_tag_len(c.tag_len);
    default:
      return c.iv_len == (algorithm.mode.iv == IvRule::none ? 0 : algorithm.block_len()) && c.tag_len == 0 &&
             c.aad.empty();
  }
}

// The device of all arrays that are said to lie in device memory.
const Device& device_of(const Columns& c) {
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

class ColumnsRun {
 public:
  ColumnsRun(const Columns& columns, const Device& device, Stream stream)
      : c_(columns),
        device_(device),
        stream_(stream),
        placed_(columns, device, stream),
        view_(placed_.view()),
        count_(static_cast<std::uint32_t>(columns.count)),
        keys_(static_cast<std::uint32_t>(columns.key_count())),
        algorithm_(columns.algorithm_of_all()),
        is_aes_(is_aes(algorithm_.cipher.id)),
        is_gcm_(algorithm_.mode.id == Mode::gcm),
        is_xts_(algorithm_.mode.id == Mode::xts),
        encrypting_(columns.direction == Direction::encrypt),
        takes_padding_off_(!encrypting_ && columns.padding == Padding::pkcs7) {}

  std::optional<Status> run(std::span<Result> results) {
    device_survey_ = make(sizeof(Survey));
    clear(*device_survey_);
    if (start_sectors()) {
      if (await_answer()) return settle(nullptr, results);
      clear(*device_survey_);
    }
    place_keys();
    survey();
    const bool has_text = start_counters() && await_answer();
    if (survey_.bad != 0) return std::nullopt;
    if (!is_gcm_ && algorithm_.mode.id != Mode::ctr) {
      if (survey_.tiles > lane_table::most_tiles) return std::nullopt;
      algorithm_.parallel(c_.direction) ? run_tiles() : run_serial();
      if (!takes_padding_off_) return settle(nullptr, results);
      const StreamBuffer lengths(count_ * sizeof(std::uint32_t), stream_, Wiping::needless);
      auto* const words = reinterpret_cast<std::uint32_t*>(lengths.data());
      take_padding_off(device_, stream_, views(), count_, words);
      return settle(words, results);
    }
    const lane_table::CounterBatch counters = counter_batch(survey_);
    if (!is_gcm_) {
      if (!has_text) run_counters(counters, nullptr);
      return settle(nullptr, results);
    }
    const ghash::DeviceBatch hashes{reinterpret_cast<const ghash::HashView*>(hash_views_->data()),
                                    reinterpret_cast<const Block*>(masks_->data()),
                                    reinterpret_cast<const gf128::Element*>(hash_keys_->data()),
                                    reinterpret_cast<const std::uint64_t*>(first_chunk_->data()),
                                    count_,
                                    keys_,
                                    view_.chunk_blocks,
                                    survey_.chunks,
                                    survey_.hash_blocks,
                                    survey_.most_hash_blocks};
    if (encrypting_) {
      if (!has_text) run_counters(counters, nullptr);
      ghash::authenticate(device_, stream_, hashes, nullptr);
      return settle(nullptr, results);
    }
    const StreamBuffer verdicts(count_ * sizeof(std::uint32_t), stream_, Wiping::needless);
    auto* const words = reinterpret_cast<std::uint32_t*>(verdicts.data());
    ghash::authenticate(device_, stream_, hashes, words);
    run_counters(counters, words);
    return settle(words, results);
  }

 private:
  using Bytes = std::unique_ptr<StreamBuffer>;

  void run_tiles() const {
    const TileList list{views(), first_tile(), survey_.tiles, count_};
    if (is_xts_) {
      lane_table::encrypt_starts(
          device_, stream_, {reinterpret_cast<MessageView*>(views_->data()), count_, tweak_key(), rounds(), nullptr});
    }
    if (is_aes_) {
      return lane_table::run_tiles(device_, stream_, algorithm_, c_.direction, {{list}, rounds(), round_keys()},
                                   survey_.units, !view_.apart, only_key());
    }
    const DesSchedules schedules(device_, stream_, des_keys());
    bitslice::run_tiles(device_, stream_, algorithm_, c_.direction, list, schedules, !view_.apart);
  }

  void run_serial() const {
    Bytes order, places;
    if (survey_.units != survey_.most_units * count_) {
      order = make(count_ * sizeof(std::uint32_t));
      places = make(length_classes * sizeof(std::uint32_t));
      clear(*places);
      order_by_length(device_, stream_, views(), count_, reinterpret_cast<std::uint32_t*>(places->data()),
                      reinterpret_cast<std::uint32_t*>(order->data()));
    }
    const auto* const numbers = order ? reinterpret_cast<const std::uint32_t*>(order->data()) : nullptr;
    if (is_aes_) {
      return lane_table::run_serial_batch(device_, stream_, algorithm_.mode.id,
                                          lane_table::SerialBatch{views(), numbers, round_keys(), count_, rounds()});
    }
    const DesSchedules schedules(device_, stream_, des_keys(), views(), count_, numbers);
    lane_table::run_serial_batch(device_, stream_, algorithm_.mode.id,
                                 lane_table::SerialDesBatch{views(), numbers, schedules, count_});
  }

  Bytes make(std::size_t size, Wiping wiping = Wiping::needless) const {
    return std::make_unique<StreamBuffer>(size, stream_, wiping);
  }

  const Key* only_key() const { return c_.algorithm == nullptr && keys_ == 1 ? c_.keys[0] : nullptr; }
  std::uint32_t rounds() const { return static_cast<std::uint32_t>(algorithm_.cipher.key_len / 4 + 6); }
  bool inverse() const { return algorithm_.inverse(c_.direction); }

  DesKeys des_keys() const { return {key_bytes_, static_cast<std::uint32_t>(algorithm_.key_len()), keys_, inverse()}; }

  void place_keys() {
    if (is_aes_ && only_key() != nullptr) return place_only_key();
    key_bytes_ = placed_.place_key_bytes();
    if (is_aes_ && algorithm_.mode.id != Mode::ctr) make_round_keys();
  }

  void make_rows(Bytes& rows) const { rows = make(keys_ * most_rows * sizeof(uint4), Wiping::needed); }

  void make_round_keys() {
    make_rows(round_keys_);
    if (is_gcm_) hash_keys_ = make(keys_ * sizeof(gf128::Element), Wiping::needed);
    KeyExpansion expansion{};
    expansion.keys = key_bytes_;
    expansion.stride = static_cast<std::uint32_t>(algorithm_.key_len());
    expansion.key_len = static_cast<std::uint32_t>(algorithm_.cipher.key_len);
    expansion.count = keys_;
    expansion.inverse = inverse();
    expansion.rows = reinterpret_cast<uint4*>(round_keys_->data());
    if (is_gcm_) expansion.hash_keys = reinterpret_cast<gf128::Element*>(hash_keys_->data());
    expand_keys(device_, stream_, expansion);
    if (!is_xts_) return;
    if (c_.algorithm != nullptr) {  // a Key has been asked already
      check_key_halves(device_, stream_, key_bytes_, expansion.stride, keys_, &survey_of_device()->bad);
    }
    make_rows(tweak_keys_);
    expand_tweak_keys(device_, stream_, expansion, reinterpret_cast<uint4*>(tweak_keys_->data()));
  }

  // One lane would take longer over its schedule than the host, which made it in the key's first call.
  void place_only_key() {
    const AesKeyState& state = aes_key_state(*only_key());
    const auto send = [&](const Bytes& to, const void* from, std::size_t size) {
      check(cudaMemcpyAsync(to->data(), from, size, cudaMemcpyHostToDevice, native(stream_)),
            "copy a key schedule to the device");
    };
    make_rows(round_keys_);
    send(round_keys_, state.words(inverse()), sizeof state.encryption_words);
    if (is_gcm_) {
      hash_keys_ = make(sizeof(gf128::Element), Wiping::needed);
      send(hash_keys_, &state.hash_key, sizeof state.hash_key);
    }
    if (is_xts_) {
      make_rows(tweak_keys_);
      send(tweak_keys_, state.tweak_words, sizeof state.tweak_words);
    }
  }

  void survey() {
    const std::size_t sums = (std::size_t{count_} + messages_of_sum - 1) / messages_of_sum;
    views_ = make(count_ * sizeof(MessageView));
    first_tile_ = make((std::size_t{count_} + 1) * sizeof(std::uint64_t));
    sums_ = make(sums * sizeof(Sums));
    if (is_gcm_) {
      hash_views_ = make(count_ * sizeof(ghash::HashView));
      first_chunk_ = make((std::size_t{count_} + 1) * sizeof(std::uint64_t));
    }
    survey_columns(
        device_, stream_, view_,
        {survey_of_device(), reinterpret_cast<Sums*>(sums_->data()), reinterpret_cast<MessageView*>(views_->data()),
         is_gcm_ ? reinterpret_cast<ghash::HashView*>(hash_views_->data()) : nullptr,
         reinterpret_cast<std::uint64_t*>(first_tile_->data()),
         is_gcm_ ? reinterpret_cast<std::uint64_t*>(first_chunk_->data()) : nullptr});
    if (is_gcm_) {
      masks_ = make(count_ * sizeof(Block), Wiping::needed);
      auto* const masks = reinterpret_cast<Block*>(masks_->data());
      lane_table::encrypt_starts(
          device_, stream_, {reinterpret_cast<MessageView*>(views_->data()), count_, round_keys(), rounds(), masks});
      if (encrypting_) find_nonces_used_twice(masks);
    }
  }

  lane_table::CounterBatch counter_batch(const Survey& survey) const {
    return {views(), first_tile(), survey.tiles, survey.units, survey.most_units,
            count_,  rounds(),     round_keys(), key_bytes_,   only_key()};
  }

  void run_counters(lane_table::CounterBatch batch, const std::uint32_t* verdicts) {
    if (batch.tiles == 0) return;
    const lane_table::CounterChoice choice = lane_table::choose_counter(device_, batch);
    add_keys(batch, choice);
    lane_table::run_counter_batch(device_, stream_, batch, choice, is_gcm_, verdicts);
  }

  // CTR makes round keys only for a kernel that does not itself.
  void add_keys(lane_table::CounterBatch& batch, const lane_table::CounterChoice& choice) {
    if (!round_keys_ && !choice.makes_round_keys) make_round_keys();
    batch.round_keys = round_keys();
  }

  // What is guessed of the survey, a kernel will say.
  void begin_guess() {
    answer_.emplace(stream_);
    guess_.survey = survey_of_device();
    guess_.answer = answer_->get();
  }

  // Starts the text of a counter mode before the survey is known (guess.hpp); false, and the survey is known, where
  // another kernel than those that look themselves would suit. Where GCM decrypts, tags come first.
  bool start_counters() {
    const bool counts = algorithm_.mode.id == Mode::ctr || (is_gcm_ && encrypting_);
    if (counts && count_ != 0) {
      const std::uint64_t room = view_.out_len / count_ > view_.tag_len ? view_.out_len / count_ - view_.tag_len : 0;
      Survey alike{};
      alike.most_units = (std::min(view_.in_len / count_, room) + 15) / 16;
      alike.units = count_ * alike.most_units;
      alike.tiles = count_ * ((alike.most_units + lane_table::tile_units - 1) / lane_table::tile_units);
      begin_guess();
      lane_table::CounterBatch batch = counter_batch(alike);
      const lane_table::CounterChoice choice = lane_table::choose_counter(device_, batch);
      add_keys(batch, choice);
      bool is_started = true;
      try {
        is_started = lane_table::start_counter_batch(device_, stream_, batch, choice, is_gcm_, guess_);
      } catch (...) {
        answer_->expect();  // of two kernels the first may be on its way
        throw;
      }
      if (is_started) {
        answer_->expect();
        return true;
      }
    }
    fetch_survey();
    return false;
  }

  // The same for data units of XTS that may be sectors, whose survey is one of its own; false, and nothing is launched,
  // where they are not.
  bool start_sectors() {
    if (!is_xts_ || only_key() == nullptr || !lane_table::choose_mixed_rows(device_, view_)) return false;
    if (view_.aad_offsets != nullptr || view_.aad_lengths != nullptr) return false;  // to be checked, too
    begin_guess();
    guess_.most_units = UINT64_MAX;
    lane_table::start_mixed_rows(device_, stream_, view_, *only_key(), rounds(), guess_);
    answer_->expect();
    return true;
  }

  // Until the kernel that was started says what the survey is; true where its guess held.
  bool await_answer() {
    answer_->wait();
    survey_ = guess_.answer->survey;
    placed_.release();
    return holds(guess_, survey_);
  }

  void find_nonces_used_twice(const Block* masks) {
    NonceTable table{};
    const std::size_t places = std::bit_ceil(2 * std::size_t{count_});
    const StreamBuffer memory(places * sizeof *table.places, stream_, Wiping::needless);
    clear(memory);
    table.places = reinterpret_cast<unsigned long long*>(memory.data());
    table.mask = static_cast<std::uint32_t>(places - 1);
    std::random_device random;
    for (std::uint64_t& seed : table.seeds) seed = std::uint64_t{random()} << 32 | random();
    check_nonces(device_, stream_, views(), masks, count_, table, survey_of_device());
  }

  // Fills in the results. words: what Outcome has; without them all is known without asking the device.
  Status settle(const std::uint32_t* words, std::span<Result> results) {
    const Outcome outcome{survey_.most_units << view_.unit_log, words,
                          is_gcm_ ? Status::invalid_tag : Status::invalid_padding,
                          static_cast<std::uint32_t>(encrypting_ ? c_.tag_len : 0), takes_padding_off_};
    if (c_.columns_memory == Memory::device) {
      write_results(device_, stream_, views(), count_, outcome, results.data(), survey_of_device());
      if (words == nullptr) return Status::ok;
      fetch_survey();
      return survey_.failed == 0 ? Status::ok : outcome.failure;
    }
    std::vector<std::uint32_t> fetched(words != nullptr ? count_ : 0);
    if (words != nullptr) {
      check(cudaMemcpyAsync(fetched.data(), words, fetched.size() * sizeof fetched[0], cudaMemcpyDeviceToHost,
                            native(stream_)),
            "copy the verdicts of messages from the device");
      check(cudaStreamSynchronize(native(stream_)), "wait for the verdicts of messages");
    }
    const auto text_len = [&](std::size_t i) {
      const std::uint64_t len = c_.in_lengths[i];
      return view_.pads ? padded_len(len, algorithm_.block_len()) : encrypting_ ? len : len - c_.tag_len;
    };
    ThreadPool::instance().parallel_for(count_, results_at_once, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const bool is_good = fetched.empty() || fetched[i] != 0;
        const std::uint32_t taken_off = takes_padding_off_ ? fetched[i] : 0;
        results[i] = is_good ? Result{Status::ok, text_len(i) + outcome.added - taken_off} : Result{outcome.failure, 0};
      }
    });
    return std::find(fetched.begin(), fetched.end(), 0u) == fetched.end() ? Status::ok : outcome.failure;
  }

  void clear(const StreamBuffer& buffer) const {
    check(cudaMemsetAsync(buffer.data(), 0, buffer.size(), native(stream_)), "clear device memory");
  }

  void fetch_survey() {
    check(cudaMemcpyAsync(&survey_, device_survey_->data(), sizeof survey_, cudaMemcpyDeviceToHost, native(stream_)),
          "copy the survey of a batch from the device");
    check(cudaStreamSynchronize(native(stream_)), "wait for the survey of a batch");
    placed_.release();
  }

  const MessageView* views() const { return views_ ? reinterpret_cast<const MessageView*>(views_->data()) : nullptr; }
  const uint4* round_keys() const {
    return round_keys_ ? reinterpret_cast<const uint4*>(round_keys_->data()) : nullptr;
  }
  const uint4* tweak_key() const { return reinterpret_cast<const uint4*>(tweak_keys_->data()); }
  const std::uint64_t* first_tile() const { return reinterpret_cast<const std::uint64_t*>(first_tile_->data()); }
  Survey* survey_of_device() const { return reinterpret_cast<Survey*>(device_survey_->data()); }

  const Columns& c_;
  const Device& device_;
  const Stream stream_;
  PlacedColumns placed_;
  const ColumnView& view_;
  const std::uint32_t count_;
  const std::uint32_t keys_;
  const Algorithm& algorithm_;
  const bool is_aes_;
  const bool is_gcm_;
  const bool is_xts_;
  const bool encrypting_;
  const bool takes_padding_off_;
  Survey survey_{};
  Guess guess_{};
  std::optional<PinnedAnswer> answer_;
  const std::uint8_t* key_bytes_ = nullptr;
  Bytes round_keys_, tweak_keys_, hash_keys_, views_, hash_views_, masks_, first_tile_, first_chunk_, sums_,
      device_survey_;
};

}  // namespace

std::optional<Status> run_columns(const Columns& columns, std::span<Result> results, Stream stream) {
  const Device& device = device_of(columns);
  if (!can_run(columns) || !is_worth_it(columns)) return std::nullopt;
  const DeviceScope scope(device.index);
  return ColumnsRun(columns, device, stream).run(results);
}

}  // namespace warpcipher::cuda
