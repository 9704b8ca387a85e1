// SPDX-License-Identifier: Apache-2.0
// A warp takes up to 32 neighbouring messages, from their keys to their tags:
//
//   a lane a message     one-time key, powers of r, AAD                                 to shared memory
//   2^log lanes each     text, a block of ChaCha20 a lane; its ciphertext is hashed     sums to shared memory
//   a lane a message     joins the sums, and settles the tag
//
// Lane j of a message has its blocks j, j + 2^log, ..., so it goes from one to the next by r^(4 (2^log - 1) + 1). The
// messages of a warp have the same log, the best for their lengths.
#include "cipher/poly1305.hpp"
#include "engine/cuda/chacha/derive.cuh"
#include "engine/cuda/chacha/elements.cuh"
#include "engine/cuda/chacha/launches.hpp"
#include "engine/cuda/ghash/view.cuh"
#include "engine/cuda/inputs/message_view.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::chacha {

// Numbers modulo 2^130 - 5 as words in lanes (cipher/poly1305.hpp).
using poly1305::Multiplier;
using poly1305::Number;
using poly1305::to_element;
using poly1305::to_number;

__device__ __forceinline__ Block clamp(const Block& r) {
  return {{r.words[0] & 0x0fffffff, r.words[1] & 0x0ffffffc, r.words[2] & 0x0ffffffc, r.words[3] & 0x0ffffffc}};
}

__device__ __forceinline__ void add_block(Number& x, const Block& b, std::uint32_t high) {
  x = poly1305::add(x, b.words, high);
}

// Dynamic: the records of each warp.
extern __shared__ uint4 shared_records[];

namespace {

constexpr std::uint32_t threads = 128;
constexpr std::uint32_t blocks_of_multiprocessor = 5;  // more of them leave less of the L1 cache
constexpr std::uint32_t warp_log = 5;
constexpr std::uint32_t sums_of_message = 4;
constexpr std::uint64_t most_aad_blocks_of_lane = 8;
// Messages of a warp have about so many blocks in all, or there are 32: the work for each warp's messages by a lane
// each does not count then.
constexpr std::uint64_t blocks_of_warp = 2048;

// A warp's record of a message: vectors of 16 bytes, neighbours' side by side, so that neither 32 lanes
// with one of each message nor groups of lanes with one of some messages meet in a bank.
struct Record {
  static constexpr std::uint32_t stream = 0;  // KeyStream
  static constexpr std::uint32_t r = 6;
  static constexpr std::uint32_t s = 7;
  static constexpr std::uint32_t step = 8;    // r^(4 (2^log - 1) + 1): limbs 0 to 3
  static constexpr std::uint32_t fourth = 9;  // r^4
  static constexpr std::uint32_t aad = 10;    // its sum: words 0 to 3
  static constexpr std::uint32_t rest = 11;   // limb 4 of both powers, and word 4 of the sum
  static constexpr std::uint32_t count = 12;
  // Later, in place of the stream: the sums of lanes, as Numbers; then their words 4.
  static constexpr std::uint32_t sums = 0;
  static constexpr std::uint32_t rest_of_sums = sums_of_message;

  uint4* vectors;
  std::uint32_t index;  // of the message in the warp

  __device__ __forceinline__ uint4& at(std::uint32_t vector) const { return vectors[vector * warp_len + index]; }
  __device__ __forceinline__ std::uint32_t* words(std::uint32_t vector) const {
    return reinterpret_cast<std::uint32_t*>(&at(vector));
  }
  __device__ __forceinline__ Element power(std::uint32_t vector) const {
    const uint4 v = at(vector);
    return {{v.x, v.y, v.z, v.w, words(rest)[vector - step]}};
  }
  __device__ __forceinline__ Number aad_sum() const { return number(aad, words(rest)[2]); }
  __device__ __forceinline__ Number number(std::uint32_t vector, std::uint32_t last) const {
    const uint4 v = at(vector);
    return {{v.x, v.y, v.z, v.w, last}};
  }
  __device__ __forceinline__ void set_sum(std::uint32_t i, const Number& x) const {
    at(sums + i) = make_uint4(x.words[0], x.words[1], x.words[2], x.words[3]);
    words(rest_of_sums)[i] = x.words[4];
  }
};

struct SharedStream {
  const Record& record;

