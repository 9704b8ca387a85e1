// SPDX-License-Identifier: Apache-2.0
// AES by lane tables (table_layout.hpp draws them): filling the tables, looking up, and the rounds of FIPS 197 over
// them.
#pragma once

#include "cipher/aes_tables.hpp"
#include "engine/cuda/aes/table_layout.hpp"
#include "engine/cuda/runtime/block.cuh"

namespace warpcipher::cuda::lane_table {

// Counter sharing: the interface to counter.cuh for consecutive counters.
// The byte in which neighbouring counters differ.
enum class CountingByte : std::uint8_t {
  last,   // byte 15: big-endian (SP 800-38A, SP 800-38D)
  first,  // byte 0: the first 32 bits count, little-endian (RFC 8452)
};

// The part of two rounds that blocks share which differ only in that byte. ShiftRows moves byte 15, and byte 0 too,
// into column 0 of round 1, and each of the four bytes of that column into another column of round 2:
//
//   round 1   column 0 = first_column ^ T3[byte 15 ^ its round key]       columns 1, 2, 3 are the same for all
//             column 0 = first_column ^ T0[byte 0 ^ its round key]        likewise
//   round 2   column c = second.words[c] ^ T[-c mod 4][byte -c mod 4 of column 0]
//
// So two rounds need 5 lookups for each block, not 32, and the first of them is the same in all tiles of a message.
struct CommonRounds {
  std::uint32_t first_column;
  Block second;
};

// The dynamic shared memory of the launch.
extern __shared__ uint4 shared_tables[];

// Where the tables begin in the block's shared memory, and the word at an address. Addresses are numbers, so that the
// beginning of the tables can be added in a sum that is computed anyway.
__device__ __forceinline__ std::uint32_t tables_address() {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared_tables));
#else
  return 1024;  // as on a GPU, where the driver reserves the first KiB
#endif
}
__device__ __forceinline__ std::uint32_t load_shared(std::uint32_t address) {
#if defined(__CUDA_ARCH__)
  return *static_cast<const std::uint32_t*>(__cvta_shared_to_generic(address));
#else
  return reinterpret_cast<const std::uint32_t*>(shared_tables)[(address - tables_address()) / 4];
#endif
}

struct TableZero {
  std::uint32_t words[256];
};

constexpr TableZero copy_table(const std::array<std::uint32_t, 256>& table) {
  TableZero copy{};
  for (std::size_t x = 0; x < 256; ++x) copy.words[x] = table[x];
  return copy;
}

static __device__ const TableZero encryption_table = copy_table(aes::te0);
static __device__ const TableZero decryption_table = copy_table(aes::td0);

// Every thread of the block takes part; the caller synchronises the block afterwards.
template <class Tables, bool Inverse>
__device__ __forceinline__ void fill_tables() {
  const TableZero& source = Inverse ? decryption_table : encryption_table;
  for (std::uint32_t i = threadIdx.x; i < Tables::shared_len / 16; i += blockDim.x) {
    const std::uint32_t x = (i << 4 >> Tables::stride_log) % 256;
    const std::uint32_t value = rotate_left(source.words[x], 8 * Tables::table_at(16 * i));
    shared_tables[i] = make_uint4(value, value, value, value);
  }
}

// Encrypts (or, Inverse, decrypts: section 5.3.5) N independent blocks of a lane at once. Key: a source's (source.cuh);
// round(r) gives the words of AddRoundKey number r in the order of use. Rounds: with 10 or 14 the rounds are unrolled,
// so that keys that are kernel parameters become operands of the logic; with 0 their number is read at run time.
template <class Tables, bool Inverse, int Rounds, class Key>
class LaneCipher {
 public:
  static constexpr bool key_in_registers = Key::in_registers;

  __device__ __forceinline__ LaneCipher(const Key& key, std::uint32_t rounds)
      : key_(key),
        rounds_(Rounds != 0 ? Rounds : rounds),
        lane_(4 * lane_index() + (Tables::stride_log == 8 ? 0 : tables_address())) {}

  template <int N>
  __device__ __forceinline__ void operator()(Block (&blocks)[N]) const {
    const Block first = key_.round(0);
#pragma unroll
    for (int n = 0; n < N; ++n) blocks[n] = blocks[n] ^ first;
    run_from<1>(blocks);
  }

