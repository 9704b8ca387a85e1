// SPDX-License-Identifier: Apache-2.0
// A file of encrypted chunks that a test made, the columns that say where they are, and what must come out.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases.hpp"
#include "dispatch/run.hpp"
#include "engine/cpu/libcrypto.hpp"
#include "engine/device_engine.hpp"
#include "flow/file/read_chunks.hpp"
#include "flow/slot_memory.hpp"
#include "unnamed_file.hpp"

namespace conformance {

using namespace warpcipher;

using Bytes = std::vector<std::uint8_t>;

inline constexpr std::uint8_t guard = 0xa5;

struct Layout {
  std::vector<std::uint64_t> lengths;
  std::size_t keys = 1;
  bool iv_in_file = false;
  bool tags_given = false;
  bool aad = false;
  bool gaps = false;        // between chunks in the file, and between outputs
  bool parts = false;       // of some chunks not all is wanted
  bool ends_alone = false;  // only of the first and the last
  std::uint64_t begin = 0;
};

class TestChunks {
 public:
  TestChunks(const Algorithm& algorithm, const Layout& layout) : has_mac_(!algorithm.is_aead()) {
    for (std::size_t k = 0; k < layout.keys; ++k) keys_.push_back(&random_key(algorithm));
    std::uint64_t place = 0;
    for (const std::uint64_t len : layout.lengths) {
      if (layout.gaps) append(random_bytes(random_below(50)));
      if (layout.gaps) place += random_below(50);
      add(layout, len, place);
    }
    size_ = place + 40;
    expected_.resize(size_, guard);
    for (std::size_t i = 0; i < lengths_.size(); ++i) {
      std::copy_n(texts_[i].begin() + static_cast<std::ptrdiff_t>(skips_[i]), takes_[i],
                  expected_.begin() + static_cast<std::ptrdiff_t>(out_offsets_[i]));
    }
    begin_ = layout.begin;
    file_.write(content_, begin_);
    for (std::uint64_t& offset : file_offsets_) offset += begin_;
    chunks_ = columns(layout);
  }

  // The content of device memory after a read; fills in what became of it.
  Bytes read(int device, const ReadOptions& options, std::optional<ReadFailure>& failure) {
    DeviceEngine& engine = cuda_engine();
    const SelectedDevice scope(engine, device);
    void* memory = nullptr;
    must(cudaMalloc(&memory, size_), "cudaMalloc");
    must(cudaMemset(memory, guard, size_), "cudaMemset");
    chunks_.memory = Memory::device;
    chunks_.out = {static_cast<std::uint8_t*>(memory), size_};
    std::string error;
    try {
      failure = read_chunks("cuda", chunks_, nullptr, options);
    } catch (const std::exception& thrown) {
      error = thrown.what();
    }
    Bytes got(size_);
    must(cudaMemcpy(got.data(), memory, size_, cudaMemcpyDeviceToHost), "cudaMemcpy");
    must(cudaFree(memory), "cudaFree");
    error_ = error;
    if (PinnedBudget::in_use() != 0) throw std::runtime_error("a read keeps page-locked memory");
    return got;
  }

  // Changes a byte of a chunk: of the tag where there is no text.
  void damage(std::size_t chunk) {
    const std::uint64_t at = file_offsets_[chunk] + chunks_.front_len(chunk);
    if (!chunks_.tags.empty() && lengths_[chunk] == 0) {
      tags_[chunk * chunks_.tag_len] ^= 1;
      return;
    }
    content_[at - begin_] ^= 1;
    file_.write({content_[at - begin_]}, at);
  }

  // Ends the file in the middle of what a chunk takes of it.
  std::uint64_t cut(std::size_t chunk) {
    const std::uint64_t end = file_offsets_[chunk] + chunks_.len_in_file(chunk) / 2;
    file_.truncate(end);
    return end;
  }

  Bytes wiped() const {
    Bytes all(size_, guard);
    for (std::size_t i = 0; i < lengths_.size(); ++i) {
      std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(out_offsets_[i]), takes_[i], std::uint8_t{0});
    }
    return all;
  }

  // Whether memory holds the beginning of a chunk's plaintext.
  bool shows_in(const std::uint8_t* memory, std::size_t len) const {
    return std::any_of(texts_.begin(), texts_.end(), [&](const Bytes& text) {
      return text.size() >= 16 && std::search(memory, memory + len, text.begin(), text.begin() + 16) != memory + len;
    });
  }

  const Bytes& expected() const { return expected_; }
  const std::string& error() const { return error_; }
  std::size_t count() const { return lengths_.size(); }
  std::uint64_t len_in_file(std::size_t i) const { return chunks_.len_in_file(i); }

 private:
  void append(const Bytes& bytes) { content_.insert(content_.end(), bytes.begin(), bytes.end()); }

