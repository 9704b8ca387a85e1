// SPDX-License-Identifier: Apache-2.0
// In its own library (CMakeLists.txt), for the only compute capability on which it was measured.
#include "engine/cuda/aes/counter.cuh"
#include "engine/cuda/aes/hybrid.cuh"
#include "engine/cuda/aes/hybrid.hpp"
#include "engine/cuda/inputs/message_view.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::lane_table {

// The counter mode of a batch of short messages of one key and one length, by a hybrid kernel (hybrid.cuh). The blocks
// of M messages, with room for U each, are a tile of 256 places, 8 rows of 32:
//
//   U = 24       | message i  | i + 1            | i + 2        ...  | i + 9       | nothing
//   place        | 0 ...  23  | 24 ...       47  | 48 ...            | 216 ... 239 | 240 ... 255
//   row: lane    | 0: 0 to 23 | 0: 24 to 1: 15   | 1: 16 to 2: 7     | 6: 24 to 7: 15
//
// Lane l computes the common rounds (counter.cuh) of message i + l for the counters before a carry of the last byte;
// lane 16 + l for those after it. A message has at most one such carry. Other lanes get them by shuffles. So common
// rounds are computed once for a tile, and rows of text are read and written whole. (In packed.cuh a lane has blocks of
// one message only, so adjacent lanes access different lines of memory.)

// The messages of a tile. Every lane takes part in find_common() and after_common().
class PackedMessages {
 public:
  // A message, counted from the tile's first, and one of its units.
  struct MessageUnit {
    std::uint32_t message;
    std::uint32_t unit;
  };

  __device__ __forceinline__ PackedMessages(const MessageList& list, const PackedLayout& layout, std::uint32_t number,
                                            const std::uint32_t* verdicts)
      : layout_(layout), views_(list.views), verdicts_(verdicts), first_(layout.messages * number) {
    const std::uint32_t left = list.messages - first_;
    count_ = left < layout.messages ? left : layout.messages;
  }

  __device__ __forceinline__ std::uint32_t rows() const {
    return (count_ * layout_.of_message + warp_len - 1) / warp_len;
  }

  // The lane's place in a row.
  __device__ __forceinline__ MessageUnit at(std::uint32_t row) const {
    const std::uint32_t place = warp_len * row + lane_index();
    const std::uint32_t message = layout_.message_at(place);
    return {message, place - message * layout_.of_message};
  }
  __device__ __forceinline__ bool has(const MessageUnit& place) const { return place.message < count_; }

  // The message whose common rounds the lane computes.
  __device__ __forceinline__ const MessageView& own_view() const { return views_[own_message()]; }
  __device__ __forceinline__ bool own_is_good() const { return is_good(own_message()); }

  // The block at a place; of length 0 if there is none.
  __device__ __forceinline__ Text text(const MessageUnit& place) const {
    if (!has(place)) return {};
    const MessageView& view = views_[first_ + place.message];
    const std::uint32_t offset = 16 * place.unit;
    const auto in_len = static_cast<std::uint32_t>(view.in_len);
    const std::uint32_t len = in_len > offset ? in_len - offset : 0;
    const auto addresses = reinterpret_cast<std::uintptr_t>(view.in) | reinterpret_cast<std::uintptr_t>(view.out);
    return {view.in + offset, view.out + offset, len, len, 0, addresses % 16 == 0};
  }
  __device__ __forceinline__ bool is_good_at(const MessageUnit& place) const { return is_good(first_ + place.message); }

  template <class Cipher>
  __device__ __forceinline__ void find_common(const Cipher& cipher, bool wrap_32) {
    const Block start = own_view().start;
    last_ = start.words[3] >> 24;
    const bool is_carried = lane_index() >= PackedLayout::most_messages;
    common_ = cipher.common_rounds(add_counter(start, is_carried ? CounterMode::carry - last_ : 0, wrap_32));
  }

