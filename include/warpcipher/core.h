/* SPDX-License-Identifier: Apache-2.0
 *
 * Version, status, algorithms, engines and keys. Part of warpcipher.h, which has the conventions.
 */
#ifndef WARPCIPHER_CORE_H
#define WARPCIPHER_CORE_H

#include <stddef.h>

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

/* The outcome of a call, or of a message of it. */
typedef enum wc_status {
  WC_OK = 0,
  WC_INVALID_ARGUMENT = 1,   /* the input cannot be right: a length, a name, a pointer */
  WC_INVALID_TAG = 2,        /* a tag did not match; the output is zeros */
  WC_INVALID_PADDING = 3,    /* PKCS#7 padding did not match; the output is zeros */
  WC_ENGINE_UNAVAILABLE = 4, /* the engine is unknown, cannot run here, or failed its self-test */
  WC_ENGINE_FAILURE = 5,     /* CUDA or libcrypto failed while running */
  WC_OUT_OF_MEMORY = 6,
  WC_READ_FAILED = 7,        /* a file could not be read, or ends too early */
  WC_QUEUE_FULL = 8,         /* the queue's memory limit left no room in time */
  WC_QUEUE_CLOSED = 9,       /* the queue takes no more messages */
  WC_CANCELLED = 10,         /* the message was taken back before it was launched; nothing was written */
  WC_WRITE_FAILED = 11       /* a file could not be written */
} wc_status;

/* Which way a message goes. */
typedef enum wc_direction { WC_ENCRYPT = 0, WC_DECRYPT = 1 } wc_direction;

/* The padding of texts that are not a whole number of blocks. */
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

/* The error of the last failed call of this thread. Never NULL, never a secret; valid until the thread's next
 * failing call. */
WC_API const char *wc_last_error(void);

/* ---- algorithms, engines -------------------------------------------------------------------------------------- */

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

#ifdef __cplusplus
}
#endif

#endif /* WARPCIPHER_CORE_H */
