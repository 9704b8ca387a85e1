/* SPDX-License-Identifier: Apache-2.0
 *
 * Encrypted files: sealed as a whole, and read at any place. Part of warpcipher.h, which has the conventions.
 */
#ifndef WARPCIPHER_FILES_H
#define WARPCIPHER_FILES_H

#include <stdint.h>

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- encrypted files ------------------------------------------------------------------------------------------ */

/* The format is C2SP chunked encryption (c2sp.org/chunked-encryption@v1): Cobblestone-128 with a key of 16
 * bytes, Cobblestone-256 with one of 32, uniformly random. Python's warpcipher.formats and the command read and write
 * the same. A file of n bytes of text has n + 56 + 16 * (n / 16384 + 1) bytes. */

/* Encrypts a file under fresh random salt.
 *
 * engine   "auto", NULL for the same, or the name of an engine.
 * target   a descriptor; written from its position on, which is then behind the file.
 * source   a descriptor; read from its position to its end. Both may be pipes. From a regular file to a regular one,
 *          whose position is its end, full chunks go on all cores. Source and target are not one file.
 * key      key_len bytes, 16 or 32, in host memory.
 * context  context_len bytes that are bound to the file and not stored in it: wc_open_file needs them again. NULL where
 *          there are none.
 *
 * WC_INVALID_ARGUMENT: nothing was written, except where a source of more than 2^52 bytes is a pipe. WC_READ_FAILED,
 * WC_WRITE_FAILED: wc_last_error() has the system's error. On any status but WC_OK target has at most the beginning of
 * a file, which no key opens as a whole: remove it. A closed pipe raises SIGPIPE, as write() does. */
WC_API wc_status wc_seal_file(const char *engine, int target, int source, const void *key, size_t key_len,
                              const void *context, size_t context_len);

/* A file that is open for reading, with its keys. */
typedef struct wc_file wc_file;

/* Opens an encrypted file, and checks that its header belongs to key and context, and that the file ends with its final
 * chunk.
 *
 * *out     gets the handle. Free with wc_file_free.
 * engine   as of wc_seal_file; it decrypts what wc_file_read reads.
 * file     a descriptor of a regular file that begins at byte 0 and stays as it is; its position stays, too. The handle
 *          has a duplicate of its own. key, context: as of wc_seal_file; only derived keys are kept.
 *
 * WC_INVALID_TAG: wrong key or context, a damaged header, another format, or a file that was cut or added to.
 * WC_READ_FAILED: the file cannot be read, or no encrypted file has its size. */
WC_API wc_status wc_open_file(wc_file **out, const char *engine, int file, const void *key, size_t key_len,
                              const void *context, size_t context_len);

/* Bytes of plaintext; 0 for NULL. */
WC_API uint64_t wc_file_size(const wc_file *file);

/* Fills out with out_len bytes of plaintext from byte `offset` on: threads read, and ciphertext is decrypted as it
 * comes. From several threads at once, too.
 *
 * memory   where `out` lies; device: the one that is current for the calling thread. Plaintext is then only in
 *          device memory.
 * stream   a cudaStream_t of the device that holds `out`, or NULL: its work so far may use `out` until it is done.
 *
 * Returns when all is there and every chunk of the range was authenticated. WC_INVALID_ARGUMENT: nothing was written,
 * for example as the file has no such range. WC_INVALID_TAG: the file was damaged, cut, reordered or added to.
 * WC_READ_FAILED: it cannot be read. On these `out` is zeros. */
WC_API wc_status wc_file_read(const wc_file *file, void *out, size_t out_len, wc_memory memory, uint64_t offset,
                              void *stream);

/* Wipes the keys and closes the handle's own descriptor. No read may be under way. NULL is allowed. */
WC_API void wc_file_free(wc_file *file);

#ifdef __cplusplus
}
#endif

#endif /* WARPCIPHER_FILES_H */
