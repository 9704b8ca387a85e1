// SPDX-License-Identifier: Apache-2.0
// The C ABI: encrypted files, and chunks of them.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capi/boundary.hpp"
#include "flow/file/cobblestone.hpp"
#include "flow/file/read_chunks.hpp"
#include "warpcipher.h"

using warpcipher::ReadFailure;
using warpcipher::Status;
using warpcipher::capi::bytes;
using warpcipher::capi::column;
using warpcipher::capi::engine_name;
using warpcipher::capi::fail;
using warpcipher::capi::guarded;
using warpcipher::capi::require;
using warpcipher::capi::to_memory;

// A descriptor of the handle's own, closed with it.
struct wc_file {
  struct Descriptor {
    explicit Descriptor(int given) : number(fcntl(given, F_DUPFD_CLOEXEC, 0)) {
      if (number >= 0) return;
      throw warpcipher::Error(Status::read_failed, std::string("the file cannot be read: ") + std::strerror(errno));
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() { close(number); }

    const int number;
  };

  wc_file(std::string_view engine, int file, std::span<const std::uint8_t> key, std::span<const std::uint8_t> context)
      : descriptor(file), content(engine, descriptor.number, key, context) {}

  const Descriptor descriptor;
  const warpcipher::CobblestoneFile content;
};

namespace {

std::span<const std::uint8_t> given(const char* name, const void* data, std::size_t len) {
  warpcipher::check_buffer_len(name, len);
  require(data != nullptr || len == 0, (std::string(name) + " is a null pointer").c_str());
  return {bytes(data), len};
}

void check_pointers(const wc_file_chunks& c) {
  require(c.keys != nullptr && c.key_count != 0, "keys is a null pointer or key_count is 0");
  require(c.key_count <= UINT32_MAX, "key_count is above 2^32 - 1");
  require(c.bytes != nullptr || c.bytes_len == 0, "bytes is a null pointer");
  require(c.count == 0 || c.offsets != nullptr, "offsets is a null pointer");
  require(c.count == 0 || c.lengths != nullptr, "lengths is a null pointer");
  require(c.out != nullptr || c.out_len == 0, "out is a null pointer");
  require(c.aad != nullptr || c.aad_len == 0, "aad is a null pointer");
  warpcipher::check_message_count(c.count);
  warpcipher::check_buffer_len("an IV", c.iv_len);
  warpcipher::check_buffer_len("a tag", c.tag_len);
  require(c.iv_len == 0 || c.count <= SIZE_MAX / c.iv_len, "count times iv_len is too large");
  require(c.tag_len == 0 || c.count <= SIZE_MAX / c.tag_len, "count times tag_len is too large");
}

wc_status report(const ReadFailure& failure) {
  const std::string chunk = "chunk " + std::to_string(failure.chunk);
  switch (failure.kind) {
    case ReadFailure::Kind::bad_tag:
      return fail(Status::invalid_tag,
                  (chunk + ": the tag does not match: wrong key, IV or AAD, or damaged data").c_str());
    case ReadFailure::Kind::ended:
      return fail(Status::read_failed, (chunk + ": the file ends at byte " + std::to_string(failure.position)).c_str());
    case ReadFailure::Kind::error: break;
  }
  return fail(Status::read_failed, (chunk + ": byte " + std::to_string(failure.position) +
                                    " of the file cannot be read: " + std::strerror(failure.error))
                                       .c_str());
}

}  // namespace

wc_status wc_read_chunks(const char* engine, size_t* failed, const wc_file_chunks* chunks, void* stream) {
  return guarded([&] {
    require(chunks != nullptr, "chunks is a null pointer");
    const wc_file_chunks& c = *chunks;
    if (failed != nullptr) *failed = c.count;
    check_pointers(c);
    std::vector<const warpcipher::Key*> keys;
    keys.reserve(c.key_count);
    for (std::size_t i = 0; i < c.key_count; ++i) {
      require(c.keys[i] != nullptr, "one of keys is a null pointer");
      keys.push_back(&c.keys[i]->key);
    }
    warpcipher::FileChunks converted;
    converted.source.descriptor = c.bytes != nullptr || c.file < 0 ? -1 : c.file;
    converted.source.bytes = {bytes(c.bytes), c.bytes_len};
    converted.count = c.count;
    converted.keys = keys;
    converted.key_index = column(c.key_index, c.count);
    converted.file_offsets = column(c.offsets, c.count);
    converted.lengths = column(c.lengths, c.count);
    converted.ivs = column(bytes(c.ivs), c.count * c.iv_len);
    converted.iv_len = c.iv_len;
    converted.aad = {bytes(c.aad), c.aad_len};
    converted.aad_offsets = column(c.aad_offsets, c.count);
    converted.aad_lengths = column(c.aad_lengths, c.count);
    converted.tags = column(bytes(c.tags), c.count * c.tag_len);
    converted.tag_len = c.tag_len;
    converted.memory = to_memory(c.memory);
    converted.out = {bytes(c.out), c.out_len};
    converted.out_offsets = column(c.out_offsets, c.count);
    converted.skips = column(c.skips, c.count);
    converted.takes = column(c.takes, c.count);
    warpcipher::ReadOptions options;
    options.threads = c.threads;
    options.piece_len = c.piece_len;
    const auto failure = warpcipher::read_chunks(engine_name(engine), converted, stream, options);
    if (!failure) return WC_OK;
    if (failed != nullptr) *failed = failure->chunk;
    return report(*failure);
  });
}

wc_status wc_seal_file(const char* engine, int target, int source, const void* key, size_t key_len, const void* context,
                       size_t context_len) {
  return guarded([&] {
    if (engine_name(engine) != "auto") warpcipher::find_engine(engine_name(engine));  // before the header is written
    const auto failure = warpcipher::seal_cobblestone(engine_name(engine), target, source, given("key", key, key_len),
                                                      given("context", context, context_len));
    if (!failure) return WC_OK;
    const bool is_read = failure->kind == warpcipher::FileFailure::Kind::read;
    const std::string text =
        std::string(is_read ? "source cannot be read: " : "target cannot be written: ") + std::strerror(failure->error);
    return fail(is_read ? WC_READ_FAILED : WC_WRITE_FAILED, text.c_str());
  });
}

wc_status wc_open_file(wc_file** out, const char* engine, int file, const void* key, size_t key_len,
                       const void* context, size_t context_len) {
  return guarded([&] {
    require(out != nullptr, "out is a null pointer");
    *out = nullptr;
    *out = new wc_file(engine_name(engine), file, given("key", key, key_len), given("context", context, context_len));
    return WC_OK;
  });
}

uint64_t wc_file_size(const wc_file* file) { return file == nullptr ? 0 : file->content.size(); }

wc_status wc_file_read(const wc_file* file, void* out, size_t out_len, wc_memory memory, uint64_t offset,
                       void* stream) {
  return guarded([&] {
    require(file != nullptr, "file is a null pointer");
    require(out != nullptr || out_len == 0, "out is a null pointer");
    warpcipher::check_buffer_len("out", out_len);
    const auto failure = file->content.read({bytes(out), out_len}, to_memory(memory), offset, stream);
    return failure ? report(*failure) : WC_OK;
  });
}

void wc_file_free(wc_file* file) { delete file; }
