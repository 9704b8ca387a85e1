// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/execution/siv_keys.hpp"

#include <span>

#include "cipher/aes.hpp"
#include "engine/cuda/aes/choose.hpp"
#include "engine/cuda/execution/device_batch.hpp"
#include "engine/cuda/inputs/keys.hpp"
#include "message/message.hpp"
#include "mode/gcm_siv.hpp"

namespace warpcipher::cuda {
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
