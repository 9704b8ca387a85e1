// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/inputs/keys.hpp"

#include <cstring>

#include "cipher/aes.hpp"
#include "cipher/aes_tables.hpp"
#include "cipher/des_bitslice.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/intrinsics.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda {

AesKeyState::AesKeyState(const Key& key) {
  const Algorithm& algorithm = key.algorithm();
  const std::size_t cipher_key_len = algorithm.cipher.key_len;
  schedule = aes::expand_key(key.bytes(), cipher_key_len);
  const Secret<aes::Schedule> decryption(aes::to_decryption_schedule(schedule));
  aes::to_column_words(schedule, encryption_words);
  aes::to_column_words(*decryption, decryption_words);
  if (algorithm.mode.two_keys) {  // the second half: IEEE 1619, section 5.1
    const Secret<aes::Schedule> tweaks(aes::expand_key(key.bytes() + cipher_key_len, cipher_key_len));
    aes::to_column_words(*tweaks, tweak_words);
  }
  if (algorithm.mode.id == Mode::gcm) {
    std::uint8_t block[16] = {};
    aes::encrypt_block(schedule, block, block);
    hash_key = gf128::load(block);
    secure_wipe(block, sizeof block);
  }
}

AesKeyState::~AesKeyState() {
  secure_wipe(&schedule, sizeof schedule);
  secure_wipe(&hash_key, sizeof hash_key);
  secure_wipe(encryption_words, sizeof encryption_words);
  secure_wipe(decryption_words, sizeof decryption_words);
  secure_wipe(tweak_words, sizeof tweak_words);
}

const AesKeyState& aes_key_state(const Key& key) {
  return key.state<AesKeyState>(EngineId::cuda, [](const Key& k) { return std::make_unique<AesKeyState>(k); });
}

// Dynamic: the round keys of a schedule for each thread of a block.
extern __shared__ uint4 shared_round_keys[];

namespace {

constexpr std::uint32_t threads = 128;
constexpr std::size_t shared_round_keys_len = threads * most_round_keys * sizeof(uint4);

// The round keys of one schedule in shared memory, and nowhere else: a copy in local memory would not be wiped.
struct SharedRoundKeys {
  uint4* first;

  WARPCIPHER_INLINE void get(int r, std::uint32_t (&words)[4]) const {
    const uint4 v = first[r];
    words[0] = byte_swap32(v.x);
    words[1] = byte_swap32(v.y);
    words[2] = byte_swap32(v.z);
    words[3] = byte_swap32(v.w);
  }
  WARPCIPHER_INLINE void set(int r, const std::uint32_t (&words)[4]) const {
    first[r] = make_uint4(byte_swap32(words[0]), byte_swap32(words[1]), byte_swap32(words[2]), byte_swap32(words[3]));
  }
  WARPCIPHER_INLINE void set_pair(int i, std::uint32_t word, std::uint32_t next) const {
    auto* const pairs = reinterpret_cast<uint2*>(first + i / 4);
    pairs[i / 2 % 2] = make_uint2(byte_swap32(word), byte_swap32(next));
  }
};

// Calls body(i) for each i below count, in its own lane.
template <class Body>
__device__ __forceinline__ void for_each_lane(std::uint32_t count, Body&& body) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    body(static_cast<std::uint32_t>(i));
  }
}

LaunchConfiguration configuration_for(const Device& device, std::uint32_t lanes) {
  return configuration_of_lanes(device, lanes, threads, 16);
}

// Each lane makes a schedule in shared memory. Then the warp stores all of them, with 16 lanes for each schedule, so
// that stores are coalesced. When each lane stored its own, 2^20 keys took 643 us on an H200.
__global__ void __launch_bounds__(threads) expand_keys_kernel(const __grid_constant__ KeyExpansion expansion) {
  constexpr std::uint32_t lanes = 16;
  static_assert(most_round_keys <= lanes);
  const int rounds = static_cast<int>(expansion.key_len / 4 + 6);
  uint4* const of_warp = shared_round_keys + most_round_keys * (threadIdx.x - lane_index());
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  std::uint64_t first = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x - lane_index();  // of the warp
  for (; first < expansion.count; first += stride) {
    const std::uint64_t i = first + lane_index();
    if (i < expansion.count) {
      SharedRoundKeys round_keys{of_warp + most_round_keys * lane_index()};
      aes::expand_key_into(round_keys, global(expansion.keys) + std::size_t{expansion.stride} * i, expansion.key_len);
      if (expansion.hash_keys != nullptr) {
        std::uint32_t columns[4] = {};
        aes::encrypt_columns(round_keys, rounds, columns);
        expansion.hash_keys[i] = {std::uint64_t{columns[0]} << 32 | columns[1],
                                  std::uint64_t{columns[2]} << 32 | columns[3]};
      }
      if (expansion.inverse) aes::turn_to_decryption(round_keys, rounds);
    }
    __syncwarp();
    const std::uint32_t number = lane_index() % lanes;
    for (std::uint32_t k = lane_index() / lanes; k < warp_len; k += warp_len / lanes) {
      if (first + k < expansion.count && number <= static_cast<std::uint32_t>(rounds)) {
        global(expansion.round_keys)[most_round_keys * (first + k) + number] = of_warp[most_round_keys * k + number];
      }
    }
    __syncwarp();
  }
  for (std::uint32_t r = 0; r < most_round_keys; ++r) of_warp[warp_len * r + lane_index()] = {};
}

