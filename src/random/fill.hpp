// SPDX-License-Identifier: Apache-2.0
// Random arrays: a distribution of a key's stream, in host or device memory, by an engine. All engines give the same
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/stream.hpp"
#include "message/message.hpp"
#include "random/distribution.hpp"
#include "random/stream.hpp"

namespace warpcipher::random {

// Throws Error{invalid_argument} that names the given and the possible values.
StreamCipher find_stream_cipher(std::string_view name);

// An array: contiguous, of any alignment in host memory; in device memory aligned to its elements, on the current
// device.
struct Array {
  std::uint8_t* data;
  std::size_t size;  // bytes, whole elements
  Memory memory;
  Stream stream = nullptr;  // device memory: where the work goes
};

// Writes every element of `array` from the stream's bytes at `position`, a multiple of the distribution's width, and
// returns how many bytes that are. `engine`: auto, or for host memory cpu or reference, for device memory cuda. A fill
// of device memory does not wait, so that a CUDA graph can capture it (AES takes key stream's memory in stream order).
// Throws Error{invalid_argument, engine_unavailable, engine_failure}; nothing is written if it is the first or the
// second.
std::uint64_t fill(const StreamKey& key, const Distribution& distribution, std::uint64_t position, const Array& array,
                   std::string_view engine);

// Writes 0 to n - 1 for the n integers of `array` (int32 or int64), in an order that is uniform: the order of 64-bit
// words of the stream from `position`, a multiple of 8. If two words are equal all are drawn again, from their own
// words. Returns 8 n. In device memory it allocates, and waits for the stream. Throws as fill().
std::uint64_t permute(const StreamKey& key, std::uint64_t position, Type type, const Array& array,
                      std::string_view engine);

// Permutations: 0 to n - 1 in the order of random words.

// count: 1 to 2^32. item_len: 4 or 8. by_definition: words and order without threads and without vectors.
void permute_host(const StreamKey& key, std::uint64_t position, std::size_t item_len, std::uint8_t* data,
                  std::uint64_t count, bool by_definition);

}  // namespace warpcipher::random
