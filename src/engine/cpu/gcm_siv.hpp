// SPDX-License-Identifier: Apache-2.0
// AES-GCM-SIV (RFC 8452): by own code where the processor has the instructions, else by libcrypto's AES.
#pragma once

#include "engine/cpu/gcm_lanes.hpp"
#include "message/message.hpp"

namespace warpcipher {

// A message of AES-GCM-SIV: invalid_tag, and a wiped `out`, where the tag does not match.
Status run_gcm_siv_message(const Message& m);

// What the two do. All messages of a key go to the same one, and `code` is the same in all calls with it.
Status run_gcm_siv_by_own(const cpu::GcmLanes& code, const Message& m);
Status run_gcm_siv_by_libcrypto(const Message& m);

}  // namespace warpcipher
