// SPDX-License-Identifier: Apache-2.0
#include "parquet/page_modules.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/bytes.hpp"
#include "core/error.hpp"

namespace warpcipher::parquet {
namespace {

enum ModuleType : std::uint8_t { data_page = 2, dictionary_page = 3, data_header = 4, dictionary_header = 5 };

}  // namespace

std::uint64_t text_size(std::uint64_t module, std::uint64_t overhead) {
  if (module < overhead) refuse("a module is shorter than its nonce and tag");
  return module - overhead;
}

void refuse_modules(std::uint64_t count) {
  refuse(std::to_string(count) + " modules: expected a header and a page for each of up to " +
         std::to_string(most_ordinal + 1) + " pages");
}

void ModuleWalk::add(std::uint64_t length, Column& positions) {
  if (length < nonce_size) refuse("a module of " + std::to_string(length) + " bytes is shorter than its nonce");
  if (positions.size() == most_modules) refuse("more than " + std::to_string(most_modules) + " modules");
  positions.push_back(at_);
  at_ += length + length_size;
}

void ModuleWalk::finish(Column& positions) const {
  if (at_ != end_) {
    refuse("the lengths of its modules do not add up to its " + std::to_string(end_ - start_) + " bytes");
  }
  positions.push_back(end_);
}

Column walk_modules(Bytes data, std::uint64_t start, std::uint64_t end) {
  Column positions;
  ModuleWalk walk(start, end);
  while (end <= data.size() && walk.has_next()) walk.add(load_le32(data.data() + walk.position()), positions);
  walk.finish(positions);
  return positions;
}

PageModules lay_out_pages(std::span<const std::uint64_t> positions, bool dictionary, std::uint64_t page_overhead,
                          std::uint64_t out) {
  const std::size_t modules = positions.empty() ? 0 : positions.size() - 1;
  const std::size_t count = modules / 2;
  const std::size_t first = dictionary ? 1 : 0;
  if (modules % 2 != 0 || count < first || count > most_ordinal + 1 + first) {
    refuse_modules(modules);
  }
  PageModules found;
  for (ModuleColumns* columns : {&found.heads, &found.pages}) {
    columns->modules.reserve(count);
    columns->outs.reserve(count);
    columns->sizes.reserve(count);
  }
  const auto add = [&](ModuleColumns& columns, std::size_t i, std::uint64_t overhead) {
    columns.modules.push_back(positions[i]);
    columns.outs.push_back(out);
    columns.sizes.push_back(text_size(positions[i + 1] - positions[i], overhead));
    out += columns.sizes.back();
  };
  for (std::size_t i = 0; i < modules; i += 2) {
    add(found.heads, i, gcm_overhead);
    add(found.pages, i + 1, page_overhead);
  }
  found.end = out;
  return found;
}

void append_page_aad(std::vector<std::uint8_t>& to, Bytes prefix, bool is_head, bool is_dictionary,
                     std::int16_t row_group, std::int16_t column, std::uint64_t number) {
  const auto add_le16 = [&](std::uint64_t value) {
    to.push_back(static_cast<std::uint8_t>(value));
    to.push_back(static_cast<std::uint8_t>(value >> 8));
  };
  to.insert(to.end(), prefix.begin(), prefix.end());
  to.push_back(is_dictionary ? (is_head ? dictionary_header : dictionary_page) : (is_head ? data_header : data_page));
  add_le16(static_cast<std::uint16_t>(row_group));
  add_le16(static_cast<std::uint16_t>(column));
  if (!is_dictionary) add_le16(number);
}

PageAads page_aads(Bytes prefix, std::int16_t row_group, std::int16_t column, bool dictionary, std::size_t count) {
  PageAads found;
  found.sizes.assign(count, prefix.size() + 7);
  if (dictionary && count != 0) found.sizes[0] -= 2;
  for (const bool is_head : {true, false}) {
    std::vector<std::uint8_t>& to = is_head ? found.heads : found.pages;
    to.reserve(count * (prefix.size() + 7));
    for (std::size_t i = 0; i < count; ++i) {
      append_page_aad(to, prefix, is_head, dictionary && i == 0, row_group, column, i - (dictionary ? 1 : 0));
    }
  }
  return found;
}

namespace {

template <class T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void append(ModuleColumns& to, const ModuleColumns& more) {
  append(to.modules, more.modules);
  append(to.outs, more.outs);
  append(to.sizes, more.sizes);
}

ChunkOut add_chunk(ChunkModules& found, Bytes data, const ChunkText& chunk, Bytes prefix, std::uint64_t page_overhead,
                   std::uint64_t out) {
  ChunkOut added{out, chunk.size, 0, found.heads.modules.size(), 0, found.aads.heads.size(), 0};
  if (!chunk.is_encrypted) {
    if (chunk.position > data.size() || chunk.size > data.size() - chunk.position) refuse("it is cut short");
    return added;
  }
  Column found_here;
  if (chunk.walked.empty()) found_here = walk_modules(data, chunk.position, chunk.position + chunk.size);
  const PageModules pages =
      lay_out_pages(chunk.walked.empty() ? std::span<const std::uint64_t>(found_here) : chunk.walked, chunk.dictionary,
                    page_overhead, out);
  const std::size_t count = pages.heads.modules.size();
  const PageAads aads = page_aads(prefix, chunk.row_group, chunk.column, chunk.dictionary, count);
  append(found.heads, pages.heads);
  append(found.pages, pages.pages);
  append(found.aads.heads, aads.heads);
  append(found.aads.pages, aads.pages);
  append(found.aads.sizes, aads.sizes);
  if (chunk.dictionary) found.dictionaries.push_back(added.first_page);
  added.size = pages.end - out;
  added.data = chunk.dictionary && count > 1 ? pages.heads.outs[1] : out;
  added.pages = count;
  added.aad_size = aads.heads.size();
  return added;
}

}  // namespace

ChunkModules lay_out_chunks(Bytes data, std::span<const ChunkText> chunks, std::span<const std::string> names,
                            Bytes prefix, std::uint64_t page_overhead) {
  ChunkModules found;
  found.chunks.reserve(chunks.size());
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    try {
      found.chunks.push_back(add_chunk(found, data, chunks[i], prefix, page_overhead, out));
    } catch (const Error& error) {
      refuse(names[i] + ": " + error.what());
    }
    out += found.chunks.back().size;
  }
  return found;
}

