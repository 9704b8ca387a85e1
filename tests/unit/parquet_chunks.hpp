// SPDX-License-Identifier: Apache-2.0
// Encrypted chunks for tests of what opens them, here and on a GPU (tests/gpu).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/bytes.hpp"
#include "dispatch/run.hpp"
#include "message/key.hpp"
#include "mode/algorithm.hpp"
#include "parquet/compact.hpp"
#include "parquet/page_modules.hpp"

namespace warpcipher::parquet {

inline const std::vector<std::uint8_t> prefix{'f', 'i', 'l', 'e'};

// A page header for a page of that many bytes, encrypted.
inline std::vector<std::uint8_t> header_of(std::uint64_t size, bool dictionary) {
  CompactWriter writer;
  int last = 0;
  for (const std::int64_t value :
       {std::int64_t{dictionary ? 2 : 0}, static_cast<std::int64_t>(size), static_cast<std::int64_t>(size)}) {
    writer.field(last, last + 1, Kind::i32);
    writer.varint(zigzag(value));
  }
  writer.byte(0);
  return writer.out();
}

struct TestKeys {
  explicit TestKeys(std::size_t size = 16)
      : gcm(find_algorithm("aes-" + std::to_string(8 * size) + "-gcm"), std::vector<std::uint8_t>(size, 7)),
        ctr(find_algorithm("aes-" + std::to_string(8 * size) + "-ctr"), std::vector<std::uint8_t>(size, 7)) {}

  Key gcm, ctr;
};

// A chunk of pages of these sizes, and what it is without encryption but for the headers.
struct SealedPages {
  SealedPages(const TestKeys& keys, std::vector<std::size_t> sizes, std::int16_t column, bool dictionary, bool counter,
              const std::function<std::size_t(std::size_t page)>& padding = {})
      : column_(column), dictionary_(dictionary), aads_(page_aads(prefix, 5, column, dictionary, sizes.size())) {
    for (std::size_t page = 0; page < sizes.size(); ++page) {
      const std::uint64_t overhead = counter ? head_size : gcm_overhead;
      const std::vector<std::uint8_t> header = header_of(sizes[page] + overhead, dictionary && page == 0);
      std::vector<std::uint8_t> padded = header;
      padded.resize(header.size() + (padding ? padding(page) : 0), 0x15);
      seal(keys.gcm, padded, true, page);
      std::vector<std::uint8_t> text(sizes[page]);
      for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::uint8_t>(i * 31 + page);
      seal(counter ? keys.ctr : keys.gcm, text, false, page);
      texts.push_back(text);
      header_sizes.push_back(header.size());
    }
  }

  SealedChunk at(std::uint64_t position) const { return {position, data.size(), 5, column_, true, dictionary_}; }

  std::vector<std::uint8_t> data;
  std::vector<std::vector<std::uint8_t>> texts;
  std::vector<std::size_t> header_sizes;
  std::vector<std::size_t> ends;  // of modules

 private:
  void seal(const Key& key, const std::vector<std::uint8_t>& text, bool is_head, std::size_t page) {
    const bool is_aead = key.algorithm().is_aead();
    const std::size_t at = data.size();
    data.resize(at + length_size + nonce_size + text.size() + (is_aead ? tag_size : 0));
    store_le32(data.data() + at, static_cast<std::uint32_t>(data.size() - at - length_size));
    std::uint8_t* const nonce = data.data() + at + length_size;
    for (std::size_t i = 0; i < nonce_size; ++i) nonce[i] = static_cast<std::uint8_t>(ends.size() + 3 * i + 50);
    const std::size_t aad = page == 0 ? 0 : aads_.sizes[0] + (page - 1) * aads_.sizes[1];
    std::vector<std::uint8_t> iv(nonce, nonce + nonce_size);
    if (!is_aead) iv.insert(iv.end(), {0, 0, 0, 1});
    Message m;
    m.key = &key;
    m.in = text.data();
    m.out = nonce + nonce_size;
    m.in_len = m.out_len = text.size();
    m.iv = iv.data();
    m.iv_len = iv.size();
    if (is_aead) {
      m.aad = (is_head ? aads_.heads : aads_.pages).data() + aad;
      m.aad_len = aads_.sizes[page];
      m.tag = nonce + nonce_size + text.size();
      m.tag_len = tag_size;
    }
    Result result;
    run("reference", {&m, 1}, {&result, 1});
    ends.push_back(data.size());
  }

  std::int16_t column_;
  bool dictionary_;
  PageAads aads_;
};

}  // namespace warpcipher::parquet
