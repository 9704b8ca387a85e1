// SPDX-License-Identifier: Apache-2.0
// PKCS#7 padding taken off decrypted messages where they lie (RFC 5652, section 6.3), a lane a message.
#pragma once

#include <cstdint>

#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda {

// lengths[i] = the bytes of padding at the end of message i, or 0 where it has none that is right: then its text is
// wiped. Every byte of the last block is looked at, so the time tells no more than which messages failed. Texts are
// whole blocks, of 8 bytes or of 16, and one at least; their units are blocks.
void take_padding_off(const Device& device, Stream stream, const MessageView* views, std::uint32_t messages,
                      std::uint32_t* lengths);

}  // namespace warpcipher::cuda
