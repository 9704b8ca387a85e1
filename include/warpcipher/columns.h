/* SPDX-License-Identifier: Apache-2.0
 *
 * Many messages of one kind, described by arrays. Part of warpcipher.h, which has the conventions.
 */
#ifndef WARPCIPHER_COLUMNS_H
#define WARPCIPHER_COLUMNS_H

#include <stdint.h>

#include "messages.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- columns ---------------------------------------------------------------------------------------------------- */

/* The columnar form: `count` messages of one algorithm and direction, described by arrays. AEAD messages are
 * text || tag: lengths count the tag when decrypting, and out gets lengths[i] + tag_len bytes when encrypting. Zero the
 * struct first, then set what applies. */
typedef struct wc_columns {
  wc_direction direction;
  wc_padding padding;
  wc_memory memory; /* of in and out */
  const wc_key *const *keys; /* key_count keys of the same algorithm; or algorithm and key_bytes below */
  size_t key_count;
  const uint32_t *key_index; /* count entries below key_count; NULL: all messages take the first key */
  size_t count;
  const void *in; /* one buffer of in_len bytes */
  size_t in_len;
  const uint64_t *in_offsets; /* count entries; NULL: back to back */
  const uint64_t *in_lengths; /* count entries */
  void *out; /* one buffer of out_len bytes, not overlapping in unless the same */
  size_t out_len;
  const uint64_t *out_offsets; /* count entries; NULL: back to back */
  const void *ivs; /* count * iv_len bytes, an IV or nonce for each message */
  size_t iv_len; /* 0 for ECB */
  const void *aad; /* one buffer of aad_len bytes; only for AEADs */
  size_t aad_len;
  const uint64_t *aad_offsets; /* count entries, with aad_lengths; NULL: every message takes the whole of aad */
  const uint64_t *aad_lengths;
  size_t tag_len; /* AEAD: of each message, as in wc_message; else 0 */
  wc_memory columns_memory; /* of the arrays: key_index, in_offsets, in_lengths, out_offsets, ivs, aad, aad_offsets,
                               aad_lengths, key_bytes and the results. WC_MEMORY_DEVICE: all on the device that holds in
                               and out, memory is WC_MEMORY_DEVICE too */
  const char *algorithm; /* NULL where keys are given */
  const void *key_bytes; /* with algorithm: the bytes of the keys, one after the other */
  size_t key_bytes_len; /* a multiple of the algorithm's key_len; key_index counts keys */
} wc_columns;

/* As wc_run, with columns->count results. results[i].written counts the tag when encrypting an AEAD; results lies where
 * columns_memory says.
 *
 * Text in device memory: the device checks, plans, pads and runs large batches (GCM: iv_len 12) whose outputs are in
 * the order of the messages; columns in host memory are copied there first. The host checks all other batches, and
 * those with an error, message by message. Either way the call waits until all checks are done. Where the columns lie
 * in device memory it so waits for what is on the stream before it; work enqueued later may change the columns. */
WC_API wc_status wc_run_columns(const char *engine, wc_result *results, const wc_columns *columns, void *stream);

#ifdef __cplusplus
}
#endif

#endif /* WARPCIPHER_COLUMNS_H */
