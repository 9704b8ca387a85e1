// SPDX-License-Identifier: Apache-2.0
// A lane's round keys stay in registers, so a key for each message costs no more than one key for all. Each lane has
// its own message. If each lane loaded its own 16 bytes, a load would touch 32 cache lines, where four would be enough.
// So the warp loads and stores together, with eight lanes for each message, and lanes exchange text through shared
// memory:
//
//   load j   lanes 0 to 7: blocks 0 to 7 of message j    lanes 8 to 15: of message 8 + j    ...
//   cipher   lane l: blocks 0 to 7 of message l, each replaced by its result
//   store j  as load j
//
// H200, CBC encryption of 2^18 messages of 4 KiB: 680 GB/s; with a key each 676. If lanes load their own text, 284.
// With the round keys of one key as kernel parameters: 602 with 32 warps, 671 with 24; for 32, shared memory has
// room for chunks of half the length only. The bound is 719: 160 lookups for 32 blocks, and 26 wavefronts for their
// text and its addresses.
//
// Few messages wait only for their own chains. For them a kernel with fewer warps has registers for all lookups of a
// round at the same time, and for loading the next chunk meanwhile: a chain of 2048 blocks takes 1.1 ms, with 16 warps
// 1.6 ms.
#include "engine/cuda/aes/launches.hpp"

#include "engine/cuda/aes/cipher.cuh"
#include "engine/cuda/aes/serial.cuh"
#include "engine/cuda/aes/source.cuh"

namespace warpcipher::cuda::lane_table {
namespace {

constexpr std::uint32_t chunk_len = serial_chunk_len;
constexpr std::uint32_t chunk_blocks = chunk_len / 16;
constexpr std::uint32_t staged_len = serial_staged_len;
constexpr std::uint32_t most_warps = count_of(SerialWarps::sixteen);
constexpr std::uint32_t roomy_warps = count_of(SerialWarps::twelve);

struct SerialParameters {
  SerialBatch batch;
  Feedback feedback;
  bool staged;  // shared memory has staged_len bytes for each warp after the tables
};

template <int Rounds>
struct RegisterKey {
  static constexpr bool in_registers = true;

  Block round_keys[Rounds + 1];

  __device__ __forceinline__ explicit RegisterKey(const uint4* words) {
#pragma unroll
    for (int r = 0; r <= Rounds; ++r) {
      const uint4 v = __ldg(words + r);
      round_keys[r] = {{v.x, v.y, v.z, v.w}};
    }
  }

  __device__ __forceinline__ const Block& round(std::uint32_t r) const { return round_keys[r]; }
};

template <class Tables, int Rounds>
struct SerialAes {
  static constexpr std::uint32_t block_len = 16;

  LaneCipher<Tables, false, Rounds, RegisterKey<Rounds>> cipher;

  __device__ __forceinline__ Block operator()(const Block& block) const {
    Block blocks[1] = {block};
    cipher(blocks);
    return blocks[0];
  }
};

// The chunk of each lane's message in shared memory. Block b of message m is at position b ^ m % 8 of its row, so that
// neither eight messages at one block nor eight blocks of one message share a bank.
class Stage {
 public:
  template <class Tables>
  static __device__ __forceinline__ Stage of_warp(Tables) {
    return Stage(shared_tables + (Tables::shared_len + staged_len * warp_index()) / sizeof(uint4));
  }

  __device__ __forceinline__ uint4& at(std::uint32_t message, std::uint32_t block) const {
    return blocks_[message * chunk_blocks + (block ^ message % chunk_blocks)];
  }

  // The chunks may be plaintext; other lanes may still read them.
  __device__ __forceinline__ void wipe() const {
    __syncwarp();
#pragma unroll
    for (std::uint32_t b = 0; b < chunk_blocks; ++b) at(lane_index(), b) = uint4{};
  }

 private:
  explicit __device__ __forceinline__ Stage(uint4* blocks) : blocks_(blocks) {}

  uint4* const blocks_;
};

// Where the texts of the lanes' messages lie: how many blocks after lane 0's.
struct LaneTexts {
  std::uint64_t first;
  std::int32_t blocks_after;
  bool fits;  // in 32 bits, and a multiple of 16

  explicit __device__ __forceinline__ LaneTexts(const std::uint8_t* text) {
    const auto own = reinterpret_cast<std::uint64_t>(text);
    first = from_lane(own, 0);
    const auto distance = static_cast<std::int64_t>(own - first);
    blocks_after = static_cast<std::int32_t>(distance / 16);
    fits = std::int64_t{blocks_after} * 16 == distance && own % 16 == 0;
  }

