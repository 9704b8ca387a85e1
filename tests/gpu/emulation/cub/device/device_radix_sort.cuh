// SPDX-License-Identifier: Apache-2.0
// CUB's radix sort of pairs, as the emulated GPU has it: on the host, in the order of the stream.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "cuda_runtime.h"

namespace cub {

struct DeviceRadixSort {
  template <class Key, class Value, class Count>
  static cudaError_t SortPairs(void* temporary, std::size_t& temporary_len, const Key* keys_in, Key* keys_out,
                               const Value* values_in, Value* values_out, Count count, int begin_bit = 0,
                               int end_bit = sizeof(Key) * 8, cudaStream_t stream = nullptr) {
    if (temporary == nullptr) {
      temporary_len = 1;
      return cudaSuccess;
    }
    return emulation::enqueue(stream, [=] {
      const auto part = [=](Key key) { return key >> begin_bit << (sizeof(Key) * 8 - end_bit + begin_bit); };
      std::vector<std::size_t> order(static_cast<std::size_t>(count));
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return part(keys_in[a]) < part(keys_in[b]); });
      for (std::size_t i = 0; i < order.size(); ++i) {
        keys_out[i] = keys_in[order[i]];
        values_out[i] = values_in[order[i]];
      }
    });
  }
};

}  // namespace cub
