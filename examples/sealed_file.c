/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of any length, encrypted as a whole and read at any place: the command `warpcipher` and Python's
 * warpcipher.formats read and write the same.
 *
 *   example_sealed_file                               seals a file of its own, and reads it here and there
 *   example_sealed_file seal KEYFILE CONTEXT IN OUT   KEYFILE has 16 or 32 random bytes
 *   example_sealed_file open KEYFILE CONTEXT IN OUT
 */
#define _POSIX_C_SOURCE 200809L /* fileno */

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warpcipher.h>

enum { PIECE = 1 << 20 };

/* Says what went wrong in the last call of the library, and stops. */
static void check(wc_status status, const char* what) {
  if (status == WC_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, wc_status_text(status), wc_last_error());
  exit(EXIT_FAILURE);
}

static void stop(const char* what) {
  perror(what);
  exit(EXIT_FAILURE);
}

static int open_path(const char* path, int flags) {
  const int file = open(path, flags, 0600);
  if (file < 0) stop(path);
  return file;
}

/* All of the plaintext, a piece at a time: each is authenticated when wc_file_read returns. */
static void write_plaintext(const wc_file* file, const char* path) {
  const int target = open_path(path, O_WRONLY | O_CREAT | O_EXCL);
  unsigned char* piece = malloc(PIECE);
  if (piece == NULL) stop("no memory");
  const uint64_t size = wc_file_size(file);
  for (uint64_t at = 0; at < size;) {
    const size_t len = size - at < PIECE ? (size_t)(size - at) : PIECE;
    check(wc_file_read(file, piece, len, WC_MEMORY_HOST, at, NULL), path);
    if (write(target, piece, len) != (ssize_t)len) stop(path);
    at += len;
  }
  free(piece);
  if (close(target) != 0) stop(path);
}

static void demonstrate(void) {
  unsigned char key[32], text[100], found[10];
  for (size_t i = 0; i < sizeof key; ++i) key[i] = (unsigned char)i; /* yours are random */
  FILE *plain = tmpfile(), *sealed = tmpfile();
  if (plain == NULL || sealed == NULL) stop("tmpfile");
  for (size_t i = 0; i < 1000; ++i) {
    memset(text, (int)i, sizeof text);
    if (fwrite(text, 1, sizeof text, plain) != sizeof text) stop("write");
  }
  rewind(plain);
  check(wc_seal_file(NULL, fileno(sealed), fileno(plain), key, sizeof key, "notes", 5), "seal");

  wc_file* file;
  check(wc_open_file(&file, NULL, fileno(sealed), key, sizeof key, "notes", 5), "open");
  check(wc_file_read(file, found, sizeof found, WC_MEMORY_HOST, 77700, NULL), "read");
  if (wc_file_size(file) != 100000 || found[0] != (777 & 0xff) || found[9] != found[0]) {
    fprintf(stderr, "the text did not come back\n");
    exit(EXIT_FAILURE);
  }
  wc_file_free(file);
  if (wc_open_file(&file, NULL, fileno(sealed), key, sizeof key, "others", 6) != WC_INVALID_TAG) {
    fprintf(stderr, "the context of another file was taken\n");
    exit(EXIT_FAILURE);
  }
  fclose(plain);
  fclose(sealed);
  printf("sealed 100000 bytes, read ten of them, and refused another context\n");
}

int main(int argc, char** argv) {
  if (argc == 1) {
    demonstrate();
    return EXIT_SUCCESS;
  }
  if (argc != 6 || (strcmp(argv[1], "seal") != 0 && strcmp(argv[1], "open") != 0)) {
    fprintf(stderr, "usage: %s [seal|open KEYFILE CONTEXT IN OUT]\n", argv[0]);
    return EXIT_FAILURE;
  }
  unsigned char key[33];
  const int key_file = open_path(argv[2], O_RDONLY), in = open_path(argv[4], O_RDONLY);
  const ssize_t key_len = read(key_file, key, sizeof key);
  if (key_len < 0) stop(argv[2]);
  const char* context = argv[3];
  if (strcmp(argv[1], "seal") == 0) {
    /* Nothing is overwritten. Where sealing fails, what was written is not whole: remove it. */
    const int out = open_path(argv[5], O_WRONLY | O_CREAT | O_EXCL);
    check(wc_seal_file(NULL, out, in, key, (size_t)key_len, context, strlen(context)), argv[4]);
    if (close(out) != 0) stop(argv[5]);
  } else {
    wc_file* file;
    check(wc_open_file(&file, NULL, in, key, (size_t)key_len, context, strlen(context)), argv[4]);
    write_plaintext(file, argv[5]);
    wc_file_free(file);
  }
  close(key_file);
  close(in);
  return EXIT_SUCCESS;
}
