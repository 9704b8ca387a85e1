// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/batch/aes_batch.hpp"

#include <algorithm>
#include <cstring>

#include "core/bytes.hpp"
#include "core/thread_pool.hpp"
#include "engine/cuda/batch/derive.hpp"
#include "engine/cuda/group_run.hpp"
#include "engine/cuda/keys.hpp"
#include "engine/cuda/lane_table/starts.hpp"

namespace warpcipher::cuda {
namespace {

// The host has made the schedules of so few keys in their first call; a lane of the GPU takes long over one, and a
// launch more.
constexpr std::uint32_t most_keys_of_host = 4;

// GCM takes 12 bytes as they are: SP 800-38D, section 7.1, step 2. All that other modes take fits a block too.
bool is_long(const Message& message) {
  return message.algorithm().mode.id == Mode::gcm && message.iv_len != gcm_plain_iv_len;
}

Block start_of(const Message& message) {
  if (message.algorithm().mode.id != Mode::gcm) return to_block(message.iv, message.iv_len);
  if (is_long(message)) return {};
  Block counter = to_block(message.iv, gcm_plain_iv_len);
  counter.words[3] = 0x01000000u;  // 1, big-endian
  return counter;
}

}  // namespace

AesBatch::AesBatch(const GroupRun& run) {
  const Group& group = run.group;
  const std::size_t count = group.messages.size();
  const auto messages = static_cast<std::uint32_t>(count);
  const std::size_t key_len = group.algorithm->key_len();
  const auto cipher_key_len = static_cast<std::uint32_t>(group.algorithm->cipher.key_len);
  const Mode mode = group.algorithm->mode.id;
  rounds_ = cipher_key_len / 4 + 6;

  KeyList keys;
  key_of_.reserve(count);
  std::size_t long_ivs = 0;
  std::size_t long_iv_len = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Message& message = run.message(i);
    key_of_.push_back(keys.number(*message.key));
    units_ += message.units();
    most_units_ = std::max<std::uint64_t>(most_units_, message.units());
    if (is_long(message)) {
      ++long_ivs;
      long_iv_len += message.iv_len;
    }
  }
  keys_ = static_cast<std::uint32_t>(keys.keys().size());

  views_ = upload_.reserve<MessageView>(count);
  first_tile_ = upload_.reserve<std::uint64_t>(group.first_tile.size());
  const bool made_on_host = keys_ <= most_keys_of_host;
  const auto key_bytes = upload_.reserve<std::uint8_t>(made_on_host ? 0 : key_len * keys_);
  const auto rows = upload_.reserve<uint4>(made_on_host ? most_rows * keys_ : 0);
  const auto tweak_rows = upload_.reserve<uint4>(made_on_host && mode == Mode::xts ? most_rows * keys_ : 0);
  const auto hash_keys = upload_.reserve<gf128::Element>(made_on_host && mode == Mode::gcm ? keys_ : 0);
  const auto ivs = upload_.reserve<LongIv>(long_ivs);
  const auto iv_bytes = upload_.reserve<std::uint8_t>(long_iv_len);
  const auto own_rows = upload_.reserve_on_device<uint4>(made_on_host ? 0 : most_rows * keys_);
  const auto own_tweak_rows =
      upload_.reserve_on_device<uint4>(made_on_host || mode != Mode::xts ? 0 : most_rows * keys_);
  const auto own_hash_keys = upload_.reserve_on_device<gf128::Element>(made_on_host || mode != Mode::gcm ? 0 : keys_);
  const auto masks = upload_.reserve_on_device<Block>(mode == Mode::gcm ? count : 0);
  upload_.allocate(run.stream);
  ThreadPool::instance().parallel_for(count, messages_at_once, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      MessageView& view = upload_.host(views_)[i];
      view = view_of(run.message(i));
      view.start = start_of(run.message(i));
      view.key = key_of_[i];
    }
  });
  std::size_t long_iv = 0;
  std::size_t iv_offset = 0;
  for (std::size_t i = 0; long_iv < long_ivs; ++i) {
    const Message& message = run.message(i);
    if (!is_long(message)) continue;
    upload_.host(ivs)[long_iv++] = {upload_.device(iv_bytes) + iv_offset, message.iv_len,
                                    static_cast<std::uint32_t>(i)};
    std::copy_n(message.iv, message.iv_len, upload_.host(iv_bytes) + iv_offset);
    iv_offset += message.iv_len;
  }
  std::copy(group.first_tile.begin(), group.first_tile.end(), upload_.host(first_tile_));
  const bool inverse = group.algorithm->inverse(group.direction);
  for (std::uint32_t k = 0; k < keys_; ++k) {
    const Key& key = *keys.keys()[k];
    if (!made_on_host) {
      std::copy_n(key.bytes(), key_len, upload_.host(key_bytes) + key_len * k);
      continue;
    }
    const AesKeyState& state = aes_key_state(key);
    std::memcpy(upload_.host(rows) + most_rows * k, state.words(inverse), most_rows * sizeof(uint4));
    if (mode == Mode::gcm) upload_.host(hash_keys)[k] = state.hash_key;
    if (mode == Mode::xts) {
      std::memcpy(upload_.host(tweak_rows) + most_rows * k, state.tweak_words, sizeof state.tweak_words);
    }
  }
  upload_.send();

  if (made_on_host) keys_of_host_ = keys.keys();
  round_keys_ = upload_.device(made_on_host ? rows : own_rows);
  hash_keys_ = upload_.device(made_on_host ? hash_keys : own_hash_keys);
  KeyExpansion expansion{};
  expansion.keys = upload_.device(key_bytes);
  expansion.stride = static_cast<std::uint32_t>(key_len);
  expansion.key_len = cipher_key_len;
  expansion.count = keys_;
  expansion.inverse = inverse;
  expansion.rows = upload_.device(own_rows);
  expansion.hash_keys = mode == Mode::gcm ? upload_.device(own_hash_keys) : nullptr;
  if (!made_on_host) expand_keys(run.device, run.stream, expansion);

  if (mode == Mode::gcm) {
    if (long_ivs != 0) {
      hash_ivs(run.device, run.stream,
               {upload_.device(ivs), static_cast<std::uint32_t>(long_ivs), this->hash_keys(), upload_.device(views_)});
    }
    masks_ = upload_.device(masks);
    lane_table::encrypt_starts(run.device, run.stream,
                               {upload_.device(views_), messages, round_keys_, rounds_, upload_.device(masks)});
  } else if (mode == Mode::xts) {
    if (!made_on_host) expand_tweak_keys(run.device, run.stream, expansion, upload_.device(own_tweak_rows));
    const uint4* const rows_of_tweaks = upload_.device(made_on_host ? tweak_rows : own_tweak_rows);
    lane_table::encrypt_starts(run.device, run.stream,
                               {upload_.device(views_), messages, rows_of_tweaks, rounds_, nullptr});
  }
}

}  // namespace warpcipher::cuda
