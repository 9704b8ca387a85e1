// SPDX-License-Identifier: Apache-2.0
// Messages in the order of their length: of a serial mode, so that the lanes of a warp end together and the
// longest begin first, and those that share a warp for their hash. The lengths of a class differ by less than a
// sixty-fourth; messages of a class are in any order. A finer order would gain nothing. No class has lengths on both
// sides of a power of two.
#pragma once

#include <cstdint>

#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda {

// The numbers of messages in device memory, the ones of most units first. View: MessageView, or HashView, whose blocks
// count.
class LengthOrder {
 public:
  template <class View>
  LengthOrder(const Device& device, Stream stream, const View* views, std::uint32_t messages);

  const std::uint32_t* get() const { return reinterpret_cast<const std::uint32_t*>(order_.data()); }

 private:
  StreamBuffer order_;
};

// Looks for nonces that a batch on the GPU uses twice, as src/message/checks.hpp does on the host.

struct NonceTable {
  unsigned long long* places;  // zeros; their number is a power of two, at least twice the messages
  std::uint32_t mask;
  std::uint64_t seeds[3];  // random
};

// Sets summary->bad when two messages have the same key and nonce. With E(J0) of each message in `masks` no keys need
// to be compared: the same nonce gives the same E(J0) under the same key, and under another key only with probability
// 2^-128.
void check_nonces(const Device& device, Stream stream, const MessageView* views, const Block* masks,
                  std::uint32_t messages, const NonceTable& table, BatchSummary* summary);

// The same for ChaCha20-Poly1305, by the keys themselves: then nothing has to be made of them first.
struct KeyedNonces {
  const MessageView* views;
  const HashView* hash_views;  // of nonces of 24 bytes, the last 8 are in `mask`; nullptr: nonces have 12
  const std::uint8_t* keys;    // 32 bytes each, at any address; nullptr: there is only one
};
void check_nonces(const Device& device, Stream stream, const KeyedNonces& nonces, std::uint32_t messages,
                  const NonceTable& table, BatchSummary* summary);

}  // namespace warpcipher::cuda
