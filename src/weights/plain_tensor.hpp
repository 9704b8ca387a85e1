// SPDX-License-Identifier: Apache-2.0
// A tensor in the header of a safetensors file, written as the writers of such files do. Reading headers is most of
// what opening a model takes; what is spelt in any other way, or is not right, is left to
// python/warpcipher/weights/header.py, which reads all of the format and says what is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace warpcipher::weights {

inline constexpr std::size_t max_dimensions = 8;

// Views of the text. kind: what stands from the dtype's first letter to the shape's last character, the same for all
// tensors of one dtype and shape. lengths: the numbers of the shape, with commas. start, end: its data_offsets.
struct PlainTensor {
  std::string_view name, kind, dtype, lengths;
  std::uint64_t start = 0, end = 0;
  std::size_t size = 0;  // of the member in the text
};

// The member at the beginning of `text`, with the comma before it and no space anywhere:
//   ,"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}
// Nothing where anything else stands there: a name with a backslash, the metadata, a dtype of other characters than
// A-Z, 0-9 and _, more than max_dimensions, a number with a leading zero or of more than 18 digits. Reads no further
// than the member.
std::optional<PlainTensor> plain_tensor(std::string_view text);

// Calls `each` with the numbers of `lengths`.
template <class Each>
void for_lengths(std::string_view lengths, const Each& each) {
  std::uint64_t value = 0;
  for (const char c : lengths) {
    if (c == ',') {
      each(value);
      value = 0;
    } else {
      value = 10 * value + static_cast<std::uint64_t>(c - '0');
    }
  }
  if (!lengths.empty()) each(value);
}

}  // namespace warpcipher::weights
