/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of several senders, each under its sender's key, sealed as one batch in the background while the program does
 * something else:
 *
 *   example_batch
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warpcipher.h>

enum { SENDERS = 3, RECORDS = 1000, RECORD_LEN = 200, KEY_LEN = 16, NONCE_LEN = 12, TAG_LEN = 16 };

struct record {
  unsigned char text[RECORD_LEN];
  unsigned char sealed[RECORD_LEN];
  unsigned char tag[TAG_LEN];
  unsigned char nonce[NONCE_LEN];
};

/* Prints the error of the last call of the library, and stops. */
static void check(wc_status status, const char* what) {
  if (status == WC_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, wc_status_text(status), wc_last_error());
  exit(EXIT_FAILURE);
}

static void random_bytes(void* out, size_t len) {
  FILE* file = fopen("/dev/urandom", "rb");
  if (file == NULL || fread(out, 1, len, file) != len) {
    perror("cannot read /dev/urandom");
    exit(EXIT_FAILURE);
  }
  fclose(file);
}

int main(void) {
  wc_key* keys[SENDERS];
  for (int k = 0; k < SENDERS; ++k) {
    unsigned char bytes[KEY_LEN];
    random_bytes(bytes, sizeof bytes);
    check(wc_key_new(&keys[k], "aes-128-gcm", bytes, sizeof bytes), "wc_key_new");
    memset(bytes, 0, sizeof bytes);
  }
  struct record* records = calloc(RECORDS, sizeof *records);
  if (records == NULL) return EXIT_FAILURE;

  wc_batch* batch;
  check(wc_batch_new(&batch, "auto"), "wc_batch_new");
  for (int i = 0; i < RECORDS; ++i) {
    struct record* r = &records[i];
    snprintf((char*)r->text, sizeof r->text, "record %d", i);
    memcpy(r->nonce, &i, sizeof i); /* never the same twice under one key */
    wc_message m = {0};
    m.key = keys[i % SENDERS];
    m.direction = WC_ENCRYPT;
    m.in = r->text;
    m.in_len = RECORD_LEN;
    m.out = r->sealed;
    m.out_len = RECORD_LEN;
    m.iv = r->nonce;
    m.iv_len = NONCE_LEN;
    m.tag = r->tag;
    m.tag_len = TAG_LEN;
    check(wc_batch_add(batch, NULL, &m), "wc_batch_add");
  }
  check(wc_batch_start(batch, NULL), "wc_batch_start");
  /* Something else may be done here; wc_batch_query says whether the batch is done. */
  check(wc_batch_wait(batch), "wc_batch_wait");

  size_t written = 0;
  for (int i = 0; i < RECORDS; ++i) {
    wc_result result;
    check(wc_batch_result(&result, batch, (size_t)i), "wc_batch_result");
    written += result.written;
  }
  wc_batch_free(batch);
  printf("sealed %d records, %zu bytes\n", RECORDS, written);
  free(records);
  for (int k = 0; k < SENDERS; ++k) wc_key_free(keys[k]);
  return written == (size_t)RECORDS * RECORD_LEN ? EXIT_SUCCESS : EXIT_FAILURE;
}