  // SubWord of a key schedule (section 5.2).
  __device__ __forceinline__ std::uint32_t sub_word(std::uint32_t word) const {
    static_assert(!Inverse, "schedules use the S-box of encryption");
    const std::uint32_t bytes01 = byte_permute(look_up<0, 0>(word), look_up<1, 0>(word), 0x5151);
    const std::uint32_t bytes23 = byte_permute(look_up<2, 0>(word), look_up<3, 0>(word), 0x5151);
    return byte_permute(bytes01, bytes23, 0x5410);
  }

  // Rounds 1 and 2 of a block without the contribution of the byte that counts.
  template <CountingByte At = CountingByte::last>
  __device__ __forceinline__ CommonRounds common_rounds(const Block& block) const {
    static_assert(!Inverse, "counters are encrypted, whatever the direction of the message");
    const Block s = block ^ key_.round(0);
    const Block first = key_.round(1);
    const std::uint32_t t1 = first.words[1] ^ mix<0b1111>(s.words[1], s.words[2], s.words[3], s.words[0]);
    const std::uint32_t t2 = first.words[2] ^ mix<0b1111>(s.words[2], s.words[3], s.words[0], s.words[1]);
    const std::uint32_t t3 = first.words[3] ^ mix<0b1111>(s.words[3], s.words[0], s.words[1], s.words[2]);
    const Block missing{{mix<0b1110>(0, t1, t2, t3), mix<0b0111>(t1, t2, t3, 0), mix<0b1011>(t2, t3, 0, t1),
                         mix<0b1101>(t3, 0, t1, t2)}};
    constexpr unsigned rows = At == CountingByte::last ? 0b0111 : 0b1110;
    return {first.words[0] ^ mix<rows>(s.words[0], s.words[1], s.words[2], s.words[3]), missing ^ key_.round(2)};
  }

  // The contribution of the byte that counts to column 0 of round 1, for the N blocks whose byte is value ^ 32 n.
  template <CountingByte At = CountingByte::last, int N>
  __device__ __forceinline__ void counting_entries(std::uint32_t (&entries)[N], std::uint32_t value) const {
    static_assert(N <= 8, "a byte has room for eight rows of 32");
#pragma unroll
    for (std::uint32_t n = 0; n < N; ++n) entries[n] = counting_entry<At>(value ^ n << 5);
  }

  // The same for one block. Of `value` the lowest byte counts.
  template <CountingByte At = CountingByte::last>
  __device__ __forceinline__ std::uint32_t counting_entry(std::uint32_t value) const {
    if constexpr (At == CountingByte::last) {
      return entry<3>(address<3>(value << 24 ^ key_.round(0).words[3]));
    } else {
      return entry<0>(address<0>(value ^ key_.round(0).words[0]));
    }
  }

  // Encrypts N blocks that share `common` and differ in the byte that counts, whose contribution is entries[n].
  template <int N>
  __device__ __forceinline__ void encrypt_rest(Block (&blocks)[N], const CommonRounds& common,
                                               const std::uint32_t (&entries)[N]) const {
#pragma unroll
    for (int n = 0; n < N; ++n) blocks[n] = after_common(common, entries[n]);
    encrypt_rest(blocks);
  }

  // A block after two rounds.
  __device__ __forceinline__ Block after_common(const CommonRounds& common, std::uint32_t entry) const {
    const std::uint32_t v = common.first_column ^ entry;
    return common.second ^ Block {
      { mix<0b0001>(v, v, v, v), mix<0b1000>(v, v, v, v), mix<0b0100>(v, v, v, v), mix<0b0010>(v, v, v, v) }
    };
  }

  // The rounds after after_common().
  template <int N>
  __device__ __forceinline__ void encrypt_rest(Block (&blocks)[N]) const {
    run_from<3>(blocks);
  }

 private:
  // The rounds from number First, which is odd; so are those before the last, whatever the key's length.
  template <std::uint32_t First, int N>
  __device__ __forceinline__ void run_from(Block (&blocks)[N]) const {
    if constexpr (Rounds != 0 && (N > 1 || Key::in_registers)) {  // a single block is not worth the code
#pragma unroll
      for (std::uint32_t r = First; r < Rounds; ++r) round(blocks, key_.round(r));
    } else {
#pragma unroll 1
      for (std::uint32_t r = First; r < rounds_ - 1; r += 2) {
        round(blocks, key_.round(r));
        round(blocks, key_.round(r + 1));
      }
      round(blocks, key_.round(rounds_ - 1));
    }
    last_round(blocks, key_.round(rounds_));
  }

  // The address of the lane's copies for byte `Byte` of the word.
  template <std::uint32_t Byte>
  __device__ __forceinline__ std::uint32_t address(std::uint32_t word) const {
    if constexpr (Tables::stride_log == 8) {
      return byte_permute(word, lane_, 0x5504u | Byte << 4);
    } else {
      return dot_product(word, 128u << 8 * Byte, lane_);
    }
  }

