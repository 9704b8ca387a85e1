/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages, one or many, each a struct. Part of warpcipher.h, which has the conventions.
 */
#ifndef WARPCIPHER_MESSAGES_H
#define WARPCIPHER_MESSAGES_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- messages ------------------------------------------------------------------------------------------------- */

/* One call's worth of work. Zero the struct first (`wc_message m = {0}`), then set what applies. */
typedef struct wc_message {
  const wc_key *key;
  wc_direction direction;
  wc_padding padding;
  wc_memory memory; /* of in, out and tag; the same for all messages of a call. Device: one CUDA device */
  const void *in;
  size_t in_len; /* GCM: at most 2^36 - 32; XTS: one data unit, 16 to 2^24; ECB and CBC without padding: whole blocks */
  void *out;
  size_t out_len; /* room at out: in_len or more; to encrypt with padding the next multiple of block_len above in_len */
  const void *iv; /* host memory */
  size_t iv_len; /* as the algorithm's iv_rule says; GCM: 1 byte or more, 12 is the usual length.
                  * chacha20: 16, the number of the first block in 4 bytes little-endian, then the nonce of 12;
                  * a text that would take the number past 2^32 - 1 is refused */
  const void *aad; /* host memory; only for AEADs */
  size_t aad_len;
  void *tag; /* AEAD: tag_len bytes, written by encryption, compared by decryption */
  size_t tag_len; /* GCM: 4, 8, 12 to 16; other AEADs: 16 */
} wc_message;

/* The result of one message. */
typedef struct wc_result {
  wc_status status; /* WC_OK, WC_INVALID_TAG or WC_INVALID_PADDING */
  size_t written; /* bytes of text at out; 0 unless WC_OK */
} wc_result;

/* Runs `count` messages, which may differ in key, algorithm, direction and length, and fills results[0..count).
 *
 * engine  "auto", NULL (the same) or a name from wc_engine_at(). WARPCIPHER_ENGINE overrides "auto".
 * stream  a cudaStream_t of the device that holds the data, or NULL (the legacy default stream). With device memory the
 *         call enqueues work on the stream and returns; in AEAD and padded decryption it waits for the stream, as the
 *         status depends on the data. With host memory the call returns when the work is done.
 *
 * Returns the first status in `results` that is not WC_OK; the other messages of the batch are done all the same.
 * WC_INVALID_ARGUMENT: some message cannot be right; none was run. Two messages of GCM or of ChaCha20-Poly1305 in one
 * call that encrypt under one key with the same nonce are refused so; GCM-SIV may repeat nonces.
 * WC_ENGINE_UNAVAILABLE: also where the engine does not offer an algorithm. */
WC_API wc_status wc_run(const char *engine, wc_result *results, const wc_message *messages, size_t count, void *stream);

/* A batch: messages that are added one by one and run together in the background. */
typedef struct wc_batch wc_batch;

/* An empty batch for an engine, named as in wc_run; whether it can run is checked when the batch runs. Free it with
 * wc_batch_free before the process exits: exit() and the end of main() destroy what its thread uses. */
WC_API wc_status wc_batch_new(wc_batch **out, const char *engine);

/* Adds a message. The struct is copied; its key and what it points to must stay until the batch is done. *index (NULL
 * allowed) gets the number of the message, from 0. The message is checked when the batch runs. WC_INVALID_ARGUMENT:
 * the batch has been started. */
WC_API wc_status wc_batch_add(wc_batch *batch, size_t *index, const wc_message *message);

/* Starts the messages on a thread of the library, together, once, and returns. stream: as in wc_run, of the CUDA device
 * that is current for the calling thread; the messages run after what is on it now. WC_INVALID_ARGUMENT: the batch has
 * been started before. */
WC_API wc_status wc_batch_start(wc_batch *batch, void *stream);

/* Writes 1 to *done when the work is done, on the device too, or has failed; else 0. */
WC_API wc_status wc_batch_query(int *done, const wc_batch *batch);

/* Waits until the work is done, on the device too, and returns what wc_run would have: the first status of a message
 * that is not WC_OK, or why none was run. May be called again. WC_INVALID_ARGUMENT also: the batch was not started. */
WC_API wc_status wc_batch_wait(wc_batch *batch);

/* The result of message `index`. WC_INVALID_ARGUMENT: the batch is not done, failed as a whole, or has none such. */
WC_API wc_status wc_batch_result(wc_result *result, const wc_batch *batch, size_t index);

/* Waits for a batch that was started, and frees it. NULL is allowed. */
WC_API void wc_batch_free(wc_batch *batch);

/* ---- one message in host memory, the common case -------------------------------------------------------------- */

/* Encrypts or decrypts in_len bytes with the automatic engine. *written gets the bytes of text at out (NULL allowed).
 * For algorithms that are not AEADs, else WC_INVALID_ARGUMENT. iv_len is 0 for ECB. out_len: see wc_message. */
WC_API wc_status wc_encrypt(const wc_key *key, void *out, size_t out_len, size_t *written, const void *in,
                            size_t in_len, const void *iv, size_t iv_len, wc_padding padding);
WC_API wc_status wc_decrypt(const wc_key *key, void *out, size_t out_len, size_t *written, const void *in,
                            size_t in_len, const void *iv, size_t iv_len, wc_padding padding);

/* AEAD with a 16-byte tag after the ciphertext: seal writes in_len + 16 bytes to out, open writes in_len - 16 bytes;
 * out_len is at least that. A nonce must never be used twice with one key. WC_INVALID_TAG: out holds zeros.
 * WC_INVALID_ARGUMENT also: the key is not an AEAD's, or the text of wc_open is shorter than a tag. */
WC_API wc_status wc_seal(const wc_key *key, void *out, size_t out_len, const void *in, size_t in_len, const void *nonce,
                         size_t nonce_len, const void *aad, size_t aad_len);
WC_API wc_status wc_open(const wc_key *key, void *out, size_t out_len, const void *in, size_t in_len, const void *nonce,
                         size_t nonce_len, const void *aad, size_t aad_len);

#ifdef __cplusplus
}
#endif

#endif /* WARPCIPHER_MESSAGES_H */
