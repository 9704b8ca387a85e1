/* SPDX-License-Identifier: Apache-2.0
 *
 * warpcipher: symmetric cryptography on GPUs and CPUs. The C ABI.
 *
 * Include this header; those in warpcipher/ are its parts, one for each subject. examples/ has whole programs. C++
 * includes the same headers; no function throws.
 *
 * Conventions, said once:
 *   - Parameter order: handle, outputs, inputs. Lengths (`*_len`) and offsets are in bytes.
 *   - Functions that can fail return a wc_status; wc_last_error() then names the given and the expected value. On
 *     any status but WC_OK no output is valid; on WC_INVALID_ARGUMENT nothing has been written.
 *   - A length above 2^56, such as an unsigned subtraction below zero gives, is WC_INVALID_ARGUMENT: no memory is that
 *     long. So is a count above 2^32 - 1.
 *   - A pointer to zero bytes may be NULL. Other pointers must not be NULL unless the comment allows it.
 *   - `in` and `out` may be the same pointer (in place). Otherwise they must not overlap. A tag overlaps neither, IV
 *     and AAD do not overlap `out`, and no message of a call writes where another reads or writes. Text needs no
 *     alignment.
 *   - Handles may be used from several threads at once. Only the freeing of a handle needs care by the caller.
 *   - IVs, nonces and AAD lie in host memory, in wc_columns where it says. Text and tags lie where wc_message.memory
 *     says. Text in host memory goes to the engine "cuda" through the current device, or through those that the
 *     environment variable WARPCIPHER_DEVICES names ("all", or numbers such as "0,1").
 *   - Names of algorithms are `cipher-mode`, for example "aes-256-gcm"; wc_algorithm_at() lists them.
 */
#ifndef WARPCIPHER_H
#define WARPCIPHER_H

#include "warpcipher/core.h"

#include "warpcipher/chunks.h"
#include "warpcipher/columns.h"
#include "warpcipher/files.h"
#include "warpcipher/messages.h"
#include "warpcipher/queue.h"
#include "warpcipher/random.h"

#endif /* WARPCIPHER_H */