  // The entry at an address in table Table; with one plane Table is 0 or 1.
  template <std::uint32_t Table>
  __device__ __forceinline__ std::uint32_t load(std::uint32_t address) const {
    static_assert(Table / 2 < Tables::planes, "this layout has no such table");
    if constexpr (Tables::stride_log == 8) {
      return *reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const char*>(shared_tables) + address +
                                                     Tables::offset(Table));
    } else {
      return load_shared(address + Tables::offset(Table));
    }
  }

  // The same for T_Row, which may be computed from another table.
  template <std::uint32_t Row>
  __device__ __forceinline__ std::uint32_t entry(std::uint32_t address) const {
    if constexpr (Row / 2 < Tables::planes) {
      return load<Row>(address);
    } else {
      return byte_permute(load<Row - 2>(address), 0, 0x1032);
    }
  }

  // T_Table[byte `Byte` of the word].
  template <std::uint32_t Byte, std::uint32_t Table>
  __device__ __forceinline__ std::uint32_t look_up(std::uint32_t word) const {
    return load<Table>(address<Byte>(word));
  }

  // The XOR of T_r[byte r of the r-th word] over the rows r whose bit in Rows is set.
  template <unsigned Rows>
  __device__ __forceinline__ std::uint32_t mix(std::uint32_t row0, std::uint32_t row1, std::uint32_t row2,
                                               std::uint32_t row3) const {
    std::uint32_t rows01 = 0;
    std::uint32_t rows23 = 0;
    constexpr std::uint32_t table = Tables::planes == 2 ? 2 : 0;
    if constexpr ((Rows & 1) != 0) rows01 ^= look_up<0, 0>(row0);
    if constexpr ((Rows & 2) != 0) rows01 ^= look_up<1, 1>(row1);
    if constexpr ((Rows & 4) != 0) rows23 ^= look_up<2, table>(row2);
    if constexpr ((Rows & 8) != 0) rows23 ^= look_up<3, table + 1>(row3);
    if constexpr (Tables::planes == 1 && (Rows & 12) != 0) rows23 = byte_permute(rows23, 0, 0x1032);
    return rows01 ^ rows23;
  }

  // ShiftRows takes row r of column c from column c + r, InvShiftRows from c - r.
  static constexpr int source(int column, int row) { return (column + (Inverse ? 4 - row : row)) % 4; }

  template <int N>
  __device__ __forceinline__ void round(Block (&blocks)[N], const Block& key) const {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const Block& s = blocks[n];
      Block next;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        next.words[c] =
            mix<0b1111>(s.words[c], s.words[source(c, 1)], s.words[source(c, 2)], s.words[source(c, 3)]) ^ key.words[c];
      }
      blocks[n] = next;
    }
  }

  // No MixColumns: the bare S-box value is byte 1 of an entry of te0, and the XOR of the bytes of an entry of td0.
  template <int N>
  __device__ __forceinline__ void last_round(Block (&blocks)[N], const Block& key) const {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const Block& s = blocks[n];
      Block next;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const std::uint32_t row0 = look_up<0, 0>(s.words[c]);
        const std::uint32_t row1 = look_up<1, 0>(s.words[source(c, 1)]);
        const std::uint32_t row2 = look_up<2, 0>(s.words[source(c, 2)]);
        const std::uint32_t row3 = look_up<3, 0>(s.words[source(c, 3)]);
        if constexpr (Inverse) {
          const std::uint32_t rows01 = byte_permute(row0, row1, 0x5140) ^ byte_permute(row0, row1, 0x7362);
          const std::uint32_t rows23 = byte_permute(row2, row3, 0x5140) ^ byte_permute(row2, row3, 0x7362);
          next.words[c] = byte_permute(rows01, rows23, 0x5410) ^ byte_permute(rows01, rows23, 0x7632) ^ key.words[c];
        } else {
          const std::uint32_t rows01 = byte_permute(row0, row1, 0x5151);
          const std::uint32_t rows23 = byte_permute(row2, row3, 0x5151);
          next.words[c] = byte_permute(rows01, rows23, 0x5410) ^ key.words[c];
        }
      }
      blocks[n] = next;
    }
  }

  const Key& key_;
  const std::uint32_t rounds_;
  const std::uint32_t lane_;  // added to addresses; if these are sums, it includes where the tables begin
};

}  // namespace warpcipher::cuda::lane_table