  __device__ __forceinline__ std::uint8_t* at(std::uint32_t lane, std::uint64_t offset) const {
    return reinterpret_cast<std::uint8_t*>(first + 16 * std::int64_t{from_lane(blocks_after, lane)} + offset);
  }
};

// Encrypts the chunks that are whole and aligned in all messages; all lanes take part. Returns how many bytes of its
// message a lane has done. Ahead: loads the text of the next chunk into registers while this one is encrypted.
template <bool Ahead, class Cipher>
__device__ __forceinline__ std::uint64_t run_chunks(const Cipher& cipher, const Feedback& feedback,
                                                    const MessageView& view, bool is_there, const Stage& stage,
                                                    Block& chain) {
  const LaneTexts in(view.in);
  const LaneTexts out(view.out);
  const std::uint64_t len = is_there && in.fits && out.fits ? view.in_len / chunk_len * chunk_len : 0;
  const std::uint32_t lane = lane_index();
  const std::uint32_t column = lane % chunk_blocks;
  const std::uint32_t first = lane - column;
  uint4 text[chunk_blocks];
  const auto load = [&](std::uint32_t active, std::uint64_t offset) {
#pragma unroll
    for (std::uint32_t j = 0; j < chunk_blocks; ++j) {
      const std::uint8_t* const p = in.at(first + j, offset + 16 * column);
      if ((active >> (first + j) & 1) != 0) text[j] = *reinterpret_cast<const uint4*>(global(p));
    }
  };
  std::uint32_t active = lanes_with(len != 0);
  if constexpr (Ahead) load(active, 0);
#pragma unroll 1
  for (std::uint64_t offset = 0; active != 0; offset += chunk_len) {
    if constexpr (!Ahead) load(active, offset);
#pragma unroll
    for (std::uint32_t j = 0; j < chunk_blocks; ++j) {
      if ((active >> (first + j) & 1) != 0) stage.at(first + j, column) = text[j];
    }
    const bool is_active = offset < len;
    std::uint32_t next = 0;
    if constexpr (Ahead) load(next = lanes_with(offset + chunk_len < len), offset + chunk_len);
    __syncwarp();
    if (is_active) {
      uint4 given = stage.at(lane, 0);
#pragma unroll 1
      for (std::uint32_t b = 0; b < chunk_blocks; ++b) {
        if constexpr (!Ahead) given = stage.at(lane, b);
        const Block block{{given.x, given.y, given.z, given.w}};
        if constexpr (Ahead) given = stage.at(lane, (b + 1) % chunk_blocks);  // after the last block nothing reads it
        const Block made = next_block(cipher, feedback, block, chain);
        stage.at(lane, b) = make_uint4(made.words[0], made.words[1], made.words[2], made.words[3]);
      }
    }
    __syncwarp();
#pragma unroll
    for (std::uint32_t j = 0; j < chunk_blocks; ++j) {
      std::uint8_t* const p = out.at(first + j, offset + 16 * column);
      if ((active >> (first + j) & 1) != 0) __stcs(reinterpret_cast<uint4*>(global(p)), stage.at(first + j, column));
    }
    if constexpr (!Ahead) next = lanes_with(offset + chunk_len < len);
    active = next;
  }
  return len;
}

template <class Tables, int Rounds, std::uint32_t Warps>
__global__ void __launch_bounds__(Warps* warp_len, 1)
    serial_aes_kernel(const __grid_constant__ SerialParameters parameters) {
  constexpr bool ahead = Tables::planes == 2 && Warps <= roomy_warps;
  fill_tables<Tables, false>();
  __syncthreads();
  const SerialBatch& batch = parameters.batch;
  const Stage stage = Stage::of_warp(Tables{});
  for_each_group(batch.messages, [&](std::uint32_t first) {
    const std::uint32_t own = first + lane_index();
    const bool is_there = own < batch.messages;
    const std::uint32_t place = is_there ? own : first;
    const MessageView& view = batch.views[batch.order != nullptr ? batch.order[place] : place];
    const RegisterKey<Rounds> key(batch.round_keys + std::size_t{most_round_keys} * view.key);
    const SerialAes<Tables, Rounds> cipher{{key, Rounds}};
    Block chain = view.start;
    std::uint64_t done = 0;
    if (parameters.staged) done = run_chunks<ahead>(cipher, parameters.feedback, view, is_there, stage, chain);
    if (is_there) run_message(cipher, parameters.feedback, view, done, chain);
  });
  if (parameters.staged) stage.wipe();
}

template <class Tables, int Rounds, std::uint32_t Warps>
void launch_warps(const Device& device, Stream stream, TableLayout layout, const SerialParameters& parameters) {
  const std::uint32_t room = parameters.staged ? count_staged_warps(device, layout) : Warps;
  LaunchConfiguration configuration =
      serial_configuration(device, parameters.batch.messages, room < Warps ? room : Warps);
  configuration.shared_len =
      Tables::shared_len + (parameters.staged ? configuration.threads / warp_len * staged_len : 0);
  launch(&serial_aes_kernel<Tables, Rounds, Warps>, configuration, stream, parameters);
}

template <class Tables, int Rounds>
void launch_rounds(const Device& device, Stream stream, const SerialChoice& choice,
                   const SerialParameters& parameters) {
  constexpr bool has_sixteen = Rounds == 10;
  constexpr bool has_twelve = Rounds != 10 || Tables::planes == 2;
  if constexpr (has_sixteen) {
    if (!has_twelve || choice.warps == SerialWarps::sixteen) {
      return launch_warps<Tables, Rounds, most_warps>(device, stream, choice.layout, parameters);
    }
  }
  if constexpr (has_twelve) {
    launch_warps<Tables, Rounds, roomy_warps>(device, stream, choice.layout, parameters);
  }
}

template <class Tables>
void launch_layout(const Device& device, Stream stream, const SerialChoice& choice,
                   const SerialParameters& parameters) {
  switch (parameters.batch.rounds) {
    case 10: return launch_rounds<Tables, 10>(device, stream, choice, parameters);
    case 12: return launch_rounds<Tables, 12>(device, stream, choice, parameters);
    default: return launch_rounds<Tables, 14>(device, stream, choice, parameters);
  }
}

}  // namespace

void run_serial_batch(const Device& device, Stream stream, Mode mode, const SerialChoice& choice,
                      const SerialBatch& batch) {
  const SerialParameters parameters{batch, feedback_of(mode), choice.text == SerialText::staged};
  choice.layout == TableLayout::tables_128 ? launch_layout<Tables128>(device, stream, choice, parameters)
                                           : launch_layout<Tables64>(device, stream, choice, parameters);
}

}  // namespace warpcipher::cuda::lane_table
