// SPDX-License-Identifier: Apache-2.0
// Failures, as the status codes of the C ABI.
#pragma once

namespace warpcipher {

// The values equal wc_status in warpcipher.h (checked there).
enum class Status : int {
  ok = 0,
  invalid_argument = 1,    // the input cannot be right, whatever the engine: a length, a name, a pointer
  invalid_tag = 2,         // an authentication tag did not match; the output is wiped
  invalid_padding = 3,     // PKCS#7 padding did not match; the output is wiped
  engine_unavailable = 4,  // the engine asked for is unknown, cannot run here, or failed its self-test
  engine_failure = 5,      // the engine failed while running: CUDA or libcrypto said so
  out_of_memory = 6,
  read_failed = 7,  // a file could not be read, or ends too early
};

}  // namespace warpcipher
