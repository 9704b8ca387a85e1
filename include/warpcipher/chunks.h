/* SPDX-License-Identifier: Apache-2.0
 *
 * Chunks of an encrypted file. Part of warpcipher.h, which has the conventions.
 */
#ifndef WARPCIPHER_CHUNKS_H
#define WARPCIPHER_CHUNKS_H

#include <stdint.h>

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- chunks of an encrypted file ------------------------------------------------------------------------------- */

/* Chunks of a file, each an AEAD message, as arrays: [IV] ciphertext [tag], the IV in the file where ivs is NULL, the
 * tag where tags is NULL. All arrays lie in host memory and stay as they are during the call; they and bytes are apart
 * from out. Zero the struct first, then set what applies. */
typedef struct wc_file_chunks {
  int file; /* a descriptor that takes pread(); its position stays. 0 is one: give -1 for memory instead */
  const void *bytes; /* the file's content instead, of bytes_len bytes; NULL: the file, or with file -1 no bytes */
  size_t bytes_len;
  const wc_key *const *keys; /* key_count keys of the same AEAD */
  size_t key_count;
  const uint32_t *key_index; /* count entries below key_count; NULL if there is one key */
  size_t count; /* chunks */
  const uint64_t *offsets; /* count entries: of the first byte of each in the file */
  const uint64_t *lengths; /* count entries: of plaintext, and so of ciphertext. To a device a chunk takes at most 2^28
                              bytes, its tag included, and its IV where that is in the file */
  const void *ivs; /* count * iv_len bytes; NULL: in front of each ciphertext */
  size_t iv_len;
  const void *tags; /* count * tag_len bytes; NULL: after each ciphertext */
  size_t tag_len; /* as in wc_message */
  const void *aad; /* one buffer of aad_len bytes */
  size_t aad_len;
  const uint64_t *aad_offsets; /* count entries, with aad_lengths; NULL: every chunk takes the whole of aad */
  const uint64_t *aad_lengths;
  wc_memory memory; /* of out; device: the one that is current for the calling thread */
  void *out; /* one buffer of out_len bytes */
  size_t out_len;
  const uint64_t *out_offsets; /* count entries: of the bytes wanted; NULL: back to back */
  const uint64_t *skips; /* count entries, with takes: of chunk i takes[i] bytes are wanted, from skips[i] on */
  const uint64_t *takes; /* NULL: all of each */
  size_t threads; /* that read, the caller's among them; 0: as many as the process has cores; more are not used */
  size_t piece_len; /* bytes that a thread reads at once, or a whole chunk if that is longer; 0: the size measured to be
                       best. No longer than all chunks together, and 2^28 to a device */
} wc_file_chunks;

/* Reads chunks and decrypts them into `out`: threads read, and ciphertext is decrypted as it comes. To a device it
 * travels through page-locked memory, 512 MiB at most, and plaintext is only in device memory.
 *
 * engine   as in wc_run, of the memory that `out` lies in.
 * *failed  gets the index of the chunk that WC_INVALID_TAG or WC_READ_FAILED is about, the first of several; count
 *          otherwise. NULL allowed.
 * stream   a cudaStream_t of the device that holds `out`, or NULL: its work so far may use `out` until it is done.
 *
 * Returns when all is there and every tag was checked. WC_INVALID_ARGUMENT: nothing was written. On any other failure
 * `out` holds zeros wherever the chunks go. */
WC_API wc_status wc_read_chunks(const char *engine, size_t *failed, const wc_file_chunks *chunks, void *stream);

#ifdef __cplusplus
}
#endif

#endif /* WARPCIPHER_CHUNKS_H */
