// SPDX-License-Identifier: Apache-2.0
#include "prg/prg.hpp"

#include <cstring>
#include <string>

#include "core/error.hpp"
#include "core/wipe.hpp"
#include "engine/engine.hpp"
#include "prg/cuda/launches.hpp"
#include "prg/host.hpp"
#include "prg/reference.hpp"

namespace warpcipher::prg {
namespace {

constexpr std::string_view generator_names[] = {"aes-128-mmo", "aes-128-keyed", "chacha20",
                                                "chacha12",    "chacha8",       "aes-128-half"};
constexpr std::string_view group_names[] = {"gf2", "u32", "u64"};

bool overlap(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  return !a.empty() && !b.empty() && a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

void check_out(std::span<const std::uint8_t> in, std::span<std::uint8_t> out, std::uint64_t expected,
               const Place& place) {
  if (out.size() != expected) {
    refuse("out has " + std::to_string(out.size()) + " bytes: expected " + std::to_string(expected));
  }
  if (overlap(in, out)) refuse("out overlaps the input: give other memory");
  if (place.memory == Memory::device && (reinterpret_cast<std::uintptr_t>(out.data()) % block_len != 0 ||
                                         reinterpret_cast<std::uintptr_t>(in.data()) % block_len != 0)) {
    refuse("an array in device memory does not begin at a multiple of 16 bytes");
  }
}

// Bytes of `count` times `each`, which must be addressable.
std::uint64_t product(std::uint64_t count, std::uint64_t each) {
  if (count != 0 && each > (std::uint64_t{1} << 62) / count) {
    refuse("the result has " + std::to_string(count) + " times " + std::to_string(each) + " bytes: too many");
  }
  return count * each;
}

void check_seeds(std::span<const std::uint8_t> seeds, const char* name) {
  if (seeds.size() % block_len != 0) {
    refuse(std::string(name) + " has " + std::to_string(seeds.size()) + " bytes: expected a multiple of 16");
  }
}

void check_domain(const Domain& domain) {
  if (domain.bits < 0 || domain.bits > most_bits) {
    refuse("bits is " + std::to_string(domain.bits) + ": expected 0 to " + std::to_string(most_bits));
  }
}

std::uint64_t domain_mask(const Domain& domain) { return (std::uint64_t{1} << domain.bits) - 1; }

}  // namespace

Generator find_generator(std::string_view name) {
  return static_cast<Generator>(find_name(generator_names, name, "prg"));
}

Group find_group(std::string_view name) { return static_cast<Group>(find_name(group_names, name, "group")); }

void expand(Generator generator, std::span<const std::uint8_t> seeds, int children, std::span<std::uint8_t> out,
            const Place& place) {
  const Way way = find_way(place.engine, place.memory);
  check_seeds(seeds, "seeds");
  if (children < 1 || children > most_children) {
    refuse("children is " + std::to_string(children) + ": expected 1 to " + std::to_string(most_children));
  }
  const bool in_place = children == 1 && out.data() == seeds.data();
  check_out(in_place ? std::span<const std::uint8_t>{} : seeds, out,
            product(seeds.size(), static_cast<std::uint64_t>(children)), place);
  if (seeds.empty()) return;
  if (way == Way::device) return cuda::expand(generator, seeds, children, out, place.stream);
  host::expand(way == Way::definition ? definition : code_of(generator), generator, seeds, children, out);
}

void tree(Generator generator, std::span<const std::uint8_t> roots, int depth, std::span<std::uint8_t> out,
          const Place& place) {
  const Way way = find_way(place.engine, place.memory);
  check_seeds(roots, "roots");
  if (depth < 0 || depth > 40) refuse("depth is " + std::to_string(depth) + ": expected 0 to 40");
  check_out(roots, out, product(roots.size(), std::uint64_t{1} << depth), place);
  if (roots.empty()) return;
  if (way == Way::device) return cuda::tree(generator, roots, depth, out, place.stream);
  if (way == Way::definition) return reference::tree(generator, roots, depth, out);
  host::tree(code_of(generator), generator, roots, depth, out);
}

void check_keys(const PointKeys& keys) {
  check_domain(keys.domain);
  const std::size_t len = keys.domain.record_len();
  if (keys.records.size() % len != 0) {
    refuse("the keys have " + std::to_string(keys.records.size()) + " bytes: expected a multiple of " +
           std::to_string(len));
  }
  if (keys.party != 0 && keys.party != 1) refuse("party is " + std::to_string(keys.party) + ": expected 0 or 1");
  const RecordLayout layout(keys.domain);
  for (std::uint64_t k = 0; k < keys.count(); ++k) {
    const std::uint8_t* const record = keys.records.data() + k * len;
    // The index of a damaged key is public, but nothing else is said of the key.
    if ((record[0] & 1) != keys.party) refuse("key " + std::to_string(k) + " is of the other party, or damaged");
    if (layout.correlated) continue;
    const std::uint64_t right = load_le64(record + layout.right_bits());
    if (right >> layout.depth != 0 || load_le64(record + layout.root_bit()) > 1) {
      refuse("key " + std::to_string(k) + " is damaged, or of another domain");
    }
  }
}

void generate(const Domain& domain, std::span<const std::uint64_t> points, std::span<const std::uint64_t> values,
              std::span<const std::uint8_t> random, std::span<std::uint8_t> first, std::span<std::uint8_t> second) {
  check_domain(domain);
  const std::size_t len = domain.record_len(), count = points.size();
  if (values.size() != count) {
    refuse("there are " + std::to_string(count) + " points and " + std::to_string(values.size()) + " values");
  }
  // No number of a point or value is said: both are secrets.
  const int value_bits = domain.group == Group::gf2 ? 1 : domain.group == Group::u32 ? 32 : 64;
  for (std::size_t k = 0; k < count; ++k) {
    if ((points[k] & ~domain_mask(domain)) != 0) {
      refuse("point " + std::to_string(k) + " is out of range: expected 0 to 2^" + std::to_string(domain.bits) +
             " - 1");
    }
    if (value_bits < 64 && values[k] >> value_bits != 0) {
      refuse("value " + std::to_string(k) + " is out of range: expected 0 to 2^" + std::to_string(value_bits) + " - 1");
    }
  }
  if (random.size() != 2 * block_len * count || first.size() != len * count || second.size() != len * count) {
    refuse("random bytes and keys are of other lengths than the points");
  }
  const Code& code = code_of(domain.generator);
  for (std::size_t k = 0; k < count; ++k) {
    host::generate_one(code, domain, points[k], values[k], random.data() + 2 * block_len * k, first.data() + len * k,
                       second.data() + len * k);
  }
}

void evaluate(const PointKeys& keys, std::span<const std::uint64_t> at, bool same, std::span<std::uint8_t> out,
              const Place& place) {
  const Way way = find_way(place.engine, place.memory);
  check_keys(keys);
  const std::uint64_t count = keys.count();
  if (!same && (count == 0 ? !at.empty() : at.size() % count != 0)) {
    refuse("there are " + std::to_string(at.size()) + " points for " + std::to_string(count) + " keys");
  }
  const std::uint64_t values = same ? product(count, at.size()) : at.size();
  if (out.size() != product(values, keys.domain.value_len())) {
    refuse("out has " + std::to_string(out.size()) + " bytes: expected " +
           std::to_string(values * keys.domain.value_len()));
  }
  for (std::size_t i = 0; i < at.size(); ++i) {
    if ((at[i] & ~domain_mask(keys.domain)) != 0) {
      refuse("at[" + std::to_string(i) + "] is " + std::to_string(at[i]) + ": expected 0 to 2^" +
             std::to_string(keys.domain.bits) + " - 1");
    }
  }
  if (values == 0) return;
  if (way == Way::device) return cuda::evaluate(keys, at, same, out, place.stream);
  host::evaluate(way == Way::definition ? definition : code_of(keys.domain.generator), keys, at, same, out);
}

void evaluate_all(const PointKeys& keys, std::span<std::uint8_t> out, const Place& place) {
  const Way way = find_way(place.engine, place.memory);
  check_keys(keys);
  check_out({}, out, product(keys.count(), keys.domain.share_len()), place);
  if (out.empty()) return;
  if (way == Way::device) return cuda::evaluate_all(keys, out, place.stream);
  if (way == Way::definition) return reference::evaluate_all(keys, out);
  host::evaluate_all(code_of(keys.domain.generator), keys, out);
}

void answer(const PointKeys& keys, std::span<const std::uint8_t> table, std::size_t record_len,
            std::span<std::uint8_t> out, const Place& place) {
  const Way way = find_way(place.engine, place.memory);
  check_keys(keys);
  const std::size_t value_len = keys.domain.value_len();
  if (record_len == 0 || record_len % value_len != 0) {
    refuse("a record has " + std::to_string(record_len) + " bytes: expected a multiple of " +
           std::to_string(value_len) + ", and not 0");
  }
  if (table.size() % record_len != 0) {
    refuse("the table has " + std::to_string(table.size()) + " bytes: expected whole records of " +
           std::to_string(record_len));
  }
  const std::uint64_t records = table.size() / record_len;
  if (records > domain_mask(keys.domain) + 1) {
    refuse("the table has " + std::to_string(records) + " records: keys of " + std::to_string(keys.domain.bits) +
           " bits choose among 2^" + std::to_string(keys.domain.bits));
  }
  check_out(table, out, product(keys.count(), record_len), place);
  if (out.empty()) return;
  if (way == Way::device) return cuda::answer(keys, table, record_len, out, place.stream);
  if (way == Way::definition) return reference::answer(keys, table, record_len, out);
  host::answer(code_of(keys.domain.generator), keys, table, record_len, out);
}

}  // namespace warpcipher::prg
