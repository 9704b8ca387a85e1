// SPDX-License-Identifier: Apache-2.0
// Fuzzes the C ABI's argument checks: whatever the arguments, no call may read or write outside the memory that they
// describe, write anything when it refuses them, or release a text whose tag does not match. Run it under ASan and
// UBSan: each buffer is an allocation of its own, exactly as long as the call says.
//
// The harness never tells a lie that C cannot check (a length longer than its memory, but one that no memory has; a key
// that was freed).
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "fuzz_messages.hpp"

namespace {

void fuzz_run(Input& input) {
  const std::vector<AnyKey> keys = any_keys(input);
  const std::size_t count = input.below(5);
  std::vector<Parts> parts(count);
  std::vector<wc_message> messages;
  for (Parts& p : parts) messages.push_back(any_message(input, keys, p));
  const bool impossible = count != 0 && input.chance(10);
  if (impossible) {
    std::size_t wc_message::*const lengths[] = {&wc_message::in_len, &wc_message::out_len, &wc_message::iv_len,
                                                &wc_message::aad_len, &wc_message::tag_len};
    wc_message& m = messages[input.below(count)];
    m.*lengths[input.below(std::size(lengths))] = impossible_len(input);
  }
  std::vector<wc_result> results(count, wc_result{WC_ENGINE_FAILURE, SIZE_MAX});
  const wc_status status = wc_run(any_engine(input), count == 0 && input.chance(2) ? nullptr : results.data(),
                                  messages.data(), count, nullptr);
  REQUIRE(wc_last_error() != nullptr && std::strlen(wc_status_text(status)) != 0);
  REQUIRE(is_refused(status) || !impossible);
  for (std::size_t i = 0; i < count; ++i) {
    if (is_refused(status)) {
      REQUIRE(results[i].written == SIZE_MAX);
      check_untouched(parts[i]);
    } else {
      check_result(results[i], messages[i], parts[i]);
    }
  }
  if (status != WC_OK || count == 0) return;
  // A ciphertext decrypts again, and a tag with one bit changed does not.
  for (std::size_t i = 0; i < count; ++i) {
    if (!parts[i].encrypts) continue;
    const std::size_t len = results[i].written;
    Buffer sealed(len, 0), text(len, paint);
    if (len != 0) std::memcpy(sealed.data(), messages[i].out, len);
    wc_message back = messages[i];
    back.direction = WC_DECRYPT;
    back.in = sealed.data();
    back.in_len = back.out_len = len;
    back.out = text.data();
    wc_result result = {};
    REQUIRE(wc_run("cpu", &result, &back, 1, nullptr) == WC_OK);
    REQUIRE(result.written == messages[i].in_len);
    if (!parts[i].in_place && result.written != 0) {
      REQUIRE(std::memcmp(text.data(), parts[i].in.data(), result.written) == 0);
    }
    if (back.tag_len == 0) continue;
    parts[i].tag.data()[input.below(back.tag_len)] ^= static_cast<std::uint8_t>(1u << input.below(8));
    REQUIRE(wc_run("cpu", &result, &back, 1, nullptr) == WC_INVALID_TAG);
    REQUIRE(all_are(text, 0));
  }
}

// A number that is right, a little wrong, or huge enough for a sum with it to wrap.
std::uint64_t any_number(Input& input, std::uint64_t usual) {
  if (!input.chance(60)) return usual;
  const std::uint64_t strange[] = {
      0, 1, usual + 1, usual - 1, UINT64_MAX, UINT64_MAX - usual, UINT64_MAX - 15, std::uint64_t{1} << 63, UINT32_MAX};
  return strange[input.below(std::size(strange))];
}

void fuzz_columns(Input& input) {
  const AnyKey key = any_key(input), other = any_key(input);
  std::vector<const wc_key*> key_pointers{key.handle.get()};
  if (input.chance(8)) key_pointers.push_back(other.handle.get());
  const std::size_t count = input.below(6);
  wc_columns columns = {};
  columns.direction = any_direction(input);
  columns.padding = any_padding(input, key.info);
  columns.tag_len = any_tag_len(input, key.info);
  columns.iv_len = any_iv_len(input, key.info);
  columns.count = count;

  // Exactly `count` entries each, so that reading one too many is seen.
  std::vector<std::uint32_t> key_index(count);
  std::vector<std::uint64_t> in_offsets(count), in_lengths(count), out_offsets(count), aad_offsets(count),
      aad_lengths(count);
  const Buffer aad = input.take(any_aad_len(input, key.info));
  std::uint64_t in_end = 0, out_end = 0;
  const bool gaps = input.chance(2);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t len = any_text_len(input, key.info, columns.padding);
    key_index[i] = static_cast<std::uint32_t>(any_number(input, input.below(key_pointers.size())));
    in_lengths[i] = any_number(input, len);
    if (gaps) in_end += input.below(5), out_end += input.below(5);
    in_offsets[i] = any_number(input, in_end);
    out_offsets[i] = any_number(input, out_end);
    in_end += len;
    out_end += len + 32;
    aad_offsets[i] = any_number(input, input.below(aad.size() + 1));
    aad_lengths[i] = any_number(input, 0);
  }
  Buffer in = input.take(static_cast<std::size_t>(in_end) + input.below(3));
  Buffer out(input.chance(8) ? input.below(300) : static_cast<std::size_t>(out_end) + 16, paint);
  const Buffer ivs = input.take(count * columns.iv_len);
  const bool in_place = input.chance(8);
  columns.keys = key_pointers.data();
  columns.key_count = key_pointers.size();
  columns.key_index = input.chance(4) ? nullptr : key_index.data();
  columns.in = pointer(input, in);
  columns.in_len = in.size();
  columns.in_offsets = gaps || input.chance(2) ? in_offsets.data() : nullptr;
  columns.in_lengths = in_lengths.data();
  columns.out = in_place ? const_cast<void*>(columns.in) : pointer(input, out);
  columns.out_len = in_place ? in.size() : out.size();
  columns.out_offsets = input.chance(2) ? nullptr : out_offsets.data();
  columns.ivs = pointer(input, ivs);
  columns.aad = pointer(input, aad);
  columns.aad_len = aad.size();
  if (input.chance(2)) columns.aad_offsets = aad_offsets.data();
  if (columns.aad_offsets != nullptr && !input.chance(20)) columns.aad_lengths = aad_lengths.data();
  std::vector<wc_result> results(count, wc_result{WC_ENGINE_FAILURE, SIZE_MAX});
  const wc_status status = wc_run_columns(any_engine(input), results.data(), &columns, nullptr);
  if (status == WC_INVALID_ARGUMENT || status == WC_ENGINE_UNAVAILABLE) {
    REQUIRE(all_are(out, paint));
    for (const wc_result& result : results) REQUIRE(result.written == SIZE_MAX);
    return;
  }
  for (const wc_result& result : results) REQUIRE(result.written <= columns.out_len);
}

