// SPDX-License-Identifier: Apache-2.0
#include "prg/host.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/thread_pool.hpp"
#include "core/wipe.hpp"

namespace warpcipher::prg::host {
namespace {

constexpr std::size_t nodes_at_once = 64;
constexpr int subtree_depth = 14;                             // of a tree that a thread takes
constexpr std::size_t grain_nodes = std::size_t{1} << 12;     // or so many nodes of smaller ones
constexpr std::size_t most_table_len = std::size_t{1} << 19;  // of a table while all keys read it: stays in the cache

template <class Body>
void for_all(std::uint64_t count, std::size_t grain, const Body& body) {
  ThreadPool::instance().parallel_for(static_cast<std::size_t>(count), grain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) body(i);
  });
}

// A tree: of a generator, or of a key of a point function, whose corrections it has.
class Tree {
 public:
  Tree(const Code& code, Generator generator, const std::uint8_t* root, int depth)
      : code_(code), generator_(generator), depth_(depth), scratch_((static_cast<std::size_t>(depth) + 1) * step_len) {
    std::memcpy(root_, root, block_len);
  }

  Tree(const Code& code, const PointKeys& keys, std::size_t i)
      : Tree(code, keys.domain.generator, keys.records.data() + i * keys.domain.record_len(), keys.domain.depth()) {
    record_ = keys.records.data() + i * keys.domain.record_len();
    layout_ = RecordLayout(keys.domain);
    std::memcpy(leaf_.blocks, record_ + layout_.value(), block_len * keys.domain.blocks());
    leaf_.group = keys.domain.group;
    leaf_.negative = keys.party == 1;
    if (depth_ == 0 && !layout_.correlated) leaf_.root_bit = record_[layout_.root_bit()];
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() { secure_wipe(root_, sizeof root_); }

  // Node `index` of `level`, which is public.
  void go_to(std::uint64_t index, int level, std::uint8_t (&node)[block_len]) {
    std::memcpy(node, root_, block_len);
    for (int l = 0; l < level; ++l) {
      grow(l, node, 1, scratch_.data());
      std::memcpy(node, scratch_.data() + block_len * (index >> (level - 1 - l) & 1), block_len);
    }
  }

  // Calls emit(index, nodes, count) for the descendants at `last` of node `index` of `level`, in order.
  template <class Emit>
  void descend(std::uint64_t index, int level, int last, const Emit& emit) {
    std::uint8_t node[block_len];
    go_to(index, level, node);
    descend(index, level, last, node, 1, emit);
    secure_wipe(node, sizeof node);
  }

  void grow(int level, const std::uint8_t* nodes, std::size_t count, std::uint8_t* out) const {
    if (record_ == nullptr) return code_.expand(generator_, nodes, count, 0, 2, out);
    code_.grow(generator_, nodes, count, layout_.of_level(record_, level), out);
  }

  void finish(const std::uint8_t* nodes, std::size_t count, std::uint8_t* out) const {
    code_.finish(generator_, nodes, count, leaf_, out);
  }

 private:
  static constexpr std::size_t step_len = 2 * nodes_at_once * block_len;

  template <class Emit>
  void descend(std::uint64_t index, int level, int last, const std::uint8_t* nodes, std::size_t count,
               const Emit& emit) {
    if (level == last) return emit(index, nodes, count);
    std::uint8_t* const children = scratch_.data() + static_cast<std::size_t>(level) * step_len;
    for (std::size_t at = 0; at < count; at += nodes_at_once) {
      const std::size_t n = std::min(nodes_at_once, count - at);
      grow(level, nodes + block_len * at, n, children);
      descend(2 * (index + at), level + 1, last, children, 2 * n, emit);
    }
  }

  const Code& code_;
  const Generator generator_;
  const int depth_;
  const std::uint8_t* record_ = nullptr;
  RecordLayout layout_{Domain{}};
  LeafCorrection leaf_{};
  std::uint8_t root_[block_len];
  SecretBytes scratch_;
};

// How a batch of trees is cut for threads: 2^split subtrees each.
struct Cut {
  int split;
  std::size_t grain;

  explicit Cut(int depth)
      : split(std::max(0, depth - subtree_depth)), grain(std::max<std::size_t>(1, grain_nodes >> (depth - split))) {}
};

// Value number i of a block.
void take_value(Group group, const std::uint8_t* block, std::uint64_t i, std::uint8_t* out) {
  if (group == Group::gf2) {
    *out = block[i / 8] >> (i % 8) & 1;
  } else {
    const std::size_t len = group == Group::u32 ? 4 : 8;
    std::memcpy(out, block + len * i, len);
  }
}

}  // namespace

void expand(const Code& code, Generator generator, std::span<const std::uint8_t> seeds, int children,
            std::span<std::uint8_t> out) {
  const auto each = static_cast<std::size_t>(children);
  ThreadPool::instance().parallel_for(seeds.size() / block_len, grain_nodes, [&](std::size_t begin, std::size_t end) {
    code.expand(generator, seeds.data() + block_len * begin, end - begin, 0, children,
                out.data() + block_len * each * begin);
  });
}

