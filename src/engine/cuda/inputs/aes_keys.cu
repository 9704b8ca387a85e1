// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/inputs/aes_keys.hpp"

#include <cstring>

#include "engine/cuda/inputs/keys.hpp"
#include "engine/cuda/inputs/message_view.hpp"

namespace warpcipher::cuda {

AesKeys::AesKeys(const Device& device, Stream stream, const Algorithm& algorithm, Direction direction)
    : device_(device), stream_(stream), algorithm_(algorithm), inverse_(algorithm.inverse(direction)) {}

void AesKeys::reserve(Upload& upload, std::span<const Key* const> keys) {
  of_host_ = keys;
  count_ = static_cast<std::uint32_t>(keys.size());
  host_round_keys_ = upload.reserve<uint4>(most_round_keys * keys.size());
  host_tweak_round_keys_ = upload.reserve<uint4>(is_xts() ? most_round_keys * keys.size() : 0);
  host_hash_keys_ = upload.reserve<gf128::Element>(is_gcm() ? keys.size() : 0);
}

void AesKeys::fill(Upload& upload) {
  for (std::size_t k = 0; k < of_host_.size(); ++k) {
    const AesKeyState& state = aes_key_state(*of_host_[k]);
    std::memcpy(upload.host(host_round_keys_) + most_round_keys * k, state.words(inverse_),
                most_round_keys * sizeof(uint4));
    if (is_gcm()) upload.host(host_hash_keys_)[k] = state.hash_key;
    if (is_xts())
      std::memcpy(upload.host(host_tweak_round_keys_) + most_round_keys * k, state.tweak_words,
                  sizeof state.tweak_words);
  }
  round_keys_ = upload.device(host_round_keys_);
  if (is_gcm()) hash_keys_ = upload.device(host_hash_keys_);
  if (is_xts()) tweak_keys_ = upload.device(host_tweak_round_keys_);
}

void AesKeys::take_bytes(const std::uint8_t* bytes, std::uint32_t count) {
  bytes_ = bytes;
  count_ = count;
}

void AesKeys::derive() {
  if (round_keys_ != nullptr) return;
  const std::size_t round_keys_len = std::size_t{count_} * most_round_keys * sizeof(uint4);
  const std::size_t hash_keys_len = is_gcm() ? count_ * sizeof(gf128::Element) : 0;
  derived_ = std::make_unique<StreamBuffer>((is_xts() ? 2 : 1) * round_keys_len + hash_keys_len, stream_);
  auto* const round_keys = reinterpret_cast<uint4*>(derived_->data());
  auto* const after = derived_->data() + round_keys_len;
  KeyExpansion expansion{};
  expansion.keys = bytes_;
  expansion.stride = static_cast<std::uint32_t>(algorithm_.key_len());
  expansion.key_len = static_cast<std::uint32_t>(algorithm_.cipher.key_len);
  expansion.count = count_;
  expansion.inverse = inverse_;
  expansion.round_keys = round_keys;
  if (is_gcm()) expansion.hash_keys = reinterpret_cast<gf128::Element*>(after);
  expand_keys(device_, stream_, expansion);
  if (is_xts()) expand_tweak_keys(device_, stream_, expansion, reinterpret_cast<uint4*>(after));
  round_keys_ = round_keys;
  if (is_gcm()) hash_keys_ = expansion.hash_keys;
  if (is_xts()) tweak_keys_ = reinterpret_cast<const uint4*>(after);
}

}  // namespace warpcipher::cuda