  __device__ __forceinline__ std::uint32_t key(int i) const { return record.words(i / 4)[0]; }
  __device__ __forceinline__ uint4 vector(int i) const { return record.at(i); }
};

__device__ __forceinline__ std::uint64_t blocks_of(std::uint64_t len) { return (len + block_len - 1) / block_len; }

// The log2 of the lanes of each message for which the warp takes the fewest turns. blocks: of the lane's message, or 0.
__device__ __forceinline__ std::uint32_t choose_log(std::uint32_t blocks) {
  std::uint32_t best = 0, least = 0xffffffffu;
  for (std::uint32_t log = 0; log <= warp_log; ++log) {
    // In eighths of the turn of a block for each lane. A lane that has a message to itself takes longer: its 64 bytes
    // have no neighbours. And the other costs of a message: powers for more than four lanes are not at hand.
    const std::uint32_t turn = log == 0 ? 17 : log == 1 ? 9 : 8;
    std::uint32_t cost = ((blocks + (1u << log) - 1) >> log) * turn + (blocks != 0 ? log > 2 ? 6 : 1 : 0);
    for (std::uint32_t mask = 1; mask < warp_len; mask *= 2) {
      const std::uint32_t other = from_lane_xor(cost, mask);
      cost = mask >= warp_len >> log ? cost + other : cost > other ? cost : other;
    }
    if (cost > least) continue;
    best = log;
    least = cost;
  }
  return best;
}

// The bytes from `len` on become zeros.
__device__ __forceinline__ void clear_from(Text64& text, std::uint32_t len) {
  const auto kept = [&](std::uint32_t word, std::uint32_t at) {
    const std::uint32_t bytes = len > at ? len - at : 0;
    return bytes >= 4 ? word : word & ((1u << 8 * bytes) - 1);
  };
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    uint4& v = text.quarters[i];
    v = make_uint4(kept(v.x, 16 * i), kept(v.y, 16 * i + 4), kept(v.z, 16 * i + 8), kept(v.w, 16 * i + 12));
  }
}

// Derived by a lane for its message.
__device__ __forceinline__ void prepare_message(const Messages& all, std::uint32_t message, std::uint32_t log,
                                                const Record& record) {
  const HashView& hash_view = all.hash_views[message];
  const Derived derived(all.keys, all.views[message], all.form, &hash_view);
  derived.store_stream([&](int v, const uint4& vector) { record.at(Record::stream + v) = vector; });
  Block half, s;
  derived.one_time_key(half, s);
  const Block r = clamp(half);
  record.at(Record::r) = to_vector(r);
  record.at(Record::s) = to_vector(s);
  Number aad{};
  if (hash_view.aad_blocks() <= most_aad_blocks_of_lane) {
    const Multiplier multiplier(r.words);
#pragma unroll 1
    for (std::uint64_t i = 0; i < hash_view.aad_blocks(); ++i) {
      add_block(aad, ghash::load_block(hash_view.aad, hash_view.aad_len, i), 1);
      aad = multiply(aad, multiplier);
    }
  }
  record.at(Record::aad) = make_uint4(aad.words[0], aad.words[1], aad.words[2], aad.words[3]);
  Element step = to_element(r, 0);
  const Element second = multiply(step, step);
  const Element fourth = multiply(second, second);
  Element next = fourth;
#pragma unroll 1
  for (std::uint32_t i = 0; i < log; ++i) {
    step = multiply(step, next);
    next = multiply(next, next);
  }
  record.at(Record::step) = make_uint4(step.limbs[0], step.limbs[1], step.limbs[2], step.limbs[3]);
  record.at(Record::fourth) = make_uint4(fourth.limbs[0], fourth.limbs[1], fourth.limbs[2], fourth.limbs[3]);
  record.at(Record::rest) = make_uint4(step.limbs[4], fourth.limbs[4], aad.words[4], 0);
}

// AAD that is too long for a lane, by the warp.
__device__ __forceinline__ void sum_long_aad(const Messages& all, std::uint32_t message, const Record& record) {
  const HashView& view = all.hash_views[message];
  const LanePowers powers = make_lane_powers(to_element(to_block(record.at(Record::r)), 0), lane_index(), warp_log);
  const Element sum = sum_by_lanes(view.aad_blocks(), lane_index(), warp_log, powers, [&](std::uint64_t i) {
    return to_element(ghash::load_block(view.aad, view.aad_len, i), 1);
  });
  if (lane_index() != 0) return;
  const Number aad = to_number(sum);
  record.at(Record::aad) = make_uint4(aad.words[0], aad.words[1], aad.words[2], aad.words[3]);
  record.words(Record::rest)[2] = aad.words[4];
}