void tree(const Code& code, Generator generator, std::span<const std::uint8_t> roots, int depth,
          std::span<std::uint8_t> out) {
  const std::size_t count = roots.size() / block_len;
  if (depth == 0) {
    if (!out.empty()) std::memmove(out.data(), roots.data(), roots.size());
    return;
  }
  const Cut cut(depth);
  for_all(count << cut.split, cut.grain, [&](std::size_t i) {
    Tree one(code, generator, roots.data() + block_len * (i >> cut.split), depth);
    const std::size_t subtree = i & ((std::size_t{1} << cut.split) - 1);
    std::uint8_t* const leaves = out.data() + block_len * (i >> cut.split << depth);
    one.descend(subtree, cut.split, depth - 1, [&](std::uint64_t at, const std::uint8_t* nodes, std::size_t n) {
      one.grow(depth - 1, nodes, n, leaves + 2 * block_len * at);
    });
  });
}

void evaluate(const Code& code, const PointKeys& keys, std::span<const std::uint64_t> at, bool same,
              std::span<std::uint8_t> out) {
  const Domain& domain = keys.domain;
  const std::uint64_t count = keys.count();
  const std::size_t len = domain.value_len();
  const std::size_t each = same ? at.size() : at.size() / count;
  const int depth = domain.depth(), in_block = domain.bits - depth;
  for_all(count, std::max<std::size_t>(1, 64 / std::max<std::size_t>(1, each)), [&](std::size_t k) {
    Tree one(code, keys, k);
    std::uint8_t node[block_len], block[most_blocks * block_len];
    for (std::size_t i = 0; i < each; ++i) {
      const std::uint64_t point = at[same ? i : k * each + i];
      one.go_to(point >> in_block, depth, node);
      one.finish(node, 1, block);
      take_value(domain.group, block, point & ((std::uint64_t{1} << in_block) - 1), out.data() + len * (k * each + i));
    }
    secure_wipe(node, sizeof node);
    secure_wipe(block, sizeof block);
  });
}

void evaluate_all(const Code& code, const PointKeys& keys, std::span<std::uint8_t> out) {
  const Domain& domain = keys.domain;
  const int depth = domain.depth();
  const Cut cut(depth);
  for_all(keys.count() << cut.split, cut.grain, [&](std::size_t i) {
    Tree one(code, keys, i >> cut.split);
    const std::size_t subtree = i & ((std::size_t{1} << cut.split) - 1);
    std::uint8_t* const share = out.data() + domain.share_len() * (i >> cut.split);
    one.descend(subtree, cut.split, depth, [&](std::uint64_t at, const std::uint8_t* nodes, std::size_t n) {
      const std::size_t len = block_len * domain.blocks();
      if (domain.share_len() >= len) return one.finish(nodes, n, share + len * at);
      std::uint8_t block[most_blocks * block_len];
      one.finish(nodes, 1, block);
      if (domain.group == Group::gf2 && domain.bits < 3) {
        block[0] = static_cast<std::uint8_t>(block[0] & ((1u << (1u << domain.bits)) - 1));
      }
      std::memcpy(share, block, static_cast<std::size_t>(domain.share_len()));
      secure_wipe(block, sizeof block);
    });
  });
}

void answer(const Code& code, const PointKeys& keys, std::span<const std::uint8_t> table, std::size_t record_len,
            std::span<std::uint8_t> out) {
  const Domain& domain = keys.domain;
  const Accumulate accumulate = accumulate_codes().front();
  const int depth = domain.depth(), in_block = domain.bits - depth;
  const std::uint64_t records = table.size() / record_len, count = keys.count();
  // A subtree for a thread: as many levels as leave its records in the cache.
  int levels = 0;
  while (levels < depth && (record_len << (in_block + levels + 1)) <= most_table_len) ++levels;
  const int range_bits = in_block + levels;
  const std::uint64_t ranges = (records + (std::uint64_t{1} << range_bits) - 1) >> range_bits;
  std::memset(out.data(), 0, out.size());
  std::mutex joining;
  ThreadPool::instance().parallel_for(static_cast<std::size_t>(ranges), 1, [&](std::size_t begin, std::size_t end) {
    SecretBytes sums(out.size()), shares(2 * nodes_at_once * domain.blocks() * block_len);
    for (std::size_t range = begin; range < end; ++range) {
      for (std::size_t k = 0; k < count; ++k) {
        Tree one(code, keys, k);
        one.descend(range, depth - levels, depth, [&](std::uint64_t at, const std::uint8_t* nodes, std::size_t n) {
          const std::uint64_t first = at << in_block;
          if (first >= records) return;
          one.finish(nodes, n, shares.data());
          const std::uint64_t some = std::min<std::uint64_t>(records - first, n << in_block);
          const Records part{table.data() + first * record_len, record_len, static_cast<std::size_t>(some)};
          accumulate(domain.group, shares.data(), part, sums.data() + k * record_len);
        });
      }
    }
    const std::lock_guard lock(joining);
    std::uint8_t one[8];  // a share of 1 adds a record
    const std::uint64_t unit = 1;
    std::memcpy(one, &unit, sizeof one);
    for (std::size_t k = 0; k < count; ++k) {
      accumulate(domain.group, one, {sums.data() + k * record_len, record_len, 1}, out.data() + k * record_len);
    }
  });
}

}  // namespace warpcipher::prg::host