__global__ void __launch_bounds__(threads)
    check_halves_kernel(const std::uint8_t* keys, std::uint32_t key_len, std::uint32_t count, std::uint32_t* bad) {
  for_each_lane(count, [&](std::uint32_t i) {
    const std::uint8_t* const key = global(keys) + std::size_t{key_len} * i;
    std::uint32_t difference = 0;
    for (std::uint32_t b = 0; b < key_len / 2; ++b) difference |= std::uint32_t{key[b]} ^ key[key_len / 2 + b];
    if (difference == 0) *bad = 1;
  });
}

}  // namespace

void expand_keys(const Device& device, Stream stream, const KeyExpansion& expansion) {
  LaunchConfiguration configuration = configuration_for(device, expansion.count);
  configuration.shared_len = shared_round_keys_len;
  launch(&expand_keys_kernel, configuration, stream, expansion);
}

void expand_tweak_keys(const Device& device, Stream stream, const KeyExpansion& first_halves, uint4* round_keys) {
  KeyExpansion expansion = first_halves;
  expansion.keys += expansion.key_len;
  expansion.inverse = false;
  expansion.round_keys = round_keys;
  expand_keys(device, stream, expansion);
}

void check_key_halves(const Device& device, Stream stream, const std::uint8_t* keys, std::uint32_t key_len,
                      std::uint32_t count, std::uint32_t* bad) {
  launch(&check_halves_kernel, configuration_for(device, count), stream, keys, key_len, count, bad);
}

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

namespace {

struct Expansion {
  DesKeys keys;
  const MessageView* views;    // nullptr: one schedule for each key
  const std::uint32_t* order;  // of the views
  std::uint32_t schedules;
  uint2* subkeys;
};

// Lane n makes subkeys[n].
__global__ void __launch_bounds__(threads) expand_kernel(const __grid_constant__ Expansion expansion) {
  const DesKeys& keys = expansion.keys;
  const std::uint32_t rounds = keys.rounds();
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  const std::uint64_t end = (std::uint64_t{expansion.schedules} + warp_len - 1) / warp_len * warp_len * rounds;
  for (std::uint64_t n = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; n < end; n += stride) {
    const std::uint64_t row = n / warp_len;
    const std::uint64_t group = rounds == 16 ? row / 16 : row / 48;  // constants: division is slow
    const std::uint64_t schedule = group * warp_len + n % warp_len;
    if (schedule >= expansion.schedules) continue;
    std::uint64_t key = schedule;
    if (expansion.views != nullptr) {
      key = expansion.views[expansion.order != nullptr ? expansion.order[schedule] : schedule].key;
    }
    const auto round = static_cast<std::uint32_t>(row - group * rounds);
    const des::SboxSubkey subkey =
        des::sbox_subkey(global(keys.bytes) + key * keys.key_len, keys.key_len, keys.inverse, round);
    expansion.subkeys[n] = make_uint2(subkey.odd, subkey.even);
  }
}

std::size_t subkeys_of(std::uint64_t schedules, std::uint32_t rounds) {
  return (schedules + warp_len - 1) / warp_len * warp_len * rounds;
}

}  // namespace

DesSchedules::DesSchedules(const Device& device, Stream stream, const DesKeys& keys, const MessageView* views,
                           std::uint32_t messages, const std::uint32_t* order)
    : rounds_(keys.rounds()),
      of_one_key_(keys.count == 1),
      memory_(subkeys_of(views == nullptr || of_one_key_ ? keys.count : messages, rounds_) * sizeof(uint2), stream) {
  const bool of_messages = views != nullptr && !of_one_key_;
  const Expansion expansion{keys, of_messages ? views : nullptr, order, of_messages ? messages : keys.count,
                            reinterpret_cast<uint2*>(memory_.data())};
  launch(&expand_kernel, configuration_of_lanes(device, memory_.size() / sizeof(uint2), threads, 16), stream,
         expansion);
}

}  // namespace warpcipher::cuda