// The blocks of a lane, from its first on; `sum` continues with the hash.
template <bool Encrypting>
__device__ __forceinline__ void run_blocks(const MessageView& view, std::uint64_t len, std::uint32_t lane,
                                           std::uint32_t log, const Record& record, Number& sum) {
  const std::uint32_t stride = block_len << log;
  const std::uint8_t* in = global(view.in) + block_len * lane;
  std::uint8_t* out = global(view.out) + block_len * lane;
  const bool aligned = are_aligned(in, out);
  std::uint32_t counter = 1 + lane;
#pragma unroll 1
  for (std::uint64_t offset = block_len * lane; offset < len; offset += stride) {
    const std::uint32_t here = cut_to_32_bits(len - offset);
    Text64 text = load_text(in, here, aligned);
    std::uint32_t x[16];
    make_key_stream<1>(SharedStream{record}, counter, x);
    if constexpr (Encrypting) {
      add_key_stream(text, x);
      if (here < block_len) clear_from(text, here);
      store_text(out, here, aligned, text);
    }
    const Multiplier multiplier(to_block(record.at(Record::r)).words);
    add_block(sum, to_block(text.quarters[0]), 1);
#pragma unroll
    for (std::uint32_t i = 1; i < hash_blocks_of_block; ++i) {
      if (here <= 16 * i) break;
      sum = multiply(sum, multiplier);
      add_block(sum, to_block(text.quarters[i]), 1);
    }
    if (here > stride) sum = multiply(sum, record.power(Record::step));
    if constexpr (!Encrypting) {
      add_key_stream(text, x);
      store_text(out, here, aligned, text);
    }
    in += stride;
    out += stride;
    counter += 1u << log;
  }
}

// Texts of the messages, 2^log lanes each.
template <bool Encrypting>
__device__ __forceinline__ void run_texts(const Messages& all, std::uint32_t first, std::uint32_t count,
                                          std::uint32_t log, uint4* vectors) {
  const std::uint32_t lanes = 1u << log, at_once = warp_len >> log;
  const std::uint32_t lane = lane_index() % lanes;
#pragma unroll 1
  for (std::uint32_t begin = 0; begin < count; begin += at_once) {
    const Record record{vectors, begin + lane_index() / lanes};
    const bool is_there = record.index < count;
    const MessageView& view = all.views[first + (is_there ? record.index : 0)];
    const std::uint64_t len = is_there ? view.in_len : 0;
    Number sum{};
    if (is_there && lane == 0) sum = record.aad_sum();
    run_blocks<Encrypting>(view, len, lane, log, record, sum);
    // The lanes before the last one, from 0 for that on.
    const std::uint32_t last = len == 0 ? 0 : static_cast<std::uint32_t>(blocks_of(len)) - 1;
    const std::uint32_t before = (last - lane) % lanes;
    Number others{};
    if (log > 2) {
      Element factor = one(), power = record.power(Record::fourth);
      if (!is_there) power = one();
#pragma unroll 1
      for (std::uint32_t i = 0; i < log; ++i) {
        if (((before - 1) >> i & 1) != 0) factor = multiply(factor, power);
        power = multiply(power, power);
      }
      others = to_number(sum_of_lanes(before == 0 ? Element{} : multiply(to_element(sum), factor), log));
    }
    __syncwarp();  // the stream has been read
    if (!is_there) continue;
    if (log > 2) {
      if (before < sums_of_message) record.set_sum(before, before == 0 ? sum : before == 1 ? others : Number{});
    } else {
      for (std::uint32_t i = before; i < sums_of_message; i += lanes) record.set_sum(i, i == before ? sum : Number{});
    }
  }
}

// The hash of a message: of its lanes' sums, of which one lane's is the last, and of its lengths.
__device__ __forceinline__ Number join_sums(const HashView& view, const Record& record) {
  const Multiplier multiplier(to_block(record.at(Record::r)).words);
  const uint4 rest = record.at(Record::rest_of_sums);
  Number hash{};
  if (view.text_len != 0) {
    const Element power = record.power(Record::fourth);
    Element sum = to_element(record.number(Record::sums + 3, rest.w));
    sum = multiply_add(sum, power, to_element(record.number(Record::sums + 2, rest.z)));
    hash = to_number(multiply_add(sum, power, to_element(record.number(Record::sums + 1, rest.y))));
    const std::uint32_t hash_blocks = (static_cast<std::uint32_t>(view.text_len - 1) % block_len) / 16 + 1;
#pragma unroll 1
    for (std::uint32_t i = 0; i < hash_blocks; ++i) hash = multiply(hash, multiplier);
  }
  const Number last = record.number(Record::sums, rest.x);
  add_block(hash, {{last.words[0], last.words[1], last.words[2], last.words[3]}}, last.words[4]);
  hash = poly1305::fold(hash);
  if (view.text_len != 0) hash = multiply(hash, multiplier);
  const std::uint64_t aad_len = view.aad_len, text_len = view.text_len;
  add_block(hash,
            {{static_cast<std::uint32_t>(aad_len), static_cast<std::uint32_t>(aad_len >> 32),
              static_cast<std::uint32_t>(text_len), static_cast<std::uint32_t>(text_len >> 32)}},
            1);
  return multiply(hash, multiplier);
}

