// SPDX-License-Identifier: Apache-2.0
// Streams, kept between calls: making and destroying one takes longer than a short message.
#pragma once

#include <array>
#include <cstddef>

#include "engine/engine.hpp"

namespace warpcipher::cuda {

// A stream of the current device that does not wait for the default stream. Work of its former user may still be on it.
// Throws Error{engine_failure}.
Stream take_stream();

// Gives a stream of take_stream() back, from any device. Work on it continues.
void give_stream(Stream stream) noexcept;

// Streams for the groups of a plan that need not wait for each other (plan.hpp). The longest chain stays on the stream
// of the run: it takes as long as the whole run, so it must not wait for another stream before it, and after it the
// others are done already.
//
//   stream    ... --+-- serial group, the longest ---------+--> the caller's next work
//   side 0          +-- parallel groups --+----------------+
//   side 1          +-- serial group -----------+----------+
//   side 2          +-- serial group ----+-----------------+
class SideStreams {
 public:
  // `concurrent`: of the plan. Throws Error{engine_failure}.
  SideStreams(Stream stream, std::size_t concurrent);
  SideStreams(const SideStreams&) = delete;
  SideStreams& operator=(const SideStreams&) = delete;
  ~SideStreams();

  // The stream of a group, by its number in the plan. From the sixth on serial groups share theirs. Throws
  // Error{engine_failure}.
  Stream of_group(std::size_t group);

 private:
  static constexpr std::size_t most_chains = 4;  // on sides

  const Stream stream_;
  const std::size_t concurrent_;
  void* begun_ = nullptr;  // an event: the work on `stream_` at the beginning
  std::array<Stream, 1 + most_chains> sides_{};
};

}  // namespace warpcipher::cuda
