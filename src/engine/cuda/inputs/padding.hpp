// SPDX-License-Identifier: Apache-2.0
// Removes PKCS#7 padding (RFC 5652, section 6.3) from decrypted messages in device memory, one message in each lane.
#pragma once

#include <cstdint>

#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda {

// lengths[i] = the bytes of padding at the end of message i, or 0 if its padding is wrong: then its text is wiped.
// Every byte of the last block is read, so the time reveals only which messages failed. Texts are whole blocks of 8 or
// 16 bytes, at least one; their units are blocks.
void take_padding_off(const Device& device, Stream stream, const MessageView* views, std::uint32_t messages,
                      std::uint32_t* lengths);

}  // namespace warpcipher::cuda