__device__ __forceinline__ void settle_tag(const Messages& all, std::uint32_t message, const Record& record) {
  const HashView& view = all.hash_views[message];
  Block tag;
  poly1305::make_tag(join_sums(view, record), to_block(record.at(Record::s)).words, tag.words);
  std::uint8_t* const given = global(view.tag);
  const bool aligned = reinterpret_cast<std::uintptr_t>(given) % 16 == 0;
  if (all.verdicts == nullptr) {
    if (aligned) {
      *reinterpret_cast<uint4*>(given) = to_vector(tag);
    } else {
      store_bytes(given, 16, tag);
    }
    return;
  }
  const Block difference = tag ^ (aligned ? load_aligned(given) : load_bytes(given, 16));
  all.verdicts[message] =
      (difference.words[0] | difference.words[1] | difference.words[2] | difference.words[3]) == 0 ? 1 : 0;
}

// Zeros in place of texts whose tag is wrong.
__device__ __forceinline__ void wipe_forged(const Messages& all, std::uint32_t first, std::uint32_t count) {
  __syncwarp();
  const auto* const verdicts = const_cast<const volatile std::uint32_t*>(all.verdicts);
  std::uint32_t forged = lanes_with(lane_index() < count && verdicts[first + lane_index()] == 0);
  for (; forged != 0; forged &= forged - 1) {
    const MessageView& view = all.views[first + static_cast<std::uint32_t>(__ffs(static_cast<int>(forged))) - 1];
    std::uint8_t* const out = global(view.out);
    const bool aligned = reinterpret_cast<std::uintptr_t>(out) % 16 == 0;
    for (std::uint64_t i = block_len * lane_index(); i < view.in_len; i += block_len * warp_len) {
      store_text(out + i, cut_to_32_bits(view.in_len - i), aligned, Text64{});
    }
  }
}

// at_once: messages of a warp, a power of two.
template <bool Encrypting>
__global__ void __launch_bounds__(threads, blocks_of_multiprocessor)
    run_messages_kernel(const __grid_constant__ Messages all, std::uint32_t at_once,
                        const __grid_constant__ Speculation speculation) {
  if (!may_start(speculation)) return;
  uint4* const vectors = shared_records + warp_index() * Record::count * warp_len;
  const Record own{vectors, lane_index()};
  const std::uint64_t stride = std::uint64_t{gridDim.x} * (threads / warp_len) * at_once;
  for (std::uint64_t begin = (std::uint64_t{blockIdx.x} * (threads / warp_len) + warp_index()) * at_once;
       begin < all.messages; begin += stride) {
    const auto first = static_cast<std::uint32_t>(begin);
    const std::uint32_t count = all.messages - first < at_once ? all.messages - first : at_once;
    const std::uint32_t message = first + lane_index();
    const bool is_there = lane_index() < count;
    const std::uint32_t log =
        choose_log(is_there ? static_cast<std::uint32_t>(blocks_of(all.views[message].in_len)) : 0);
    if (is_there) prepare_message(all, message, log, own);
    std::uint32_t long_aad = lanes_with(is_there && all.hash_views[message].aad_blocks() > most_aad_blocks_of_lane);
    for (; long_aad != 0; long_aad &= long_aad - 1) {
      __syncwarp();
      const auto index = static_cast<std::uint32_t>(__ffs(static_cast<int>(long_aad))) - 1;
      sum_long_aad(all, first + index, {vectors, index});
    }
    __syncwarp();
    run_texts<Encrypting>(all, first, count, log, vectors);
    __syncwarp();
    if (is_there) settle_tag(all, message, own);
    if (!Encrypting && all.verdicts != nullptr) wipe_forged(all, first, count);
    __syncwarp();  // the records are written again
  }
  // They still have one-time keys and powers of r.
  for (std::uint32_t i = lane_index(); i < Record::count * warp_len; i += warp_len) vectors[i] = {};
}

}  // namespace

void run_messages(const Device& device, Stream stream, const Messages& messages, std::uint64_t blocks, bool encrypting,
                  const Speculation& speculation) {
  if (messages.messages == 0) return;
  const std::uint64_t warps = std::uint64_t{device.multiprocessors} * blocks_of_multiprocessor * (threads / warp_len);
  std::uint32_t at_once = warp_len;
  while (at_once > 1 &&
         (messages.messages < warps * at_once || blocks * at_once > blocks_of_warp * messages.messages)) {
    at_once /= 2;
  }
  const LaunchConfiguration configuration{
      static_cast<std::uint32_t>((std::uint64_t{messages.messages} + at_once * (threads / warp_len) - 1) /
                                 (at_once * (threads / warp_len))),
      threads, (threads / warp_len) * Record::count * warp_len * sizeof(uint4)};
  encrypting ? launch(&run_messages_kernel<true>, configuration, stream, messages, at_once, speculation)
             : launch(&run_messages_kernel<false>, configuration, stream, messages, at_once, speculation);
}

}  // namespace warpcipher::cuda::chacha
