/* SPDX-License-Identifier: Apache-2.0
 *
 * A queue of messages. Part of warpcipher.h, which has the conventions.
 */
#ifndef WARPCIPHER_QUEUE_H
#define WARPCIPHER_QUEUE_H

#include <stdint.h>

#include "messages.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a queue: messages that come one by one, from many threads ------------------------------------------------- */

/* Makes batches of messages in host memory, by size and age, and runs them on its own threads. */
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

/* Counts of a queue's work, and its present content. */
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
 * WC_CANCELLED, or why the message could not run, with `failure` in words ("" else). Both are valid during
 * only this call. The memory of the message may be freed here. It must return soon, as other messages of the batch
 * wait, and throw nothing. It may submit; that does not wait for memory then. */
typedef void (*wc_queue_callback)(void *context, const wc_result *result, const char *failure);

/* A queue for an engine, named as in wc_run. limits: NULL for the defaults. Free it with wc_queue_free before the
 * process exits, as a batch. WC_ENGINE_UNAVAILABLE: the engine cannot run here. */
WC_API wc_status wc_queue_new(wc_queue **out, const char *engine, const wc_queue_limits *limits);

/* Hands a message over. The struct is copied; its key and what it points to must stay until it is done or cancelled.
 *
 * job         gets a handle to wait for, which wc_job_free frees; NULL: none is wanted.
 * submitter   identifies a client: batches take them in turn, and memory goes to the one that holds least.
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

/* Launches the waiting messages without further delay. */
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

/* Lets go of a handle. The message continues. NULL is allowed. */
WC_API void wc_job_free(wc_job *job);

#ifdef __cplusplus
}
#endif

#endif /* WARPCIPHER_QUEUE_H */
