// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <span>

#include "cipher/aes.hpp"
#include "engine/cuda/aes/choose.hpp"
#include "engine/cuda/aes/launches.hpp"
#include "engine/cuda/chacha/choose.hpp"
#include "engine/cuda/chacha/launches.hpp"
#include "engine/cuda/des/launches.hpp"
#include "engine/cuda/execution/device_batch.hpp"
#include "engine/cuda/inputs/keys.hpp"
#include "engine/cuda/inputs/order.hpp"
#include "engine/cuda/inputs/texts.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"
#include "message/message.hpp"
#include "mode/gcm_siv.hpp"

namespace warpcipher::cuda {
namespace {

lane_table::CounterBatch counter_batch(const DeviceBatch& b) {
  return {b.views,
          b.first_tile,
          b.tiles,
          b.units,
          b.most_units,
          b.messages,
          b.aes_keys->rounds(),
          b.aes_keys->round_keys(),
          b.aes_keys->bytes(),
          b.only_key,
          b.is_aligned,
          b.lacks_ends,
          b.end_units};
}

// Derives round keys, unless the kernel makes them itself.
void prepare_keys(const DeviceBatch& b) {
  if (b.plan.counter->chosen.keys != lane_table::KeySource::bytes) b.aes_keys->derive();
}

void run_counters(const DeviceBatch& b, const std::uint32_t* verdicts) {
  if (b.units == 0) return;
  prepare_keys(b);
  const auto& [work, chosen] = *b.plan.counter;
  lane_table::run_counter_batch(b.device, b.stream, counter_batch(b), chosen, work.form, verdicts);
}

// The same where the text may have been started.
void run_rest(const DeviceBatch& b, const std::optional<CounterChoice>& started) {
  if (!started) return run_counters(b, nullptr);
  lane_table::run_ends(b.device, b.stream, counter_batch(b), *started, b.plan.counter->work.form);
}

void run_bitslice(const DeviceBatch& b) {
  const TileList list{b.views, b.first_tile, b.tiles, b.messages};
  const DesSchedules schedules(b.device, b.stream, b.des_keys);
  bitslice::run_tiles(b.device, b.stream, b.algorithm, b.direction, list, schedules, b.in_place);
}

void run_tiles(const DeviceBatch& b) {
  const TileList list{b.views, b.first_tile, b.tiles, b.messages};
  b.aes_keys->derive();
  lane_table::run_tiles(b.device, b.stream, b.algorithm, b.direction, b.plan.text->chosen,
                        {{list}, b.aes_keys->rounds(), b.aes_keys->round_keys()}, b.in_place, b.only_key);
}

// nullptr: the order of the views is good enough.
const std::uint32_t* order_by_length(const DeviceBatch& b, std::optional<LengthOrder>& memory) {
  if (b.is_ordered || b.units == b.most_units * b.messages) return nullptr;
  return memory.emplace(b.device, b.stream, b.views, b.messages).get();
}

void run_serial(const DeviceBatch& b) {
  std::optional<LengthOrder> memory;
  const std::uint32_t* const order = order_by_length(b, memory);
  b.aes_keys->derive();
  lane_table::run_serial_batch(
      b.device, b.stream, b.algorithm.mode.id, b.plan.serial->chosen,
      lane_table::SerialBatch{b.views, order, b.aes_keys->round_keys(), b.messages, b.aes_keys->rounds()});
}

void run_serial_des(const DeviceBatch& b) {
  std::optional<LengthOrder> memory;
  const std::uint32_t* const order = order_by_length(b, memory);
  const DesSchedules schedules(b.device, b.stream, b.des_keys, b.views, b.messages, order);
  lane_table::run_serial_batch(b.device, b.stream, b.algorithm.mode.id,
                               lane_table::SerialDesBatch{b.views, order, schedules, b.messages});
}

void run_gcm(const DeviceBatch& b, std::uint32_t* verdicts, const std::optional<CounterChoice>& started) {
  if (b.direction == Direction::encrypt) {
    run_rest(b, started);
    return ghash::authenticate(b.device, b.stream, b.hashes, nullptr);
  }
  ghash::authenticate(b.device, b.stream, b.hashes, verdicts);
  run_counters(b, verdicts);
}

void run_ccm(const DeviceBatch& b, std::uint32_t* verdicts) {
  std::optional<LengthOrder> memory;
  lane_table::run_ccm(b.device, b.stream, *b.plan.tables,
                      {b.views, b.hashes.views, b.hashes.masks, order_by_length(b, memory), b.aes_keys->round_keys(),
                       b.aes_keys->rounds(), b.messages, b.direction == Direction::encrypt},
                      verdicts);
}

// Encryption hashes the text, whose tag is the first counter, and then encrypts it; decryption is the other way round.
void run_gcm_siv(const DeviceBatch& b, std::uint32_t* verdicts) {
  const bool encrypting = b.direction == Direction::encrypt;
  DeviceBatch text = b;  // under the keys of the messages
  text.aes_keys = &b.siv_keys->of_messages();
  text.only_key = b.siv_keys->only_key();
  if (!encrypting) run_counters(text, nullptr);
  const StreamBuffer memory(b.messages * sizeof(Block), b.stream);
  ghash::HashBatch hashes = b.hashes;
  hashes.masks = nullptr;
  hashes.keys_of_host = {};
  hashes.hash_keys = b.siv_keys->hash_keys();
  hashes.only_hash_key = b.siv_keys->only_hash_key();
  hashes.polyvals = reinterpret_cast<Block*>(memory.data());
  ghash::authenticate(b.device, b.stream, hashes, nullptr);
  const TableLayout layout = *b.plan.tables;
  lane_table::finish_siv_tags(b.device, b.stream, layout, b.siv_keys->messages(), source_of(*text.aes_keys, layout),
                              hashes.polyvals, encrypting, verdicts);
  if (encrypting) return run_counters(text, nullptr);
  if (verdicts == nullptr) return;
  wipe_forged(b.device, b.stream, {b.views, b.first_tile, b.tiles, b.messages}, 16, verdicts);
}

}  // namespace

void encrypt_first_blocks(const DeviceBatch& b, Block* masks) {
  if (b.is_chacha()) return derive_stream_keys(b);
  if (b.is_gcm_siv()) return b.siv_keys->begin(b, masks);
  const bool is_xts = b.algorithm.mode.id == Mode::xts;
  if (!is_xts && !b.is_gcm() && !b.is_ccm()) return;
  b.aes_keys->derive();
  const uint4* const schedules = is_xts ? b.aes_keys->tweak_keys() : b.aes_keys->round_keys();
  const TableLayout layout = choose_table_layout(conditions_of(b.device));
  lane_table::encrypt_first_blocks(b.device, b.stream, layout,
                                   {b.views, b.messages, schedules, b.aes_keys->rounds(), masks});
}

void execute(const DeviceBatch& b, std::uint32_t* verdicts, const std::optional<CounterChoice>& started) {
  switch (b.plan.text_launch) {
    case TextLaunch::counter:
      if (b.is_gcm_siv()) return run_gcm_siv(b, verdicts);
      return b.is_gcm() ? run_gcm(b, verdicts, started) : run_rest(b, started);
    case TextLaunch::tiles: return run_tiles(b);
    case TextLaunch::serial: return run_serial(b);
    case TextLaunch::ccm: return run_ccm(b, verdicts);
    case TextLaunch::bitslice: return run_bitslice(b);
    case TextLaunch::serial_des: return run_serial_des(b);
    case TextLaunch::stream:
    case TextLaunch::aead: return started ? void() : run_stream_cipher(b, verdicts);
    case TextLaunch::by_itself:  // run_message()
    case TextLaunch::sectors:    // start_hybrid_rows()
      break;
  }
}

std::optional<CounterChoice> start_text(const DeviceBatch& b, std::uint32_t* verdicts, Speculation& speculation) {
  if (b.is_chacha()) {
    start_stream_cipher(b, verdicts, speculation);
    return CounterChoice{};  // of no meaning
  }
  prepare_keys(b);
  const auto& [work, chosen] = *b.plan.counter;
  if (!lane_table::start_counter_batch(b.device, b.stream, counter_batch(b), chosen, work.form, speculation)) return {};
  return chosen;
}

namespace {

chacha::NonceForm form_of(const Algorithm& algorithm) {
  if (!algorithm.is_aead()) return chacha::NonceForm::counter_first;
  return algorithm.cipher.id == CipherId::xchacha20 ? chacha::NonceForm::extended : chacha::NonceForm::nonce;
}

chacha::Batch batch_of(const DeviceBatch& b) {
  return {b.views, b.first_tile, b.stream_keys->streams(), b.messages, b.tiles, b.units, b.most_units};
}

chacha::Messages messages_of(const DeviceBatch& b, std::uint32_t* verdicts) {
  return {b.views, b.hashes.views, b.stream_keys->bytes(), b.messages, form_of(b.algorithm), verdicts};
}

chacha::Tags tags_of(const DeviceBatch& b, std::uint32_t* verdicts) {
  return {b.hashes.views,  b.hashes.first_chunk,     b.stream_keys->r(),        b.stream_keys->s(),
          b.hashes.chunks, b.hashes.chunk_blocks,    b.hashes.work.most_blocks, verdicts,
          b.are_parts,     b.stream_keys->factors(), b.stream_keys->sums()};
}

}  // namespace

void StreamKeys::derive(const DeviceBatch& b, const Speculation& speculation) {
  if (streams_ != nullptr) return;
  const std::uint32_t of_aead = b.algorithm.is_aead() ? b.messages : 0;
  memory_.emplace();
  const auto streams = memory_->reserve_on_device<chacha::KeyStream>(b.messages);
  const auto r = memory_->reserve_on_device<Block>(of_aead);
  const auto s = memory_->reserve_on_device<Block>(of_aead);
  memory_->allocate(b.stream);
  streams_ = memory_->device(streams);
  if (of_aead != 0) {
    r_ = memory_->device(r);
    s_ = memory_->device(s);
  }
  chacha::prepare(b.device, b.stream,
                  {b.views, b.hashes.views, bytes_, b.messages, form_of(b.algorithm), b.are_parts, streams_, r_, s_},
                  speculation);
}

// Arrays that only kernels write come last.
void StreamKeys::reserve(Upload& upload, std::uint32_t messages, std::uint64_t most_chunks) {
  of_host_.streams = upload.reserve<chacha::KeyStream>(messages);
  of_host_.s = upload.reserve<Block>(messages);
  of_host_.factors = upload.reserve<std::uint32_t>(chacha::Factors::words_for(messages));
  of_host_.sums = upload.reserve_on_device<poly1305::Element>(most_chunks);
  of_host_.messages = messages;
}

void StreamKeys::fill(Upload& upload, const Message& message, std::uint32_t number) {
  const chacha::ciphers::MessageKey key(message.key->bytes(), message.iv, message.iv_len);
  chacha::derive_on_host(key, upload.host(of_host_.streams)[number], upload.host(of_host_.s)[number],
                         {upload.host(of_host_.factors), of_host_.messages}, number);
  streams_ = upload.device(of_host_.streams);
  s_ = upload.device(of_host_.s);
  factors_ = upload.device(of_host_.factors);
  sums_ = upload.device(of_host_.sums);
}

void derive_stream_keys(const DeviceBatch& b) {
  if (!b.algorithm.is_aead() || b.plan.aead->chosen == AeadKernel::chunks) b.stream_keys->derive(b);
}

void run_stream_cipher(const DeviceBatch& b, std::uint32_t* verdicts) {
  if (!b.algorithm.is_aead()) {
    b.stream_keys->derive(b);
    return chacha::add_key_streams(b.device, b.stream, b.plan.stream->chosen, batch_of(b));
  }
  const bool encrypting = b.direction == Direction::encrypt;
  if (b.plan.aead->chosen == AeadKernel::lanes) {
    return chacha::run_messages(b.device, b.stream, messages_of(b, verdicts), b.units, encrypting, {});
  }
  b.stream_keys->derive(b);
  chacha::run_chunks(b.device, b.stream, batch_of(b), tags_of(b, verdicts),
                     encrypting ? chacha::Pass::encrypt : chacha::Pass::decrypt);
}

void run_stream_tags(const DeviceBatch& b, std::uint32_t* verdicts) {
  b.stream_keys->derive(b);
  chacha::run_chunks(b.device, b.stream, batch_of(b), tags_of(b, verdicts), chacha::Pass::hash);
}

void run_stream_pieces(const DeviceBatch& b, const chacha::TextPieces& pieces, std::uint32_t* verdicts) {
  b.stream_keys->derive(b);
  chacha::run_chunks(b.device, b.stream, batch_of(b), tags_of(b, verdicts),
                     verdicts == nullptr ? chacha::Pass::gather : chacha::Pass::scatter, pieces);
}

void start_stream_cipher(const DeviceBatch& b, std::uint32_t* verdicts, Speculation& speculation) {
  if (b.plan.aead->chosen == AeadKernel::chunks) {
    speculation.least_units = UINT64_MAX;
    return b.stream_keys->derive(b, speculation);
  }
  speculation.most_units = longest_by_lanes(conditions_of(b.device), b.plan.aead->work);
  chacha::run_messages(b.device, b.stream, messages_of(b, verdicts), b.units, b.direction == Direction::encrypt,
                       speculation);
}

namespace {

// AES in constant time, as a cipher of the mode's template.
struct BlockCipher {
  const aes::Schedule& schedule;
  void encrypt_block(const std::uint8_t* in, std::uint8_t* out) const { aes::encrypt_block(schedule, in, out); }
};

}  // namespace

SivKeys::SivKeys(const Device& device, Stream stream, const Algorithm& algorithm)
    : of_messages_(device, stream, algorithm, Direction::encrypt) {}

void SivKeys::reserve(Upload& upload, const Message& message) {
  const Algorithm& algorithm = message.algorithm();
  Secret<GcmSiv::Keys> derived;
  GcmSiv::derive(BlockCipher{aes_key_state(*message.key).schedule}, algorithm.key_len(), message.iv, *derived);
  *only_hash_key_ = gf128::load_polyval_key(derived->authentication);
  only_key_.emplace(algorithm, std::span<const std::uint8_t>(derived->encryption, algorithm.key_len()));
  list_of_key_ = &*only_key_;
  of_messages_.reserve(upload, {&list_of_key_, 1});
}

void SivKeys::begin(const DeviceBatch& b, Block* nonces) {
  messages_ = {b.views, b.hashes.views, b.messages, nonces};
  if (!only_key_) {
    memory_.emplace();
    const auto bytes = memory_->reserve_on_device<std::uint8_t>(b.algorithm.key_len() * b.messages);
    const auto hash_keys = memory_->reserve_on_device<gf128::Element>(b.messages);
    memory_->allocate(b.stream);
    const TableLayout layout = choose_table_layout(conditions_of(b.device));
    lane_table::derive_siv_keys(b.device, b.stream, layout, messages_, source_of(*b.aes_keys, layout),
                                {memory_->device(bytes), memory_->device(hash_keys)});
    of_messages_.take_bytes(memory_->device(bytes), b.messages);
    hash_keys_ = memory_->device(hash_keys);
  }
  const auto given = b.direction == Direction::encrypt ? lane_table::GivenTag::none
                     : b.computes_tags                 ? lane_table::GivenTag::mask
                                                       : lane_table::GivenTag::tag;
  lane_table::begin_siv_messages(b.device, b.stream, messages_, given);
}

lane_table::SivKeySource source_of(AesKeys& keys, TableLayout layout) {
  if (keys.bytes() != nullptr && keys.rounds() == 10 && layout == TableLayout::tables_128) {
    return {keys.rounds(), nullptr, keys.bytes()};
  }
  keys.derive();
  return {keys.rounds(), keys.round_keys(), nullptr};
}

}  // namespace warpcipher::cuda
