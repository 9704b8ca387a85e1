// SPDX-License-Identifier: Apache-2.0
// The AES kernels of the family, the host's choices before it launches one, and each one's needs of a device.
// choose.hpp chooses. Host code only, so that the choice can be tested without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cuda/aes/table_layout.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"

namespace warpcipher::cuda::lane_table {

// --- The parallel modes, and the host's parameters of each in addition to messages and keys (modes.cuh).
inline constexpr std::uint32_t blocks_in_flight = 4;  // of a lane

template <bool Inverse>
struct EcbMode;
using EcbEncryption = EcbMode<false>;
using EcbDecryption = EcbMode<true>;
struct CbcDecryption;
struct CfbDecryption;
struct Cfb8Decryption;
struct CounterMode;
struct KeyStreamMode;
struct LittleEndianCounterMode;
struct UnalignedCounterMode;  // of texts at any address
struct UnalignedLittleEndianCounterMode;
template <bool Inverse>
struct XtsMode;

struct NoParameters {};

struct ChainParameters {
  const Block* saved_ciphertext;  // the block before each tile of the group; nullptr: still in `in`
};

struct CounterParameters {
  bool wrap_32;                   // inc32 of SP 800-38D rather than a counter of the whole block (CounterMode)
  const std::uint32_t* verdicts;  // of each message: 0 writes zeros in place of text; nullptr: all are good
  std::uint32_t stride = 1;       // from one tile of a warp to its next in the message

  void set_stride(std::uint64_t tiles) { stride = static_cast<std::uint32_t>(tiles); }
};

// The counting part of a counter block.
enum class CounterForm : std::uint8_t {
  block,       // all of it, big-endian (SP 800-38A, appendix B)
  last_word,   // the last 32 bits, big-endian (inc32: SP 800-38D, section 6.2)
  first_word,  // the first 32 bits, little-endian (RFC 8452, section 4)
};

// Where a kernel finds round keys.
enum class KeySource : std::uint8_t {
  parameter,   // one key, a kernel parameter
  bytes,       // the keys' bytes in device memory: the kernel makes the round keys
  round_keys,  // in device memory
};

// Counter mode of a batch.
enum class CounterKernel : std::uint8_t {
  hybrid_packed,  // short messages of one length, several to a tile (hybrid_packed_sm90a.cu)
  packed,         // short messages, several to a warp (packed.cuh)
  hybrid,         // tiles, by tables and by logic at once (hybrid_batch_sm90a.cu)
  tiles,          // (counter.cuh)
};

struct CounterChoice {
  TableLayout layout = TableLayout::tables_128;
  CounterKernel kernel = CounterKernel::tiles;
  KeySource keys = KeySource::round_keys;
  std::uint32_t group_log = 0;  // packed: log2 of the lanes that share a message

  bool operator==(const CounterChoice&) const = default;
};

// Text of a parallel mode: one message, or a batch that is not in counter mode.
enum class TextKernel : std::uint8_t {
  hybrid,  // (hybrid_text.cuh, hybrid_counter_sm90a.cu)
  tiles,   // (parallel.cuh)
};

struct TextChoice {
  TableLayout layout = TableLayout::tables_128;
  TextKernel kernel = TextKernel::tiles;

  bool operator==(const TextChoice&) const = default;
};

// Data units of XTS that may follow each other.
enum class SectorKernel : std::uint8_t {
  rows,   // as one text (hybrid_rows_sm90a.cu)
  batch,  // as any other batch
};

// Warps of a block of the serial kernel.
enum class SerialWarps : std::uint8_t { twelve, sixteen };

enum class SerialText : std::uint8_t {
  staged,  // text passes through shared memory, in whole cache lines
  direct,
};

struct SerialChoice {
  TableLayout layout = TableLayout::tables_128;
  SerialWarps warps = SerialWarps::twelve;
  SerialText text = SerialText::direct;

  bool operator==(const SerialChoice&) const = default;
};

// Dynamic shared memory of a block of a hybrid kernel: tables and, after them, the count of tiles dealt out.
inline constexpr std::size_t hybrid_shared_len = Tables128ByProduct::shared_len + 16;

// Whether the device has hybrid kernels: they are compiled only for the compute capability on which they were measured.
inline bool has_hybrid(const Device& device) {
  return device.major == 9 && device.minor == 0 && device.multiprocessors > 1 && device.shared_len >= hybrid_shared_len;
}

// The most blocks of a message for hybrid_packed.
inline constexpr std::uint64_t most_units_of_hybrid_packed = 256;

// Longer messages are cut into tiles, which several warps share. 131,072 messages of 512 blocks on an H200, packed and
// as tiles: with one key 1.34 and 1.32 ms (hybrid kernel: 1.22), with a key each 1.49 and 1.39 ms.
inline constexpr std::uint64_t most_units_of_packed = 511;
// A group of lanes that takes a message much longer than the others keeps the launch waiting.
inline constexpr std::uint64_t most_steps_of_packed = 64;

// log2 of the lanes that take a message of the average length in one step.
constexpr std::uint32_t group_log_for(std::uint64_t units, std::uint64_t messages) {
  const std::uint64_t average = (units + messages - 1) / messages;
  std::uint32_t log = 0;
  while (log < 5 && (std::uint64_t{blocks_in_flight} << log) < average) ++log;
  return log;
}

// Blocks of a message in a batch that is packed.
constexpr std::uint64_t most_packed_units(std::uint32_t group_log) {
  const std::uint64_t most = most_steps_of_packed * blocks_in_flight << group_log;
  return most < most_units_of_packed ? most : most_units_of_packed;
}

inline constexpr std::uint64_t row_len = 16 * 32;  // bytes: a block for each lane of a warp
inline constexpr std::uint64_t tile_len = 16 * tile_units;

// Serial kernel, AES-128: with 16 warps a thread has 128 registers, enough for its round keys. With 12 warps it has
// 168: more than AES-128 needs, and as many as longer keys can get.
constexpr std::uint32_t count_of(SerialWarps warps) { return warps == SerialWarps::twelve ? 12 : 16; }
inline constexpr std::uint32_t serial_chunk_len = 128;                     // of each message: a cache line
inline constexpr std::uint32_t serial_staged_len = 32 * serial_chunk_len;  // of a warp

// The warps whose text fits in shared memory after the tables.
inline std::uint32_t count_staged_warps(const Device& device, TableLayout layout) {
  const std::size_t tables = layout == TableLayout::tables_128 ? Tables128::shared_len : Tables64::shared_len;
  return static_cast<std::uint32_t>((device.shared_len - tables) / serial_staged_len);
}

// How short messages share a tile of hybrid_packed, which draws it.
struct PackedLayout {
  static constexpr std::uint32_t most_messages = 16;  // two lanes each

  std::uint32_t of_message;  // U
  std::uint32_t messages;    // M
  std::uint32_t reciprocal;  // of U: the message of a place is then a product

  explicit WARPCIPHER_HD constexpr PackedLayout(std::uint32_t most_units)
      : of_message(most_units),
        messages(tile_units / most_units < most_messages ? tile_units / most_units : most_messages),
        reciprocal((0x10000u + most_units - 1) / most_units) {}

  WARPCIPHER_HD constexpr std::uint32_t tiles(std::uint32_t of) const { return (of + messages - 1) / messages; }
  WARPCIPHER_HD constexpr std::uint32_t message_at(std::uint32_t place) const { return place * reciprocal >> 16; }
};

}  // namespace warpcipher::cuda::lane_table
