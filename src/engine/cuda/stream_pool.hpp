// SPDX-License-Identifier: Apache-2.0
// Streams, kept between calls: making and destroying one takes longer than a short message.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/engine.hpp"

namespace warpcipher::cuda {

// A stream of the current device that does not wait for the default one. It may still have work of its former user in
// front of what comes, nothing else. Throws Error{engine_failure}.
Stream take_stream();

// Gives a stream of take_stream() back, from any device. What is on it goes on.
void give_stream(Stream stream) noexcept;

// Streams for the parts of a run that need not wait for each other: they begin where the run's stream is at the first
// call of next(), and what the run's stream gets later waits for all of them.
//
//   stream   ... --+-- parallel groups --------+--> what the caller puts there next
//   side 0         +-- serial group -----------+
//   side 1         +-- serial group -------+---+
class SideStreams {
 public:
  explicit SideStreams(Stream stream) : stream_(stream) {}
  SideStreams(const SideStreams&) = delete;
  SideStreams& operator=(const SideStreams&) = delete;
  ~SideStreams();

  // From the fifth call on they are shared. Throws Error{engine_failure}.
  Stream next();

 private:
  const Stream stream_;
  std::vector<Stream> sides_;
  std::size_t calls_ = 0;
};

}  // namespace warpcipher::cuda
