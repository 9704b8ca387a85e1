// SPDX-License-Identifier: Apache-2.0
// AES-GCM-SIV (RFC 8452).
#pragma once

#include "batch/message.hpp"

namespace warpcipher {

// A message of AES-GCM-SIV: invalid_tag, and a wiped `out`, where the tag does not match.
Status run_gcm_siv_message(const Message& m);

}  // namespace warpcipher
