// SPDX-License-Identifier: Apache-2.0
// Arrays in host memory: by all cores, with vectors, or element by element as the definition says.
#pragma once

#include <cstddef>
#include <cstdint>

#include "random/distribution.hpp"
#include "random/stream.hpp"

namespace warpcipher::random {

// `count` elements from `position`, a multiple of the width; `attempt` is the words' (stream.hpp).
struct HostFill {
  const StreamKey& key;
  const Distribution& distribution;
  std::uint64_t position;
  std::uint8_t* data;  // of any alignment
  std::uint64_t count;
  std::uint32_t attempt = 0;
};

void fill_by_threads(const HostFill& fill);
void fill_by_definition(const HostFill& fill);

// Lines of a stream: line r is bytes 64 r to 64 r + 63. Holds the key's schedule, and wipes it.
class Lines {
 public:
  Lines(const StreamKey& key, std::uint32_t attempt);
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  ~Lines();

  void make(std::uint64_t line, std::size_t count, std::uint8_t* out) const;

  // Calls visitor(stream) with the ChaChaStream or AesStream, for further words.
  template <class Visitor>
  void visit_stream(const Visitor& visitor) const {
    cipher_ == StreamCipher::chacha20 ? visitor(*chacha_) : visitor(*aes_);
  }

 private:
  struct AesLanes;

  StreamCipher cipher_;
  std::uint64_t first_block_;
  Secret<ChaChaStream> chacha_;
  Secret<AesStream> aes_;
  AesLanes* lanes_ = nullptr;
};

// A part of a fill, on this thread: elements [begin, end). The same source (host_code.hpp) compiled for each of some
// instruction sets, by src/instruction_sets/.
struct HostCode {
  const char* name;
  void (*fill_part)(const HostFill& fill, const Lines& lines, std::uint64_t begin, std::uint64_t end);
};

extern const HostCode host_baseline;
#if defined(__x86_64__)
extern const HostCode host_avx2;
#endif

}  // namespace warpcipher::random