void fuzz_one_message(Input& input) {
  const AnyKey any = any_key(input);
  const KeyHandle& key = any.handle;
  const wc_padding padding = any_padding(input, any.info);
  const Buffer in = input.take(any_text_len(input, any.info, padding));
  const Buffer iv = input.take(any_iv_len(input, any.info));
  const Buffer aad = input.take(any_aad_len(input, any.info));
  Buffer out(input.chance(20) ? any_len(input) : in.size() + 16, paint);
  std::size_t written = 0;
  switch (input.below(4)) {
    case 0:
    case 1: {
      const auto call = input.chance(2) ? wc_encrypt : wc_decrypt;
      const wc_status status = call(key.get(), pointer(input, out), out.size(), input.chance(4) ? nullptr : &written,
                                    pointer(input, in), in.size(), pointer(input, iv), iv.size(), padding);
      if (status == WC_INVALID_ARGUMENT) REQUIRE(all_are(out, paint));
      REQUIRE(written <= out.size());
      break;
    }
    case 2: {
      const wc_status sealed = wc_seal(key.get(), pointer(input, out), out.size(), pointer(input, in), in.size(),
                                       pointer(input, iv), iv.size(), pointer(input, aad), aad.size());
      if (sealed != WC_OK) {
        REQUIRE(all_are(out, paint));
        break;
      }
      Buffer back(in.size(), paint);
      REQUIRE(wc_open(key.get(), back.data(), back.size(), out.data(), in.size() + 16, iv.data(), iv.size(), aad.data(),
                      aad.size()) == WC_OK);
      REQUIRE(std::equal(back.begin(), back.end(), in.begin()));
      break;
    }
    default: {
      const wc_status opened = wc_open(key.get(), pointer(input, out), out.size(), pointer(input, in), in.size(),
                                       pointer(input, iv), iv.size(), pointer(input, aad), aad.size());
      REQUIRE(opened != WC_OK);  // nobody guesses a 128-bit tag
      if (opened == WC_INVALID_ARGUMENT) REQUIRE(all_are(out, paint));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  switch (input.below(8)) {
    case 0:
    case 1: fuzz_run(input); break;
    case 2:
    case 3: fuzz_columns(input); break;
    case 4: fuzz_batch(input); break;
    case 5: input.chance(2) ? fuzz_lists(input) : fuzz_lengths(input); break;
    default: fuzz_one_message(input);
  }
  return 0;
}
