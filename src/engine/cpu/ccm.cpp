// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>

#include "core/wipe.hpp"
#include "engine/cpu/modes.hpp"
#include "engine/cpu/schedule.hpp"
#include "message/message.hpp"
#include "mode/ccm.hpp"

namespace warpcipher {
namespace {

// The key in the two modes that CCM is made of.
class CcmKey final : public KeyState {
 public:
  explicit CcmKey(const Key& key) : cbc(of(key, "-cbc")), ctr(of(key, "-ctr")) {}

  const Key cbc, ctr;

 private:
  static Key of(const Key& key, const char* mode) {
    return {find_algorithm(std::string(key.algorithm().cipher.name) + mode), {key.bytes(), key.size()}};
  }
};

void run_cipher(const Key& key, const std::uint8_t iv[16], const std::uint8_t* in, std::uint8_t* out, std::size_t len) {
  Message m;
  m.key = &key;
  m.in = in;
  m.out = out;
  m.in_len = m.out_len = len;
  m.iv = iv;
  m.iv_len = 16;
  run_message(m);
}

// CBC-MAC of bytes that come in pieces. Only the last block of CBC's output is used.
class Mac {
 public:
  Mac(const Key& cbc, const std::uint8_t first_block[16]) : cbc_(cbc) {
    std::memset(*y_, 0, sizeof *y_);
    add(first_block, 16);
  }

  void add(const std::uint8_t* data, std::size_t len) {
    if (waiting_len_ != 0) {
      const std::size_t taken = std::min(16 - waiting_len_, len);
      std::memcpy(*waiting_ + waiting_len_, data, taken);
      waiting_len_ += taken;
      data += taken;
      len -= taken;
      if (waiting_len_ == 16) fill();
    }
    run(data, len / 16 * 16);
    if (len % 16 == 0) return;
    std::memcpy(*waiting_, data + len / 16 * 16, len % 16);
    waiting_len_ = len % 16;
  }

  // Zeros up to the next block.
  void fill() {
    if (waiting_len_ == 0) return;
    std::memset(*waiting_ + waiting_len_, 0, 16 - waiting_len_);
    waiting_len_ = 0;
    run(*waiting_, 16);
  }

  const std::uint8_t* get() const { return *y_; }

 private:
  void run(const std::uint8_t* data, std::size_t len) {
    for (std::size_t done = 0; done < len; done += most_) {
      const std::size_t now = std::min(most_, len - done);
      run_cipher(cbc_, *y_, data + done, made_->data(), now);
      std::memcpy(*y_, made_->data() + now - 16, 16);
    }
  }

  static constexpr std::size_t most_ = 4096;  // stays in the first-level cache

  const Key& cbc_;
  Secret<std::uint8_t[16]> y_, waiting_;
  std::size_t waiting_len_ = 0;
  Secret<std::array<std::uint8_t, most_>> made_;
};

void make_tag(const CcmKey& key, const Message& m, const std::uint8_t* text, std::uint8_t* tag) {
  std::uint8_t block[16], head[ccm_most_head_len];
  ccm_first_block(m.iv, m.iv_len, m.aad_len, m.in_len, m.tag_len, block);
  Mac mac(key.cbc, block);
  if (m.aad_len != 0) {
    mac.add(head, ccm_aad_head(m.aad_len, head));
    mac.add(m.aad, m.aad_len);
    mac.fill();
  }
  mac.add(text, m.in_len);
  mac.fill();
  std::memcpy(tag, mac.get(), 16);
}

// `len` bytes under the key stream from block `first` on.
void run_counter(const CcmKey& key, const Message& m, std::uint8_t first, const std::uint8_t* in, std::uint8_t* out,
                 std::size_t len) {
  std::uint8_t counter[16];
  ccm_counter(m.iv, m.iv_len, counter);
  counter[15] = first;
  if (len != 0) run_cipher(key.ctr, counter, in, out, len);
}

}  // namespace

Status run_ccm_message(const Message& m) {
  const auto& key = m.key->state<CcmKey>(EngineId::cpu, [](const Key& k) { return std::make_unique<CcmKey>(k); });
  Secret<std::uint8_t[16]> tag;
  const bool encrypting = m.direction == Direction::encrypt;
  if (!encrypting) run_counter(key, m, 1, m.in, m.out, m.in_len);
  make_tag(key, m, encrypting ? m.in : m.out, *tag);
  if (encrypting) run_counter(key, m, 1, m.in, m.out, m.in_len);
  run_counter(key, m, 0, *tag, *tag, 16);
  return settle(m, *tag);
}

}  // namespace warpcipher