namespace {

void check_head(std::size_t size, std::uint64_t module) {
  if (size >= head_size && module <= size - head_size) return;
  refuse("a module at " + std::to_string(module) + " in " + std::to_string(size) + " bytes");
}

void check_lengths(std::size_t modules, std::size_t lengths) {
  if (modules == lengths) return;
  refuse(std::to_string(lengths) + " lengths for " + std::to_string(modules) + " modules");
}

}  // namespace

ModuleTexts texts_of(Bytes data, std::span<const std::uint64_t> modules, std::span<const std::uint64_t> lengths,
                     std::span<const std::uint64_t> aad_sizes, bool counter_mode) {
  check_lengths(modules.size(), lengths.size());
  const std::size_t iv_size = counter_mode ? nonce_size + 4 : nonce_size;
  ModuleTexts found;
  found.texts.reserve(modules.size());
  found.sealed.reserve(modules.size());
  found.aad_offsets.reserve(aad_sizes.size());
  found.ivs.resize(iv_size * modules.size());
  std::uint8_t* iv = found.ivs.data();
  for (std::size_t i = 0; i < modules.size(); ++i, iv += iv_size) {
    check_head(data.size(), modules[i]);
    std::memcpy(iv, data.data() + modules[i] + length_size, nonce_size);
    if (counter_mode) store_be32(iv + nonce_size, 1);
    found.texts.push_back(modules[i] + head_size);
    found.sealed.push_back(lengths[i] + (counter_mode ? 0 : tag_size));
  }
  std::uint64_t at = 0;
  for (const std::uint64_t size : aad_sizes) {
    found.aad_offsets.push_back(at);
    at += size;
  }
  return found;
}

void write_heads(std::span<std::uint8_t> out, std::span<const std::uint64_t> modules,
                 std::span<const std::uint64_t> lengths, Bytes nonces, bool counter_mode) {
  check_lengths(modules.size(), lengths.size());
  check_lengths(modules.size() * nonce_size, nonces.size());
  for (std::size_t i = 0; i < modules.size(); ++i) {
    check_head(out.size(), modules[i]);
    const std::uint64_t length = lengths[i] + nonce_size + (counter_mode ? 0 : tag_size);
    if (length > UINT32_MAX) refuse("a module of " + std::to_string(length) + " bytes: its length has 32 bits");
    store_le32(out.data() + modules[i], static_cast<std::uint32_t>(length));
    std::memcpy(out.data() + modules[i] + length_size, nonces.data() + nonce_size * i, nonce_size);
  }
}

}  // namespace warpcipher::parquet
