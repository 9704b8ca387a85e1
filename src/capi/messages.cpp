// SPDX-License-Identifier: Apache-2.0
// The C ABI: keys, and messages that run while the caller waits, a single one or an array of them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "capi/boundary.hpp"
#include "dispatch/run.hpp"
#include "mode/algorithm.hpp"
#include "warpcipher.h"

using warpcipher::capi::bytes;
using warpcipher::capi::engine_name;
using warpcipher::capi::guarded;
using warpcipher::capi::report;
using warpcipher::capi::require;
using warpcipher::capi::to_message;
using warpcipher::capi::to_padding;
using warpcipher::capi::to_result;

namespace {

wc_status run_one(const warpcipher::Message& message, std::size_t* written) {
  warpcipher::Result result;
  warpcipher::run("auto", {&message, 1}, {&result, 1});
  if (written != nullptr) *written = result.written;
  return report(result.status);
}

wc_status run_text(warpcipher::Direction direction, const wc_key* key, void* out, std::size_t out_len,
                   std::size_t* written, const void* in, std::size_t in_len, const void* iv, std::size_t iv_len,
                   wc_padding padding) {
  return guarded([&] {
    require(key == nullptr || !key->key.algorithm().is_aead(),
            "wc_encrypt and wc_decrypt have no place for a tag: an AEAD key is for wc_seal and wc_open");
    warpcipher::Message message;
    message.key = key != nullptr ? &key->key : nullptr;
    message.direction = direction;
    message.padding = to_padding(padding);
    message.in = bytes(in);
    message.in_len = in_len;
    message.out = bytes(out);
    message.out_len = out_len;
    message.iv = bytes(iv);
    message.iv_len = iv_len;
    return run_one(message, written);
  });
}

wc_status run_aead(warpcipher::Direction direction, const wc_key* key, void* out, std::size_t out_len, const void* in,
                   std::size_t in_len, const void* nonce, std::size_t nonce_len, const void* aad, std::size_t aad_len) {
  return guarded([&] {
    require(key != nullptr, "the key is missing (null pointer)");
    require(key->key.algorithm().is_aead(), "wc_seal and wc_open take an AEAD key such as aes-256-gcm");
    const bool sealing = direction == warpcipher::Direction::encrypt;
    warpcipher::check_buffer_len("in", in_len);
    warpcipher::check_buffer_len("out", out_len);
    require(sealing || in_len >= warpcipher::full_tag_len, "in is shorter than the 16-byte tag");
    const std::size_t text_len = sealing ? in_len : in_len - warpcipher::full_tag_len;
    require(
        out_len >= text_len + (sealing ? warpcipher::full_tag_len : 0),
        sealing ? "out has room for fewer than in_len + 16 bytes" : "out has room for fewer than in_len - 16 bytes");
    require(out != nullptr || text_len + (sealing ? warpcipher::full_tag_len : 0) == 0, "out is a null pointer");
    require(in != nullptr || in_len == 0, "in is a null pointer");
    warpcipher::Message message;
    message.key = &key->key;
    message.direction = direction;
    message.in = bytes(in);
    message.in_len = text_len;
    message.out = bytes(out);
    message.out_len = text_len;
    message.iv = bytes(nonce);
    message.iv_len = nonce_len;
    message.aad = bytes(aad);
    message.aad_len = aad_len;
    // Decryption only reads the tag.
    message.tag = sealing ? bytes(out) + text_len : const_cast<std::uint8_t*>(bytes(in)) + text_len;
    message.tag_len = warpcipher::full_tag_len;
    return run_one(message, nullptr);
  });
}

}  // namespace

wc_status wc_key_new(wc_key** out, const char* algorithm, const void* key, size_t key_len) {
  return guarded([&] {
    require(out != nullptr, "out is a null pointer");
    *out = nullptr;
    require(algorithm != nullptr, "algorithm is a null pointer");
    require(key != nullptr || key_len == 0, "key is a null pointer");
    *out = new wc_key{{warpcipher::find_algorithm(algorithm), {bytes(key), key_len}}};
    return WC_OK;
  });
}

void wc_key_free(wc_key* key) { delete key; }

wc_status wc_run(const char* engine, wc_result* results, const wc_message* messages, size_t count, void* stream) {
  return guarded([&] {
    require(count == 0 || (results != nullptr && messages != nullptr), "results or messages is a null pointer");
    warpcipher::check_message_count(count);
    std::vector<warpcipher::Message> converted;
    converted.reserve(count);
    for (std::size_t i = 0; i < count; ++i) converted.push_back(to_message(messages[i]));
    std::vector<warpcipher::Result> outcome(count);
    warpcipher::run(engine_name(engine), converted, outcome, stream);
    std::transform(outcome.begin(), outcome.end(), results, to_result);
    return report(warpcipher::first_failure(outcome));
  });
}

wc_status wc_encrypt(const wc_key* key, void* out, size_t out_len, size_t* written, const void* in, size_t in_len,
                     const void* iv, size_t iv_len, wc_padding padding) {
  return run_text(warpcipher::Direction::encrypt, key, out, out_len, written, in, in_len, iv, iv_len, padding);
}

wc_status wc_decrypt(const wc_key* key, void* out, size_t out_len, size_t* written, const void* in, size_t in_len,
                     const void* iv, size_t iv_len, wc_padding padding) {
  return run_text(warpcipher::Direction::decrypt, key, out, out_len, written, in, in_len, iv, iv_len, padding);
}

wc_status wc_seal(const wc_key* key, void* out, size_t out_len, const void* in, size_t in_len, const void* nonce,
                  size_t nonce_len, const void* aad, size_t aad_len) {
  return run_aead(warpcipher::Direction::encrypt, key, out, out_len, in, in_len, nonce, nonce_len, aad, aad_len);
}

wc_status wc_open(const wc_key* key, void* out, size_t out_len, const void* in, size_t in_len, const void* nonce,
                  size_t nonce_len, const void* aad, size_t aad_len) {
  return run_aead(warpcipher::Direction::decrypt, key, out, out_len, in, in_len, nonce, nonce_len, aad, aad_len);
}