  // The lane's counter in a row, after two rounds.
  template <class Cipher>
  __device__ __forceinline__ Block after_common(const Cipher& cipher, std::uint32_t row) const {
    const MessageUnit place = at(row);
    const std::uint32_t message = place.message % PackedLayout::most_messages;
    const std::uint32_t last = from_lane(last_, message) + place.unit;
    const std::uint32_t from = last < CounterMode::carry ? message : message + PackedLayout::most_messages;
    CommonRounds own;
    own.first_column = from_lane(common_.first_column, from);
#pragma unroll
    for (int c = 0; c < 4; ++c) own.second.words[c] = from_lane(common_.second.words[c], from);
    return cipher.after_common(own, cipher.counting_entry(last));
  }

 private:
  __device__ __forceinline__ std::uint32_t own_message() const {
    const std::uint32_t message = lane_index() % PackedLayout::most_messages;
    return first_ + (message < count_ ? message : 0);
  }

  __device__ __forceinline__ bool is_good(std::uint32_t message) const {
    return verdicts_ == nullptr || verdicts_[message] != 0;
  }

  const PackedLayout& layout_;
  const MessageView* const views_;
  const std::uint32_t* const verdicts_;
  const std::uint32_t first_;
  std::uint32_t count_;     // less than M in the last tile
  std::uint32_t last_ = 0;  // byte of the first counter
  CommonRounds common_{};
};

// Where the texts of a tile lie; each lane has its own message.
class PlainTexts {
 public:
  explicit __device__ __forceinline__ PlainTexts(const PackedMessages& tile) : PlainTexts(tile.own_view()) {}

  // Whether add() may be called: all texts have the full length and are aligned, the high halves of their addresses are
  // equal, and the messages are good.
  __device__ __forceinline__ bool are_plain(const PackedMessages& tile, const PackedLayout& layout) const {
    const MessageView& view = tile.own_view();
    const std::uint32_t len = 16 * layout.of_message;
    return all_lanes(view.in_len == len && (in_ | out_) % 16 == 0 && high_half(view.in) == in_high_ &&
                     high_half(view.out) == out_high_ && in_ + len > in_ && out_ + len > out_ && tile.own_is_good());
  }

  // XORs the key stream to the lane's blocks in N rows.
  template <int N>
  __device__ __forceinline__ void add(const PackedMessages& tile, std::uint32_t row, const Block (&blocks)[N]) const {
    Block texts[N];
    std::uint32_t outs[N];
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const PackedMessages::MessageUnit place = tile.at(row + n);
      const std::uint32_t from = place.message % PackedLayout::most_messages;
      const std::uint32_t in = from_lane(in_, from) + 16 * place.unit;
      outs[n] = from_lane(out_, from) + 16 * place.unit;
      texts[n] = tile.has(place) ? load_aligned(global_at<const std::uint8_t>(join(in_high_, in))) : Block{};
    }
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (tile.has(tile.at(row + n))) {
        store_aligned(global_at<std::uint8_t>(join(out_high_, outs[n])), texts[n] ^ blocks[n]);
      }
    }
  }

 private:
  explicit __device__ __forceinline__ PlainTexts(const MessageView& view)
      : in_(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(view.in))),
        out_(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(view.out))),
        in_high_(from_lane(high_half(view.in), 0)),
        out_high_(from_lane(high_half(view.out), 0)) {}

  static __device__ __forceinline__ std::uint32_t high_half(const void* p) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(p) >> 32);
  }
  static __device__ __forceinline__ std::uint64_t join(std::uint32_t high, std::uint32_t low) {
    return std::uint64_t{high} << 32 | low;
  }

  std::uint32_t in_;  // the low half
  std::uint32_t out_;
  std::uint32_t in_high_;
  std::uint32_t out_high_;
};

// Encrypts a tile by tables.
template <class Cipher>
__device__ __forceinline__ void run_packed(const Cipher& cipher, const PackedMessages& tile, const PlainTexts& texts,
                                           bool are_plain) {
#pragma unroll 1
  for (std::uint32_t row = 0; row < tile.rows(); row += blocks_in_flight) {
    Block blocks[blocks_in_flight];
#pragma unroll
    for (std::uint32_t n = 0; n < blocks_in_flight; ++n) blocks[n] = tile.after_common(cipher, row + n);
    cipher.encrypt_rest(blocks);
    if (are_plain) {
      texts.add(tile, row, blocks);
    } else {
#pragma unroll
      for (std::uint32_t n = 0; n < blocks_in_flight; ++n) {
        const PackedMessages::MessageUnit place = tile.at(row + n);
        Text text = tile.text(place);
        if (text.in_len == 0) continue;
        text.in = global(text.in);
        text.out = global(text.out);
        text.store(0, tile.is_good_at(place) ? blocks[n] ^ text.load(0) : Block{});
      }
    }
  }
}

