// SPDX-License-Identifier: Apache-2.0
// Children of seeds, and trees. A tree is grown in passes of some levels; nodes are in memory only between passes.
// At the top, where nodes are few, each lane of the first pass finds its own from the root.
//
// In a pass a warp takes 32 nodes that follow each other, one a lane, and goes down depth first with batches of 32: of
// the 64 children of a batch it takes the first half further down, and keeps the second in shared memory for later. So
// lanes always have neighbours, and store lines that are whole.
#include <algorithm>
#include <memory>

#include "core/error.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"
#include "prg/cuda/generators.cuh"
#include "prg/cuda/hybrid_expand.hpp"
#include "prg/cuda/launches.hpp"
#include "prg/cuda/walk.hpp"

namespace warpcipher::prg::cuda {
namespace {

using ::warpcipher::cuda::StreamBuffer, ::warpcipher::cuda::Upload;

constexpr int most_levels = 6;                           // of a pass
constexpr std::size_t batch_len = warp_len * block_len;  // in shared memory, for each warp and level

template <class G, int Children>
__global__ void __launch_bounds__(G::threads, 1)
    expand_kernel(const __grid_constant__ FixedSchedules fixed, const std::uint8_t* seeds, std::uint64_t count,
                  std::uint8_t* out) {
  G::begin();
  const std::uint64_t stride = std::uint64_t{gridDim.x} * G::threads;
#pragma unroll 1
  for (std::uint64_t i = lane_of_launch(); i < count; i += stride) {
    Block children[Children];
    G::template make<0, Children>(fixed, load_aligned(seeds + block_len * i), children);
#pragma unroll
    for (int c = 0; c < Children; ++c) store_block(out + block_len * (Children * i + c), children[c]);
  }
}

struct Pass {
  const std::uint8_t* nodes;
  std::uint64_t stride;  // bytes from node to node
  int start;             // levels down to the pass's first, which each lane finds its own way
  std::uint64_t count;   // of the first level
  int levels;            // 1 or more
  std::uint8_t* out;
  // Of point functions: the first level has 2^first nodes of each key.
  const std::uint8_t* records;
  Layout layout;
  int first;
  bool finishes;  // writes the leaves' output in their place
};

template <class G, bool Keys>
__device__ __forceinline__ void grow_node(const FixedSchedules& fixed, const Pass& pass, std::uint64_t index, int level,
                                          const Block& node, Block (&children)[2]) {
  if constexpr (Keys) {
    const std::uint64_t key = index >> (pass.first + level);
    grow<G>(fixed, global(pass.records) + pass.layout.len * key, pass.layout, pass.first + level, node, children);
  } else {
    G::template make<0, 2>(fixed, node, children);
  }
}

// Node `index` of the pass's first level, by its path from pass.nodes.
template <class G, bool Keys>
__device__ __forceinline__ Block find_node(const FixedSchedules& fixed, const Pass& pass, std::uint64_t index) {
  Block node = load_aligned(global(pass.nodes) + pass.stride * (index >> pass.start));
#pragma unroll 1
  for (int left = pass.start - 1; left >= 0; --left) {
    const std::uint32_t right = 0u - (static_cast<std::uint32_t>(index >> left) & 1);
    if constexpr (Keys) {
      const std::uint8_t* const record = global(pass.records) + pass.layout.len * (index >> pass.first);
      node = grow_one<G>(fixed, record, pass.layout, pass.first - 1 - left, node, right);
    } else {
      node = G::make_one(fixed, node, right);
    }
  }
  return node;
}

template <class G, bool Keys>
__global__ void __launch_bounds__(G::threads, 1)
    pass_kernel(const __grid_constant__ FixedSchedules fixed, const __grid_constant__ Pass pass) {
  G::begin();
  // The warp's batches that wait, a slot a level; slot 0 is for the one that continues.
  Block* const slots = reinterpret_cast<Block*>(reinterpret_cast<std::uint8_t*>(shared_tables) + G::shared_len) +
                       warp_len * static_cast<std::uint32_t>(pass.levels) * warp_index();
  const std::uint32_t lane = lane_index();
  const int bottom = pass.levels - 1;  // the level whose children are written
  const std::uint64_t stride = std::uint64_t{gridDim.x} * G::threads;
#pragma unroll 1
  for (std::uint64_t first = lane_of_launch() - lane; first < pass.count; first += stride) {
    Block node{};
    if (first + lane < pass.count) node = find_node<G, Keys>(fixed, pass, first + lane);
    int level = 0;
#pragma unroll 1
    for (std::uint32_t batch = 0; batch >> bottom == 0; ++batch) {
      if (batch != 0) {
        level = bottom - (__ffs(static_cast<int>(batch)) - 1);
        node = slots[warp_len * static_cast<std::uint32_t>(level) + lane];
        __syncwarp();
      }
      // The batch's first node in its level.
      std::uint64_t index = (first << level) + warp_len * (batch >> (bottom - level)) + lane;
      Block children[2];
      bool is_there;
#pragma unroll 1
      while (true) {
        is_there = index < pass.count << level;
        grow_node<G, Keys>(fixed, pass, is_there ? index : 0, level, node, children);
        if (level == bottom) break;
        const std::uint32_t half = lane / (warp_len / 2);
        Block* const to =
            slots + warp_len * (half == 0 ? 0 : static_cast<std::uint32_t>(level + 1)) + 2 * (lane % (warp_len / 2));
        to[0] = children[0];
        to[1] = children[1];
        __syncwarp();
        node = slots[lane];
        __syncwarp();
        index = 2 * (index - lane) + lane;
        ++level;
      }
      if constexpr (Keys) {
        if (pass.finishes) {
          const std::uint64_t key = (is_there ? index : 0) >> (pass.first + bottom);
          const std::uint8_t* const record = global(pass.records) + pass.layout.len * key;
#pragma unroll 1
          for (int c = 0; c < 2; ++c) {
            Block made[blocks_of<G>];
            finish<G>(fixed, record, pass.layout, c == 0 ? children[0] : children[1], made);
#pragma unroll
            for (int b = 0; is_there && b < blocks_of<G>; ++b) {
              store_block(global(pass.out) + block_len * (blocks_of<G> * (2 * index + c) + b), made[b]);
            }
          }
          continue;
        }
      }
      if (is_there) {
        store_block(global(pass.out) + 2 * block_len * index, children[0]);
        store_block(global(pass.out) + 2 * block_len * index + block_len, children[1]);
      }
    }
  }
  if (bottom == 0) return;  // there are no slots
  for (std::uint32_t l = 0; l < static_cast<std::uint32_t>(pass.levels); ++l) slots[warp_len * l + lane] = {};
}

// Where a path goes, and what of its end is written.
struct Paths {
  DeviceKeys keys;
  const std::uint64_t* at;  // nullptr: 0
  std::uint32_t each;       // paths of a key
  bool same;
  std::size_t len;  // bytes of out for each
  bool whole;       // the blocks' first bytes, not a value
  Layout layout{};
};

template <class G>
__global__ void __launch_bounds__(G::threads, 1)
    path_kernel(const __grid_constant__ FixedSchedules fixed, const __grid_constant__ Paths paths, std::uint8_t* out) {
  G::begin();
  const Domain& domain = paths.keys.domain;
  const int depth = domain.depth(), in_block = domain.bits - depth;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * G::threads, count = paths.keys.count * paths.each;
#pragma unroll 1
  for (std::uint64_t path = lane_of_launch(); path < count; path += stride) {
    const auto i = static_cast<std::uint32_t>(path);
    const std::uint8_t* const record = global(paths.keys.records) + paths.layout.len * (i / paths.each);
    const std::uint64_t point = paths.at == nullptr ? 0 : paths.at[paths.same ? i % paths.each : i];
    Block node = load_aligned(record);
#pragma unroll 1
    for (int level = 0; level < depth; ++level) {
      const auto right = static_cast<std::uint32_t>(point >> (domain.bits - 1 - level));
      node = grow_one<G>(fixed, record, paths.layout, level, node, 0u - (right & 1));
    }
    Block blocks[blocks_of<G>];
    finish<G>(fixed, record, paths.layout, node, blocks);
    // The value moves to the front. Its place is public, but an index that is not constant would put the block in local
    // memory, which nothing wipes.
    const auto place = static_cast<std::uint32_t>(point) & ((1u << in_block) - 1);
    Block made = blocks[0];
    if constexpr (G::correlated) {
      if (!paths.whole && place >> (domain.block_bits() - 1) != 0) made = blocks[1];
      if (paths.whole && paths.len > block_len) {
        store_block(out + paths.len * i + block_len, blocks[1]);
      }
    }
    const std::uint32_t first_bit = paths.whole                  ? 0
                                    : domain.group == Group::gf2 ? place
                                    : domain.group == Group::u32 ? 32 * place
                                                                 : 64 * place;
    if ((first_bit & 64) != 0) {
      made.words[0] = made.words[2];
      made.words[1] = made.words[3];
    }
    if ((first_bit & 32) != 0) made.words[0] = made.words[1];
    if (domain.group == Group::gf2) {
      const std::uint32_t bits = !paths.whole ? 1u : domain.bits < 5 ? 1u << domain.bits : 32u;
      made.words[0] = made.words[0] >> (first_bit % 32) & (bits < 32 ? (1u << bits) - 1 : ~0u);
    }
    store_bytes(out + paths.len * i, static_cast<std::uint32_t>(paths.len), made);
  }
}

// Levels of the next pass: as many as shared memory has room for, the longest passes last.
template <class G>
int choose_levels(const Device& device, int left) {
  const std::size_t room = device.shared_len - G::shared_len;
  const int most = std::clamp(static_cast<int>(room / (G::threads / warp_len * batch_len)), 1, most_levels);
  return left % most == 0 ? most : left % most;
}

// Grows `left` levels. The caller sets all of `pass` but levels, and `out` for the last pass.
template <class G, bool Keys>
void run_passes(const Device& device, Pass pass, int left, Stream stream) {
  std::uint8_t* const out = pass.out;
  const bool finishes = pass.finishes;
  std::unique_ptr<StreamBuffer> held;
  // Until there is work for half of all warps, which is enough.
  while (pass.start < left - 1 && pass.count < lanes_of<G>(device) / 2) {
    ++pass.start;
    pass.count *= 2;
  }
  pass.first = pass.start;
  left -= pass.start;
  while (left != 0) {
    pass.levels = choose_levels<G>(device, left);
    left -= pass.levels;
    std::unique_ptr<StreamBuffer> made;
    if (left != 0) made = std::make_unique<StreamBuffer>((pass.count << pass.levels) * block_len, stream);
    pass.out = left == 0 ? out : made->data();
    pass.finishes = left == 0 && finishes;
    // One level needs no slots: some GPUs have no room beside the tables.
    const std::size_t slots = pass.levels == 1 ? 0 : static_cast<std::size_t>(pass.levels) * (G::threads / warp_len);
    launch(&pass_kernel<G, Keys>, configuration_of<G>(device, pass.count, batch_len * slots), stream, fixed_schedules,
           pass);
    held = std::move(made);
    pass.nodes = pass.out;
    pass.stride = block_len;
    pass.start = 0;
    pass.count <<= pass.levels;
    pass.first += pass.levels;
  }
}

// Sends keys, and 64-bit numbers with them.
class SentKeys {
 public:
  SentKeys(const PointKeys& keys, std::span<const std::uint64_t> at, Stream stream) {
    const auto records = upload_.reserve<uint4>(keys.records.size() / sizeof(uint4));
    const auto points = upload_.reserve<std::uint64_t>(at.size());
    upload_.allocate(stream);
    std::copy(keys.records.begin(), keys.records.end(), reinterpret_cast<std::uint8_t*>(upload_.host(records)));
    std::copy(at.begin(), at.end(), upload_.host(points));
    upload_.send();
    keys_ = {keys.domain, keys.party, reinterpret_cast<const std::uint8_t*>(upload_.device(records)), keys.count()};
    at_ = upload_.device(points);
  }

