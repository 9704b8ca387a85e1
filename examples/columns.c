/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages of different lengths that lie in one buffer, sealed in one call and opened again, with no struct for each:
 *
 *   example_columns
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warpcipher.h>

enum { PAGES = 1000, PAGE_LEN = 300, KEY_LEN = 32, NONCE_LEN = 12, TAG_LEN = 16 };

static unsigned char text[PAGES * PAGE_LEN], sealed[PAGES * (PAGE_LEN + TAG_LEN)], opened[PAGES * PAGE_LEN];
static unsigned char nonces[PAGES][NONCE_LEN];
static uint64_t lengths[PAGES];
static wc_result results[PAGES];

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
  unsigned char key_bytes[KEY_LEN];
  random_bytes(key_bytes, sizeof key_bytes);
  wc_key* key = NULL;
  check(wc_key_new(&key, "aes-256-gcm", key_bytes, sizeof key_bytes), "wc_key_new");
  memset(key_bytes, 0, sizeof key_bytes);
  const wc_key* keys[] = {key};

  size_t text_len = 0;
  for (uint32_t i = 0; i < PAGES; ++i) {
    lengths[i] = 1 + i % PAGE_LEN;
    text_len += lengths[i];
    memcpy(nonces[i], &i, sizeof i); /* never the same twice under one key */
  }
  random_bytes(text, text_len);

  wc_columns columns = {0};
  columns.direction = WC_ENCRYPT;
  columns.keys = keys;
  columns.key_count = 1;
  columns.count = PAGES;
  columns.in = text; /* back to back, as in_offsets is NULL */
  columns.in_len = text_len;
  columns.in_lengths = lengths;
  columns.out = sealed;
  columns.out_len = sizeof sealed;
  columns.ivs = nonces;
  columns.iv_len = NONCE_LEN;
  columns.tag_len = TAG_LEN;
  check(wc_run_columns("auto", results, &columns, NULL), "seal");

  size_t sealed_len = 0;
  for (int i = 0; i < PAGES; ++i) {
    lengths[i] = results[i].written; /* with the tag */
    sealed_len += results[i].written;
  }
  columns.direction = WC_DECRYPT;
  columns.in = sealed;
  columns.in_len = sealed_len;
  columns.out = opened;
  columns.out_len = sizeof opened;
  check(wc_run_columns("auto", results, &columns, NULL), "open");

  /* One page is changed: it fails, and the others are opened all the same. */
  const int back = memcmp(text, opened, text_len) == 0;
  sealed[0] ^= 1;
  const wc_status status = wc_run_columns("auto", results, &columns, NULL);
  printf("sealed and opened %d pages, %zu bytes; with one changed: %s\n", PAGES, text_len, wc_status_text(status));
  wc_key_free(key);
  return back && status == WC_INVALID_TAG && results[0].status == WC_INVALID_TAG && results[1].status == WC_OK
             ? EXIT_SUCCESS
             : EXIT_FAILURE;
}
