// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/searches.hpp"

#include <bit>
#include <utility>

#include "cipher/des_bitslice.hpp"
#include "core/wipe.hpp"
#include "search/cuda/unit_search.hpp"
#include "search/cuda/units.hpp"

namespace warpcipher::search::cuda {
namespace {

namespace bitslice = des::bitslice;

void set_planes(std::uint32_t (&planes)[64], const std::uint8_t* block) {
  for (std::size_t m = 0; m < 64; ++m) planes[m] = (block[m / 8] >> m % 8 & 1u) != 0 ? ~0u : 0u;
}

// The key bit (from 0, most significant first) as a plane of the whole key.
std::uint8_t plane_of_key_bit(std::size_t bit) { return static_cast<std::uint8_t>(bit ^ 7u); }

class GenericDes final : public UnitSearch {
 public:
  GenericDes(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test, const UnitCounts& units,
             const LaunchTimes& times)
      : UnitSearch(std::move(space), std::move(test), DesUnits::lanes << UnitLoops::most, units, {}, times),
        indices_(bitslice::subkey_planes) {}

 private:
  void start(HitBuffer& buffer, const std::uint8_t* keys, std::uint32_t units) override {
    const std::size_t key_len = space().key_len();
    Secret<DesUnits> secret;
    DesUnits& p = *secret;
    set_planes(p.text, pair().in.data());
    set_planes(p.expected, pair().expected.data());
    set_planes(p.mask, pair().mask.data());
    for (std::uint32_t i = 0; i < loops(); ++i) p.toggles[i] = plane_of_key_bit(space().free_bits()[i]);
    p.keys = keys;
    p.indices = indices_.data() + (pair().decrypt ? bitslice::schedule_bits : 0);
    p.hits = reinterpret_cast<std::uint32_t*>(buffer.address());
    p.units = units;
    p.key_len = static_cast<std::uint32_t>(key_len);
    p.passes = static_cast<std::uint32_t>(bitslice::pass_count(key_len));
    p.loops = loops();
    p.capacity = buffer.capacity();
    for (std::uint32_t pass = 0; pass < p.passes; ++pass) {
      p.key_of_pass[pass] =
          static_cast<std::uint8_t>(bitslice::pass_of(key_len, pair().decrypt, static_cast<int>(pass)).key_offset / 8);
    }
    launch_des_units(p, buffer.stream());
  }

  const DeviceTable<decltype(bitslice::subkey_planes)> indices_;
};

}  // namespace

UnitCounts des_units_of(std::uint32_t multiprocessors) {
  // Blocks on a multiprocessor: four fit in its shared memory and registers.
  constexpr std::uint64_t units = std::uint64_t{4} * DesUnits::threads * DesUnits::lanes;
  return {multiprocessors * units, std::bit_ceil(std::uint64_t{multiprocessors}) * units};
}

std::unique_ptr<UnitSearch> make_generic_des(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test,
                                             const UnitCounts& units, const LaunchTimes& times) {
  return std::make_unique<GenericDes>(std::move(space), std::move(test), units, times);
}

}  // namespace warpcipher::search::cuda
