/* SPDX-License-Identifier: Apache-2.0
 *
 * Random arrays. Part of warpcipher.h, which has the conventions.
 */
#ifndef WARPCIPHER_RANDOM_H
#define WARPCIPHER_RANDOM_H

#include <stdint.h>

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- random arrays -------------------------------------------------------------------------------------------- */

/* A stream of random bytes: a function of algorithm, key and number, the same on every engine and machine, 2^56 bytes
 * long. The same part is the same each time, so keep the key secret. */
typedef struct wc_random_stream {
  const char *algorithm; /* "chacha20" (RFC 8439, nonce of 4 zero bytes and the number little-endian) or "aes-256-ctr"
                          * (counter blocks of the number and the number of the block, both big-endian) */
  const void *key; /* 32 bytes, host memory */
  uint64_t number;
} wc_random_stream;

/* Writes bytes [position, position + out_len) of a stream.
 *
 * engine  "auto" or NULL; "cpu" or "reference" for host memory, "cuda" for device memory
 * memory  where `out` lies; device memory on the current device
 * stream  device memory: a cudaStream_t of that device, or NULL. The call starts kernels and returns; it allocates
 *         nothing, so that a CUDA graph can capture it. Ignored for host memory. */
WC_API wc_status wc_random_bytes(const char *engine, void *out, size_t out_len, wc_memory memory,
                                 const wc_random_stream *from, uint64_t position, void *stream);

/* Writes `count` unsigned integers of word_len (1, 2, 4 or 8) bytes below `below`, all equally likely; 0: of the whole
 * range. device memory: aligned to word_len. Each takes word_len bytes of the stream if `below` is 0, else 4 up to 2^20
 * and 8 above; position is a multiple of that. Otherwise as wc_random_bytes. */
WC_API wc_status wc_random_words(const char *engine, void *out, size_t count, size_t word_len, uint64_t below,
                                 wc_memory memory, const wc_random_stream *from, uint64_t position, void *stream);

#ifdef __cplusplus
}
#endif

#endif /* WARPCIPHER_RANDOM_H */
