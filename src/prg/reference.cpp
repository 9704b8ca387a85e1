// SPDX-License-Identifier: Apache-2.0
#include "prg/reference.hpp"

#include <cstring>

#include "core/wipe.hpp"
#include "prg/host.hpp"

namespace warpcipher::prg::reference {
namespace {

// The share of key k at a point, as a number.
std::uint64_t share_at(const PointKeys& keys, std::uint64_t k, std::uint64_t point) {
  const std::size_t len = keys.domain.record_len();
  const PointKeys one{keys.domain, keys.party, keys.records.subspan(k * len, len)};
  std::uint8_t value[8] = {};
  host::evaluate(definition, one, {&point, 1}, true, {value, keys.domain.value_len()});
  return load_le64(value);
}

}  // namespace

void tree(Generator generator, std::span<const std::uint8_t> roots, int depth, std::span<std::uint8_t> out) {
  const std::uint64_t leaves = std::uint64_t{1} << depth;
  for (std::uint64_t i = 0; i < out.size() / block_len; ++i) {
    std::uint8_t node[block_len], child[block_len];
    std::memcpy(node, roots.data() + block_len * (i / leaves), block_len);
    for (int level = depth - 1; level >= 0; --level) {
      make_child(generator, node, static_cast<int>(i >> level & 1), child);
      std::memcpy(node, child, block_len);
    }
    std::memcpy(out.data() + block_len * i, node, block_len);
    secure_wipe(node, sizeof node);
    secure_wipe(child, sizeof child);
  }
}

void evaluate_all(const PointKeys& keys, std::span<std::uint8_t> out) {
  const Domain& domain = keys.domain;
  std::memset(out.data(), 0, out.size());
  for (std::uint64_t k = 0; k < keys.count(); ++k) {
    std::uint8_t* const share = out.data() + k * domain.share_len();
    for (std::uint64_t point = 0; point >> domain.bits == 0; ++point) {
      const std::uint64_t value = share_at(keys, k, point);
      if (domain.group == Group::gf2) {
        share[point / 8] = static_cast<std::uint8_t>(share[point / 8] | value << (point % 8));
      } else {
        std::memcpy(share + domain.value_len() * point, &value, domain.value_len());
      }
    }
  }
}

void answer(const PointKeys& keys, std::span<const std::uint8_t> table, std::size_t record_len,
            std::span<std::uint8_t> out) {
  const std::size_t len = keys.domain.value_len();
  std::memset(out.data(), 0, out.size());
  for (std::uint64_t k = 0; k < keys.count(); ++k) {
    for (std::uint64_t i = 0; i < table.size() / record_len; ++i) {
      const std::uint64_t share = share_at(keys, k, i);
      for (std::size_t at = 0; at < record_len; at += len) {
        std::uint64_t word = 0, sum = 0;
        std::memcpy(&word, table.data() + i * record_len + at, len);
        std::memcpy(&sum, out.data() + k * record_len + at, len);
        sum = keys.domain.group == Group::gf2 ? sum ^ (word & (0 - share)) : sum + word * share;
        std::memcpy(out.data() + k * record_len + at, &sum, len);
      }
    }
  }
}

}  // namespace warpcipher::prg::reference