  void add(const Layout& layout, std::uint64_t len, std::uint64_t& place) {
    const std::size_t number = random_below(layout.keys), tag_len = has_mac_ ? 32 : 16;
    const Bytes iv = random_bytes(has_mac_ ? 16 : 12), aad = random_bytes(layout.aad ? random_below(40) : 0);
    Bytes text = random_bytes(len), sealed(len), tag(tag_len);
    Message m;
    m.key = keys_[number];
    m.in = text.data();
    m.in_len = m.out_len = len;
    m.out = sealed.data();
    m.iv = iv.data();
    m.iv_len = iv.size();
    m.aad = aad.data();
    m.aad_len = aad.size();
    m.tag = has_mac_ ? nullptr : tag.data();
    m.tag_len = has_mac_ ? 0 : tag_len;
    Result result;
    run("cpu", {&m, 1}, {&result, 1});
    if (has_mac_) tag = find_mac(iv, sealed);
    file_offsets_.push_back(content_.size());
    if (layout.iv_in_file) append(iv);
    append(sealed);
    if (!layout.tags_given) append(tag);
    ivs_.insert(ivs_.end(), iv.begin(), iv.end());
    tags_.insert(tags_.end(), tag.begin(), tag.end());
    aad_offsets_.push_back(aad_.size());
    aad_lengths_.push_back(aad.size());
    aad_.insert(aad_.end(), aad.begin(), aad.end());
    key_index_.push_back(static_cast<std::uint32_t>(number));
    lengths_.push_back(len);
    texts_.push_back(std::move(text));
    // At the edges of blocks and tiles, and next to them.
    const bool is_end = lengths_.size() == 1 || lengths_.size() == layout.lengths.size();
    const bool may_be_part = !layout.ends_alone || is_end;
    const bool is_part = layout.parts && may_be_part && random_below(2) == 0;
    const std::size_t edges[] = {1, 15, 16, 17, 4095, 4096, 4097};
    const std::uint64_t skip = is_part ? std::min<std::uint64_t>(edges[random_below(7)], len) : 0;
    skips_.push_back(skip);
    takes_.push_back(is_part ? std::min<std::uint64_t>(edges[random_below(7)], len - skip) : len);
    out_offsets_.push_back(place);
    place += takes_.back();
  }

  // By libcrypto itself: Hmac only compares.
  Bytes find_mac(const Bytes& iv, const Bytes& sealed) const {
    const Libcrypto& libcrypto = Libcrypto::instance();
    const std::unique_ptr<evp_mac_st, void (*)(evp_mac_st*)> mac(libcrypto->EVP_MAC_fetch(nullptr, "HMAC", nullptr),
                                                                 libcrypto->EVP_MAC_free);
    const std::unique_ptr<evp_mac_ctx_st, void (*)(evp_mac_ctx_st*)> context(libcrypto->EVP_MAC_CTX_new(mac.get()),
                                                                             libcrypto->EVP_MAC_CTX_free);
    char hash[] = "SHA256";
    const LibcryptoParam params[] = {
        {"digest", libcrypto_constant::param_utf8_string, hash, sizeof(hash) - 1, libcrypto_constant::param_unmodified},
        {nullptr, 0, nullptr, 0, 0}};
    const auto* const with_hash = reinterpret_cast<const ossl_param_st*>(params);
    Bytes tag(32);
    std::size_t len = 0;
    const bool is_done = libcrypto->EVP_MAC_init(context.get(), mac_key_.data(), mac_key_.size(), with_hash) == 1 &&
                         libcrypto->EVP_MAC_update(context.get(), iv.data(), iv.size()) == 1 &&
                         libcrypto->EVP_MAC_update(context.get(), sealed.data(), sealed.size()) == 1 &&
                         libcrypto->EVP_MAC_final(context.get(), tag.data(), &len, tag.size()) == 1;
    if (!is_done || len != tag.size()) throw std::runtime_error("libcrypto makes no HMAC");
    return tag;
  }

  FileChunks columns(const Layout& layout) const {
    FileChunks c;
    c.source.descriptor = file_.descriptor();
    c.count = lengths_.size();
    c.keys = keys_;
    if (layout.keys > 1) c.key_index = key_index_;
    c.file_offsets = file_offsets_;
    c.lengths = lengths_;
    if (!layout.iv_in_file) c.ivs = ivs_;
    c.iv_len = has_mac_ ? 16 : 12;
    c.tag_len = has_mac_ ? 32 : 16;
    if (layout.tags_given) c.tags = tags_;
    if (has_mac_) c.mac = {"sha256", mac_key_};
    if (layout.aad) {
      c.aad = aad_;
      c.aad_offsets = aad_offsets_;
      c.aad_lengths = aad_lengths_;
    }
    c.out_offsets = out_offsets_;
    if (layout.parts) {
      c.skips = skips_;
      c.takes = takes_;
    }
    return c;
  }

  const bool has_mac_;
  const Bytes mac_key_ = random_bytes(32);
  UnnamedFile file_;
  std::vector<const Key*> keys_;
  std::vector<std::uint64_t> file_offsets_, lengths_, out_offsets_, skips_, takes_, aad_offsets_, aad_lengths_;
  std::vector<std::uint32_t> key_index_;
  Bytes content_, ivs_, tags_, aad_, expected_;
  std::vector<Bytes> texts_;
  std::uint64_t size_ = 0, begin_ = 0;
  FileChunks chunks_;
  std::string error_;
};

}  // namespace conformance
