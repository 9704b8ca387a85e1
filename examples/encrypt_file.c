/* SPDX-License-Identifier: Apache-2.0
 *
 * A file sealed with AES-256-GCM and opened again, with nothing but warpcipher.h:
 *
 *   example_encrypt_file                          makes up a file in memory and goes there and back
 *   example_encrypt_file seal KEYFILE IN OUT      OUT is nonce || ciphertext || tag
 *   example_encrypt_file open KEYFILE IN OUT
 *
 * KEYFILE holds 32 random bytes. The whole file is one message in memory; sealed_file.c has large files and random
 * access.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warpcipher.h>

enum { KEY_LEN = 32, NONCE_LEN = 12, TAG_LEN = 16 };

/* Prints the error of the last call of the library, and stops. */
static void check(wc_status status, const char* what) {
  if (status == WC_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, wc_status_text(status), wc_last_error());
  exit(EXIT_FAILURE);
}

static void stop(const char* what, const char* path) {
  fprintf(stderr, "%s: ", what);
  perror(path);
  exit(EXIT_FAILURE);
}

/* The whole of a file; free() the result. */
static unsigned char* read_file(const char* path, size_t* len) {
  FILE* file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) stop("cannot read", path);
  const long size = ftell(file);
  rewind(file);
  *len = size > 0 ? (size_t)size : 0;
  unsigned char* data = malloc(*len + 1); /* never a request for zero bytes */
  if (size < 0 || data == NULL || fread(data, 1, *len, file) != *len) stop("cannot read", path);
  fclose(file);
  return data;
}

static void write_file(const char* path, const void* head, size_t head_len, const void* body, size_t body_len) {
  FILE* file = fopen(path, "wb");
  if (file == NULL || fwrite(head, 1, head_len, file) != head_len || fwrite(body, 1, body_len, file) != body_len ||
      fclose(file) != 0) {
    stop("cannot write", path);
  }
}

static void random_bytes(void* out, size_t len) {
  FILE* file = fopen("/dev/urandom", "rb");
  if (file == NULL || fread(out, 1, len, file) != len) stop("cannot read", "/dev/urandom");
  fclose(file);
}

static void seal_file(const wc_key* key, const char* in_path, const char* out_path) {
  size_t len;
  unsigned char* data = read_file(in_path, &len);
  unsigned char* sealed = malloc(len + TAG_LEN);
  if (sealed == NULL) stop("no memory for", in_path);
  unsigned char nonce[NONCE_LEN];
  random_bytes(nonce, sizeof nonce); /* must never repeat under one key */
  check(wc_seal(key, sealed, len + TAG_LEN, data, len, nonce, sizeof nonce, NULL, 0), in_path);
  write_file(out_path, nonce, sizeof nonce, sealed, len + TAG_LEN);
  free(data);
  free(sealed);
}

static void open_file(const wc_key* key, const char* in_path, const char* out_path) {
  size_t len;
  unsigned char* data = read_file(in_path, &len);
  if (len < NONCE_LEN + TAG_LEN) {
    fprintf(stderr, "%s: too short to hold a nonce and a tag\n", in_path);
    exit(EXIT_FAILURE);
  }
  const size_t text_len = len - NONCE_LEN - TAG_LEN;
  unsigned char* text = malloc(text_len + 1);
  if (text == NULL) stop("no memory for", in_path);
  /* Checked before the output exists: a file that was altered leaves nothing behind. */
  check(wc_open(key, text, text_len, data + NONCE_LEN, len - NONCE_LEN, data, NONCE_LEN, NULL, 0), in_path);
  write_file(out_path, NULL, 0, text, text_len);
  free(data);
  free(text);
}

/* Without arguments: there and back, and a look at a forgery. */
static void demonstrate(const wc_key* key) {
  const char text[] = "The quick brown fox jumps over the lazy dog";
  unsigned char sealed[sizeof text + TAG_LEN], opened[sizeof text], nonce[NONCE_LEN];
  random_bytes(nonce, sizeof nonce);
  check(wc_seal(key, sealed, sizeof sealed, text, sizeof text, nonce, sizeof nonce, NULL, 0), "seal");
  check(wc_open(key, opened, sizeof opened, sealed, sizeof sealed, nonce, sizeof nonce, NULL, 0), "open");
  if (memcmp(text, opened, sizeof text) != 0) {
    fprintf(stderr, "the text did not come back\n");
    exit(EXIT_FAILURE);
  }
  sealed[0] ^= 1;
  const wc_status forged = wc_open(key, opened, sizeof opened, sealed, sizeof sealed, nonce, sizeof nonce, NULL, 0);
  if (forged != WC_INVALID_TAG || opened[0] != 0) {
    fprintf(stderr, "a forgery was not refused\n");
    exit(EXIT_FAILURE);
  }
  printf("warpcipher %s sealed and opened %zu bytes; a forgery gave: %s\n", wc_version(), sizeof text, wc_last_error());
}

int main(int argc, char** argv) {
  unsigned char key_bytes[KEY_LEN];
  const int demonstration = argc == 1;
  if (demonstration) {
    random_bytes(key_bytes, sizeof key_bytes);
  } else if (argc == 5 && (strcmp(argv[1], "seal") == 0 || strcmp(argv[1], "open") == 0)) {
    size_t len;
    unsigned char* data = read_file(argv[2], &len);
    if (len != KEY_LEN) {
      fprintf(stderr, "%s: a key of %d bytes is expected, this file has %zu\n", argv[2], KEY_LEN, len);
      return EXIT_FAILURE;
    }
    memcpy(key_bytes, data, KEY_LEN);
    free(data);
  } else {
    fprintf(stderr, "usage: %s [seal|open KEYFILE IN OUT]\n", argv[0]);
    return 2;
  }

  wc_key* key = NULL;
  check(wc_key_new(&key, "aes-256-gcm", key_bytes, sizeof key_bytes), "key");
  if (demonstration) {
    demonstrate(key);
  } else if (strcmp(argv[1], "seal") == 0) {
    seal_file(key, argv[3], argv[4]);
  } else {
    open_file(key, argv[3], argv[4]);
  }
  wc_key_free(key);
  return EXIT_SUCCESS;
}
