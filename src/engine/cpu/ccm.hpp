// SPDX-License-Identifier: Apache-2.0
// AES-CCM (SP 800-38C), made of what the engine has: the MAC is the last block of CBC encryption, the text counter
// mode.
#pragma once

#include "message/message.hpp"

namespace warpcipher {

// A message of AES-CCM: invalid_tag, and a wiped `out`, where the tag does not match.
Status run_ccm_message(const Message& m);

}  // namespace warpcipher