// Encrypts a tile of plain texts by logic.
template <class Cipher, class Key>
__device__ __forceinline__ void run_packed_sliced(const Cipher& cipher, const Key& key, std::uint32_t rounds,
                                                  const PackedMessages& tile) {
  constexpr std::uint32_t half = 4;  // of the rows: code for all rows exceeds the instruction caches
  std::uint32_t columns[4][8] = {};
#pragma unroll 1
  for (std::uint32_t row = 0; row < 2 * half; row += half) {
#pragma unroll
    for (std::uint32_t n = 0; n < half; ++n) {
      const Block block = tile.after_common(cipher, row + n);
#pragma unroll
      for (std::uint32_t c = 0; c < 4; ++c) {
        columns[c][n] = columns[c][n + half];
        columns[c][n + half] = block.words[c];
      }
    }
  }
  aes::Slices state = aes::Slices::of_columns(columns);
#pragma unroll 1
  for (std::uint32_t r = Key::first_sliced; r <= rounds; ++r) {  // one S-box for all rounds: it is most of the code
    state.sub_bytes();
    if (r != rounds) state.mix_columns(key.sliced(r));
  }
  state.get_column<0>(columns[0]);
  state.get_column<1>(columns[1]);
  state.get_column<2>(columns[2]);
  state.get_column<3>(columns[3]);
  const Block last = key.round(rounds);
  const PlainTexts texts(tile);
  constexpr std::uint32_t at_once = 2;
#pragma unroll 1
  for (std::uint32_t row = 0; row < 2 * half; row += half) {
#pragma unroll
    for (std::uint32_t n = 0; n < half; n += at_once) {
      Block blocks[at_once];
#pragma unroll
      for (std::uint32_t i = 0; i < at_once; ++i) {
        blocks[i] = Block{{columns[0][n + i], columns[1][n + i], columns[2][n + i], columns[3][n + i]}} ^ last;
      }
      texts.add(tile, row + n, blocks);
    }
#pragma unroll
    for (std::uint32_t n = 0; n < half; ++n) {
#pragma unroll
      for (std::uint32_t c = 0; c < 4; ++c) columns[c][n] = columns[c][n + half];
    }
  }
}

// Tiles with texts that are not plain use tables, in either kind of warp.
static __global__ void __launch_bounds__(block_threads, 1)
    hybrid_packed_kernel(const __grid_constant__ CounterSource<OneKeySource> source,
                         const __grid_constant__ CounterParameters parameters,
                         const __grid_constant__ PackedLayout layout, const __grid_constant__ Speculation speculation) {
  if (!may_start(speculation)) return;
  using Key = OnlyKey<CounterSource<OneKeySource>>;
  run_hybrid<Key, false>(source, [&](const Key& key, const auto& cipher, const HybridWarp& warp) {
    auto dealer = TileDealer<1>::of_grid(0, layout.tiles(source.messages), warp.is_sliced);
    std::uint32_t number = 0;
    while (dealer.take(number)) {
      PackedMessages tile(source, layout, number, parameters.verdicts);
      tile.find_common(cipher, parameters.wrap_32);
      const PlainTexts texts(tile);
      const bool are_plain = texts.are_plain(tile, layout);
      if (warp.is_sliced && are_plain) {
        run_packed_sliced(cipher, key, source.rounds, tile);
      } else {
        run_packed(cipher, tile, texts, are_plain);
      }
    }
  });
}

void launch_hybrid_packed(const Device& device, Stream stream, const CounterSource<OneKeySource>& batch,
                          const CounterParameters& parameters, const PackedLayout& layout,
                          const Speculation& speculation) {
  launch(&hybrid_packed_kernel, LaunchConfiguration{device.multiprocessors, block_threads, HybridPolicy::shared_len},
         stream, batch, parameters, layout, speculation);
}

}  // namespace warpcipher::cuda::lane_table
