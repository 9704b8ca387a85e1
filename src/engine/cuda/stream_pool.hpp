// SPDX-License-Identifier: Apache-2.0
// Streams, kept between calls: making and destroying one takes longer than a short message.
#pragma once

#include "engine/engine.hpp"

namespace warpcipher::cuda {

// A stream of the current device that does not wait for the default one. It may still have work of its former user in
// front of what comes, nothing else. Throws Error{engine_failure}.
Stream take_stream();

// Gives a stream of take_stream() back, from any device. What is on it goes on.
void give_stream(Stream stream) noexcept;

}  // namespace warpcipher::cuda
