// SPDX-License-Identifier: Apache-2.0
// The counter mode for batches of short messages. With one tile in each warp most lanes would be idle. Here several
// messages share a warp, each with a group of G = 1, 2, 4 ... 32 lanes, and a lane takes four blocks of its message at
// a time:
//
//   G = 4         message i       message i + 1      ...   message i + 7
//   lane          0  1  2  3      4  5  6  7               28 29 30 31
//   blocks        0  1  2  3      0  1  2  3                0  1  2  3
//                 4  5  6  7      4  5  6  7                4  5  6  7
//                 8  9 10 11                  ...
//                12 13 14 15
//
// A lane computes the common rounds of its four counters itself (CommonRounds), and once more if the last byte carries
// among them: 27 lookups, which save 4 x 27. One read of a round key is enough for four blocks in each lane.
#pragma once

#include "engine/cuda/aes/cipher.cuh"
#include "engine/cuda/aes/counter.cuh"
#include "engine/cuda/aes/launches.hpp"
#include "engine/cuda/aes/source.cuh"
#include "engine/cuda/inputs/message_view.cuh"

namespace warpcipher::cuda::lane_table {

// Many messages, each with a key of 128 bits. A lane computes the round keys when it needs them (FIPS 197, section
// 5.2): the lookups cost half as much as reading a round key for each of eight messages, and no other kernel must make
// them beforehand. In the layout Tables128.
struct RawKeySource : MessageList {
  std::uint32_t rounds;  // 10
  const std::uint8_t* keys;

  class Key {
   public:
    static constexpr bool in_registers = true;

    explicit __device__ __forceinline__ Key(const Block& first) : first_(first), lane_(4 * lane_index()) {}

    // Number 0 at any time, number 1 from there, all others after the one before.
    __device__ __forceinline__ const Block& round(std::uint32_t r) const {
      if (r == 0) return first_;
      const Block& last = r == 1 ? first_ : current_;
      const std::uint32_t rcon = r < 9 ? 1u << (r - 1) : 0x1bu << (r - 9);
      const std::uint32_t word = last.words[3];
      const std::uint32_t bytes01 = byte_permute(look_up<1>(word), look_up<2>(word), 0x5151);
      const std::uint32_t bytes23 = byte_permute(look_up<3>(word), look_up<0>(word), 0x5151);
      Block next;
      next.words[0] = last.words[0] ^ byte_permute(bytes01, bytes23, 0x5410) ^ rcon;
#pragma unroll
      for (int c = 1; c < 4; ++c) next.words[c] = last.words[c] ^ next.words[c - 1];
      return current_ = next;
    }

   private:
    // An entry of T0, whose byte 1 is the S-box's.
    template <std::uint32_t Byte>
    __device__ __forceinline__ std::uint32_t look_up(std::uint32_t word) const {
      const std::uint32_t address = byte_permute(word, lane_, 0x5504u | Byte << 4);
      return *reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const char*>(shared_tables) + address);
    }

    Block first_;
    std::uint32_t lane_;
    mutable Block current_{};
  };

  __device__ __forceinline__ Key key_at(std::uint32_t number) const {
    const std::uint8_t* const key = global(keys) + std::size_t{16} * number;
    return Key(reinterpret_cast<std::uintptr_t>(keys) % 16 == 0 ? load_aligned(key) : load_bytes(key, 16));
  }
};

// XORs the key stream to four whole blocks in each lane, for aligned texts with four lanes each: of eight lanes, lanes
// l and l + 4 exchange half of their blocks, so that eight lanes access one line of one message, not half lines of two
// messages.
//
//   lanes          0 to 3                    4 to 7
//   before         blocks l + 4 n of A       blocks l - 4 + 4 n of B
//   after          blocks l, l + 8 of A      blocks l, l + 8 of A
//                  blocks l, l + 8 of B      blocks l, l + 8 of B
__device__ __forceinline__ void store_lines(const Text& text, std::uint32_t unit,
                                            const Block (&blocks)[blocks_in_flight]) {
  constexpr std::uint32_t partner = 4;
  const bool is_upper = (lane_index() & partner) != 0;
  const auto own_in = reinterpret_cast<std::uintptr_t>(text.in);
  const auto own_out = reinterpret_cast<std::uintptr_t>(text.out);
  const std::uintptr_t other_in = from_lane_xor(own_in, partner);
  const std::uintptr_t other_out = from_lane_xor(own_out, partner);
  const std::uint32_t offset = 16 * (unit + (is_upper ? partner : 0));
  const auto* const in_a = global(reinterpret_cast<const std::uint8_t*>(is_upper ? other_in : own_in)) + offset;
  const auto* const in_b = global(reinterpret_cast<const std::uint8_t*>(is_upper ? own_in : other_in)) + offset;
  auto* const out_a = global(reinterpret_cast<std::uint8_t*>(is_upper ? other_out : own_out)) + offset;
  auto* const out_b = global(reinterpret_cast<std::uint8_t*>(is_upper ? own_out : other_out)) + offset;
  const Block texts_a[2] = {load_aligned(in_a), load_aligned(in_a + 128)};
  const Block texts_b[2] = {load_aligned(in_b), load_aligned(in_b + 128)};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    Block a, b;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const std::uint32_t even = blocks[2 * i].words[w];
      const std::uint32_t odd = blocks[2 * i + 1].words[w];
      const std::uint32_t other = from_lane_xor(is_upper ? even : odd, partner);
      a.words[w] = is_upper ? other : even;
      b.words[w] = is_upper ? odd : other;
    }
    store_aligned(out_a + 128 * i, texts_a[i] ^ a);
    store_aligned(out_b + 128 * i, texts_b[i] ^ b);
  }
}