  const DeviceKeys& keys() const { return keys_; }
  const std::uint64_t* at() const { return at_; }

 private:
  Upload upload_;
  DeviceKeys keys_{};
  const std::uint64_t* at_ = nullptr;
};

void run_paths(Paths paths, std::uint8_t* out, Stream stream) {
  if (paths.keys.count * paths.each >> 32 != 0) refuse("keys times points are 2^32 or more: give fewer at a time");
  const Device& device = current_device();
  paths.layout = layout_of(paths.keys.domain, paths.keys.party);
  visit(paths.keys.domain.generator, device, [&](auto generator) {
    using G = decltype(generator);
    launch(&path_kernel<G>, configuration_of<G>(device, paths.keys.count * paths.each, 0), stream, fixed_schedules,
           paths, out);
  });
}

}  // namespace

void expand(Generator generator, std::span<const std::uint8_t> seeds, int children, std::span<std::uint8_t> out,
            Stream stream) {
  const Device& device = current_device();
  std::uint64_t count = seeds.size() / block_len;
  if (generator == Generator::aes128_mmo && children == 2) {
    const std::uint64_t done = expand_by_hybrid(device, seeds.data(), count, out.data(), stream);
    if (done == count) return;
    count -= done;
    seeds = seeds.subspan(block_len * done);
    out = out.subspan(2 * block_len * done);
  }
  visit(generator, device, [&](auto made) {
    using G = decltype(made);
    const auto kernel = children == 1   ? &expand_kernel<G, 1>
                        : children == 2 ? &expand_kernel<G, 2>
                        : children == 3 ? &expand_kernel<G, 3>
                                        : &expand_kernel<G, 4>;
    launch(kernel, configuration_of<G>(device, count, 0), stream, fixed_schedules, seeds.data(), count, out.data());
  });
}

void tree(Generator generator, std::span<const std::uint8_t> roots, int depth, std::span<std::uint8_t> out,
          Stream stream) {
  if (depth == 0) {
    ::warpcipher::cuda::check(cudaMemcpyAsync(out.data(), roots.data(), roots.size(), cudaMemcpyDeviceToDevice,
                                              ::warpcipher::cuda::native(stream)),
                              "copy roots");
    return;
  }
  Pass pass{};
  pass.nodes = roots.data();
  pass.stride = block_len;
  pass.count = roots.size() / block_len;
  pass.out = out.data();
  const Device& device = current_device();
  visit(generator, device, [&](auto made) { run_passes<decltype(made), false>(device, pass, depth, stream); });
}

void evaluate_blocks(const DeviceKeys& keys, std::uint8_t* out, Stream stream) {
  const int depth = keys.domain.depth();
  if (depth == 0) return run_paths({keys, nullptr, 1, true, block_len * keys.domain.blocks(), true}, out, stream);
  Pass pass{};
  pass.nodes = pass.records = keys.records;
  pass.stride = keys.domain.record_len();
  pass.count = keys.count;
  pass.out = out;
  pass.layout = layout_of(keys.domain, keys.party);
  pass.finishes = true;
  const Device& device = current_device();
  visit(keys.domain.generator, device,
        [&](auto made) { run_passes<decltype(made), true>(device, pass, depth, stream); });
}

void evaluate_all(const PointKeys& keys, std::span<std::uint8_t> out, Stream stream) {
  const SentKeys sent(keys, {}, stream);
  if (keys.domain.share_len() >= block_len * keys.domain.blocks())
    return evaluate_blocks(sent.keys(), out.data(), stream);
  run_paths({sent.keys(), nullptr, 1, true, static_cast<std::size_t>(keys.domain.share_len()), true}, out.data(),
            stream);
}

void evaluate(const PointKeys& keys, std::span<const std::uint64_t> at, bool same, std::span<std::uint8_t> out,
              Stream stream) {
  const SentKeys sent(keys, at, stream);
  const std::uint64_t each = same ? at.size() : at.size() / keys.count();
  if (each >> 32 != 0) refuse("at has 2^32 points or more for a key: give fewer at a time");
  run_paths({sent.keys(), sent.at(), static_cast<std::uint32_t>(each), same, keys.domain.value_len(), false},
            out.data(), stream);
}

}  // namespace warpcipher::prg::cuda
