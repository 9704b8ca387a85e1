/* SPDX-License-Identifier: Apache-2.0
 *
 * warpcipher: symmetric cryptography on GPUs and CPUs. The C ABI.
 *
 * examples/ has whole programs. C++ includes the same header; no function throws.
 *
 * Conventions, said once:
 *   - Parameter order: handle, outputs, inputs. Lengths (`*_len`) and offsets are in bytes.
 *   - Functions that can fail return a wc_status; wc_last_error() then tells what was given and what was expected. On
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

#include <stddef.h>
#include <stdint.h>

/* Of this header; wc_version() is of the library that runs. */
#define WC_VERSION_MAJOR 0
#define WC_VERSION_MINOR 1
#define WC_VERSION_PATCH 0
#define WC_VERSION "0.1.0"

#if defined(__GNUC__)
#define WC_API __attribute__((visibility("default")))
#else
#define WC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What a call, or a message of it, ended with. */
typedef enum wc_status {
  WC_OK = 0,
  WC_INVALID_ARGUMENT = 1,   /* what was given cannot be right: a length, a name, a pointer */
  WC_INVALID_TAG = 2,        /* a tag did not match; the output is zeros */
  WC_INVALID_PADDING = 3,    /* PKCS#7 padding did not match; the output is zeros */
  WC_ENGINE_UNAVAILABLE = 4, /* the engine is unknown, cannot run here, or failed its self-test */
  WC_ENGINE_FAILURE = 5,     /* CUDA or libcrypto failed while running */
  WC_OUT_OF_MEMORY = 6,
  WC_READ_FAILED = 7,        /* a file could not be read, or ends too early */
  WC_QUEUE_FULL = 8,         /* the queue's memory limit left no room in time */
  WC_QUEUE_CLOSED = 9,       /* the queue takes no more messages */
  WC_CANCELLED = 10          /* the message was taken back before it was launched; nothing was written */
} wc_status;

/* Which way a message goes. */
typedef enum wc_direction { WC_ENCRYPT = 0, WC_DECRYPT = 1 } wc_direction;

/* What is added to texts that are no whole number of blocks. */
typedef enum wc_padding { WC_PADDING_NONE = 0, WC_PADDING_PKCS7 = 1 } wc_padding;

/* Where data lie. */
typedef enum wc_memory { WC_MEMORY_HOST = 0, WC_MEMORY_DEVICE = 1 } wc_memory;

/* The IV that an algorithm takes. */
typedef enum wc_iv_rule {
  WC_IV_NONE = 0,  /* the mode takes no IV */
  WC_IV_BLOCK = 1, /* exactly block_len bytes */
  WC_IV_ANY = 2,   /* one byte or more; 12 is the usual length (GCM) */
  WC_IV_FIXED = 3  /* exactly wc_algorithm_info.iv_len bytes, which are not a block */
} wc_iv_rule;

/* The library's version, "major.minor.patch". */
WC_API const char *wc_version(void);

/* A short name of a status, such as "invalid tag". Never NULL. */
WC_API const char *wc_status_text(wc_status status);

/* What went wrong in the last failed call of this thread. Never NULL, never a secret; valid until the thread's next
 * failing call. */
WC_API const char *wc_last_error(void);

/* ---- what there is -------------------------------------------------------------------------------------------- */

/* One algorithm. */
typedef struct wc_algorithm_info {
  const char *name;    /* lives as long as the library */
  size_t key_len;      /* bytes; XTS counts both keys */
  size_t block_len;    /* bytes */
  wc_iv_rule iv_rule;
  int is_aead;         /* takes AAD and a tag */
  int whole_blocks;    /* without padding the text is a multiple of block_len */
  int takes_padding;   /* WC_PADDING_PKCS7 is allowed */
  int parallel_encrypt; /* blocks of one message are independent */
  int parallel_decrypt;
  size_t iv_len;       /* bytes of IV or nonce; the usual length for WC_IV_ANY */
} wc_algorithm_info;

/* How many algorithms wc_algorithm_at() lists. */
WC_API size_t wc_algorithm_count(void);

/* Fills *info for algorithm `index` < wc_algorithm_count(); else WC_INVALID_ARGUMENT. */
WC_API wc_status wc_algorithm_at(wc_algorithm_info *info, size_t index);