// The end of a message that tiles lack (TileList), as a message.
template <class Counter>
__device__ __forceinline__ MessageView end_of(const MessageView& view, bool wrap_32) {
  const std::uint64_t before = units_before_end(view.in_len, Counter::low_byte(view.start));
  MessageView end{};
  end.in = view.in + 16 * before;
  end.out = view.out + 16 * before;
  end.in_len = view.in_len - 16 * before;
  end.start = Counter::add(view.start, before, wrap_32);
  end.key = view.key;
  return end;
}

// Four blocks of a message, every `step`th from `unit` on, without those past the end of the text. Writes zeros if the
// message is not good. Every lane of the warp takes part.
template <class Counter, class Cipher>
__device__ __forceinline__ void encrypt_four(const Cipher& cipher, const MessageView& view, const Text& text,
                                             bool is_good, std::uint32_t unit, std::uint32_t step, bool wrap_32) {
  const Block counter = Counter::add(view.start, unit, wrap_32);
  const std::uint32_t last = Counter::low_byte(counter);
  const CommonRounds common = cipher.template common_rounds<Counter::byte>(counter);
  CommonRounds carried = common;
  if (!all_lanes(last + 3 * step < CounterMode::carry)) {
    carried = cipher.template common_rounds<Counter::byte>(
        Counter::add(view.start, unit + CounterMode::carry - last, wrap_32));
  }
  Block blocks[blocks_in_flight];
#pragma unroll
  for (std::uint32_t n = 0; n < blocks_in_flight; ++n) {
    const std::uint32_t sum = last + step * n;
    const bool carries = sum >= CounterMode::carry;
    CommonRounds own;
    own.first_column = carries ? carried.first_column : common.first_column;
#pragma unroll
    for (int c = 0; c < 4; ++c) own.second.words[c] = carries ? carried.second.words[c] : common.second.words[c];
    blocks[n] = cipher.after_common(own, cipher.template counting_entry<Counter::byte>(sum));
  }
  cipher.encrypt_rest(blocks);
  const bool are_whole = text.aligned && 16 * (unit + 3 * step) + 16 <= text.in_len;
  if (step == 4 && all_lanes(are_whole && is_good)) return store_lines(text, unit, blocks);
  if (are_whole) {
    Block texts[blocks_in_flight];
#pragma unroll
    for (std::uint32_t n = 0; n < blocks_in_flight; ++n) texts[n] = load_aligned(text.in + 16 * (unit + step * n));
#pragma unroll
    for (std::uint32_t n = 0; n < blocks_in_flight; ++n) {
      store_aligned(text.out + 16 * (unit + step * n), is_good ? texts[n] ^ blocks[n] : Block{});
    }
    return;
  }
#pragma unroll
  for (std::uint32_t n = 0; n < blocks_in_flight; ++n) {
    const std::uint32_t own = unit + step * n;
    // With a key each there are too few registers for that.
    if (!Cipher::key_in_registers && 16 * own + 16 <= text.in_len) {
      const Block loaded = load_anywhere(text.in + 16 * own);
      store_anywhere(text.out + 16 * own, is_good ? blocks[n] ^ loaded : Block{});
    } else if (16 * own < text.in_len) {
      text.store(own, is_good ? blocks[n] ^ text.load(own) : Block{});
    }
  }
}

// Ends: the ends that tiles lack, and not whole messages.
template <class Tables, int Rounds, class Source, class Counter, bool Ends>
__global__ void __launch_bounds__(block_threads, 1)
    packed_counter_kernel(const __grid_constant__ Source source, const __grid_constant__ PackedParameters parameters,
                          const __grid_constant__ Speculation speculation) {
  if (!may_start(speculation)) return;
  fill_tables<Tables, false>();
  __syncthreads();
  const std::uint32_t group_len = 1u << parameters.group_log;
  const std::uint32_t messages_of_warp = warp_len >> parameters.group_log;
  const std::uint32_t lane = lane_index() % group_len;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * (blockDim.x / warp_len) * messages_of_warp;
  std::uint64_t first = (blockIdx.x + gridDim.x * warp_index()) * std::uint64_t{messages_of_warp};
  for (; first < source.messages; first += stride) {
    const std::uint64_t own = first + lane_index() / group_len;
    const bool is_there = own < source.messages;
    const auto message = static_cast<std::uint32_t>(is_there ? own : first);
    const MessageView& view = [&]() -> decltype(auto) {
      if constexpr (Ends) {
        return end_of<Counter>(source.views[message], parameters.wrap_32);
      } else {
        return (source.views[message]);
      }
    }();
    const std::uint32_t len = is_there ? static_cast<std::uint32_t>(view.in_len) : 0;
    const auto addresses = reinterpret_cast<std::uintptr_t>(view.in) | reinterpret_cast<std::uintptr_t>(view.out);
    const Text text{global(view.in), global(view.out), len, len, 0, addresses % 16 == 0};
    const typename Source::Key key = source.key_at(view.key);
    const LaneCipher<Tables, false, Rounds, typename Source::Key> cipher(key, source.rounds);
    const bool is_good = parameters.verdicts == nullptr || parameters.verdicts[message] != 0;
    // Lanes whose message is done continue too, because some operations need all lanes.
    for (std::uint32_t unit = lane; !all_lanes(16 * (unit - lane) >= len); unit += blocks_in_flight * group_len) {
      encrypt_four<Counter>(cipher, view, text, is_good, unit, group_len, parameters.wrap_32);
    }
  }
}

}  // namespace warpcipher::cuda::lane_table