/* One engine. */
typedef struct wc_engine_info {
  const char *name;        /* "cpu", "cuda", "reference" */
  const char *description;
  int usable;              /* 1 when it can run here */
  const char *reason;      /* why not and what to do; "" when usable */
  wc_memory memory;        /* where it wants its data; host data are brought to a device engine in pieces */
} wc_engine_info;

/* How many engines wc_engine_at() lists. */
WC_API size_t wc_engine_count(void);

/* Fills *info for engine `index` < wc_engine_count(); else WC_INVALID_ARGUMENT. Its texts outlive all calls. */
WC_API wc_status wc_engine_at(wc_engine_info *info, size_t index);

/* Writes 1 to *constant_time when the engine's time for this algorithm does not depend on keys or data, else 0.
 * WC_INVALID_ARGUMENT: one of the names is unknown. */
WC_API wc_status wc_engine_constant_time(int *constant_time, const char *engine, const char *algorithm);

/* ---- keys ----------------------------------------------------------------------------------------------------- */

/* A key bound to an algorithm, with what engines derive from it. */
typedef struct wc_key wc_key;

/* Copies key_len bytes of key from host memory. WC_INVALID_ARGUMENT: unknown algorithm, key_len is not the
 * algorithm's, or the halves of an XTS key are equal. Free with wc_key_free. */
WC_API wc_status wc_key_new(wc_key **out, const char *algorithm, const void *key, size_t key_len);

/* Wipes and frees a key. No run that uses it may be under way, on the host or on a stream. NULL is allowed. */
WC_API void wc_key_free(wc_key *key);

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
  const uint32_t *key_index; /* count entries below key_count; NULL where there is one key */
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
  size_t piece_len; /* bytes that a thread reads at once, or a whole chunk if that is longer; 0: what was measured to be
                       best. No longer than all chunks together, and 2^28 to a device */
} wc_file_chunks;

/* Reads chunks and decrypts them into `out`: threads read, and ciphertext is decrypted as it comes. To a device it
 * travels through page-locked memory, 512 MiB at most, and plaintext is in device memory alone.
 *
 * engine   as in wc_run, of the memory that `out` lies in.
 * *failed  gets the index of the chunk that WC_INVALID_TAG or WC_READ_FAILED is about, the first of several; count
 *          otherwise. NULL allowed.
 * stream   a cudaStream_t of the device that holds `out`, or NULL: what is on it now may use `out` until it is done.
 *
 * Returns when all is there and every tag was checked. WC_INVALID_ARGUMENT: nothing was written. On any other failure
 * `out` holds zeros wherever the chunks go. */
WC_API wc_status wc_read_chunks(const char *engine, size_t *failed, const wc_file_chunks *chunks, void *stream);

/* ---- one message in host memory, the common case -------------------------------------------------------------- */

/* Encrypts or decrypts in_len bytes with the automatic engine. *written gets the bytes of text at out (NULL allowed).
 * For algorithms that are not AEADs, else WC_INVALID_ARGUMENT. iv_len is 0 for ECB. out_len: see wc_message. */
WC_API wc_status wc_encrypt(const wc_key *key, void *out, size_t out_len, size_t *written, const void *in,
                            size_t in_len, const void *iv, size_t iv_len, wc_padding padding);
WC_API wc_status wc_decrypt(const wc_key *key, void *out, size_t out_len, size_t *written, const void *in,
                            size_t in_len, const void *iv, size_t iv_len, wc_padding padding);

/* AEAD with a 16-byte tag after the ciphertext: seal writes in_len + 16 bytes to out, open writes in_len - 16 bytes;
 * out_len is at least that. A nonce must never be used twice with one key. WC_INVALID_TAG: out holds zeros.
 * WC_INVALID_ARGUMENT also: the key is no AEAD's, or there is no room for a tag in what wc_open is given. */
WC_API wc_status wc_seal(const wc_key *key, void *out, size_t out_len, const void *in, size_t in_len, const void *nonce,
                         size_t nonce_len, const void *aad, size_t aad_len);
WC_API wc_status wc_open(const wc_key *key, void *out, size_t out_len, const void *in, size_t in_len, const void *nonce,
                         size_t nonce_len, const void *aad, size_t aad_len);

/* ---- a queue: messages that come one by one, from many threads ------------------------------------------------- */

/* Makes batches of messages in host memory, by size and age, and runs them on threads of its own. */
typedef struct wc_queue wc_queue;

/* A message in a queue. */
typedef struct wc_job wc_job;

/* The limits of a queue. Zero the struct first; 0 stands for the default. */
typedef struct wc_queue_limits {
  size_t max_bytes; /* text of one batch; a longer message makes one by itself; default 8 MiB */
  size_t max_messages; /* messages of one batch; default 4096 */
  uint64_t max_delay_us; /* how long a message may wait for company; default 200 */
  size_t memory_limit; /* bytes that messages which wait or run keep busy; default 256 MiB */
  size_t max_in_flight; /* batches that run at once; default 4, 8 where they may go to a GPU */
} wc_queue_limits;

/* What a queue has done, and what is in it now. */
typedef struct wc_queue_statistics {
  uint64_t batches;
  uint64_t messages;
  uint64_t bytes; /* of text */
  uint64_t failed; /* messages that could not be run */
  uint64_t cancelled;
  uint64_t refused; /* for which there was no memory in time */
  size_t waiting; /* now */
  size_t memory_used; /* now */
  size_t most_memory_used;
} wc_queue_statistics;

/* Called once for each message that is done or cancelled, on a thread of the queue. result->status may also be
 * WC_CANCELLED, or why the message could not run, which `failure` then tells in words ("" else). Both are valid during
 * the call alone. What the message points to may be freed here. It must return soon, as other messages of the batch
 * wait, and throw nothing. It may submit; that does not wait for memory then. */
typedef void (*wc_queue_callback)(void *context, const wc_result *result, const char *failure);

/* A queue for an engine, named as in wc_run. limits: NULL for the defaults. Free it with wc_queue_free before the
 * process exits, as a batch. WC_ENGINE_UNAVAILABLE: the engine cannot run here. */
WC_API wc_status wc_queue_new(wc_queue **out, const char *engine, const wc_queue_limits *limits);

/* Hands a message over. The struct is copied; its key and what it points to must stay until it is done or cancelled.
 *
 * job         gets a handle to wait for, which wc_job_free frees; NULL: none is wanted.
 * submitter   tells clients apart: batches take them in turn, and memory goes to the one that holds least.
 * timeout_us  how long to wait for memory; negative: as long as it takes; 0: not at all.
 * callback    NULL: none; context: given to it.
 *
 * WC_INVALID_ARGUMENT: the message cannot be right, lies in device memory, or needs more than memory_limit.
 * WC_QUEUE_FULL, WC_QUEUE_CLOSED: it was not taken. Unless WC_OK the callback is never called. */
WC_API wc_status wc_queue_submit(wc_queue *queue, wc_job **job, const wc_message *message, uint64_t submitter,
                                 int64_t timeout_us, wc_queue_callback callback, void *context);

/* Takes a message back that has not been launched: writes 1 to *cancelled (NULL allowed), 0 when it is too late. Its
 * callback is not called. */
WC_API wc_status wc_queue_cancel(int *cancelled, wc_queue *queue, wc_job *job);

/* Launches what is waiting now without further delay. */
WC_API wc_status wc_queue_flush(wc_queue *queue);

/* Takes no more messages, and waits until all are done and their callbacks have returned. cancel: cancels messages
 * that are not launched. May be called again. WC_INVALID_ARGUMENT: called from a callback: it would wait for itself. */
WC_API wc_status wc_queue_close(wc_queue *queue, int cancel);

/* Fills *statistics. */
WC_API wc_status wc_queue_stats(wc_queue_statistics *statistics, const wc_queue *queue);

/* As wc_queue_close without cancelling, and frees the queue; not from a callback. In the child of a fork it waits for
 * nothing. NULL is allowed. */
WC_API void wc_queue_free(wc_queue *queue);

/* Waits up to timeout_us (negative: as long as it takes; 0: not at all) until the message is done or cancelled. Writes
 * 1 to *done (NULL allowed) and fills *result (NULL allowed) if so, and returns its status; else 0, and WC_OK. The
 * callback may still be running. Any number of threads may wait. */
WC_API wc_status wc_job_wait(int *done, wc_result *result, const wc_job *job, int64_t timeout_us);

/* Lets go of a handle. The message goes on. NULL is allowed. */
WC_API void wc_job_free(wc_job *job);

/* ---- random arrays -------------------------------------------------------------------------------------------- */

/* A stream of random bytes: a function of algorithm, key and number, the same on every engine and machine, 2^56 bytes
 * long. Whoever takes a part of it twice gets the same twice, so a key is kept as any other. */
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

#endif /* WARPCIPHER_H */
