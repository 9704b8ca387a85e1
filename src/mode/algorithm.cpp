// SPDX-License-Identifier: Apache-2.0
// Builds the list of algorithms from the list of ciphers and the list of modes.
#include "mode/algorithm.hpp"

#include <deque>
#include <vector>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "mode/list.hpp"

namespace warpcipher {
namespace {

// 64-bit blocks have the five modes of SP 800-38A that need no 128-bit counter; XTS is defined for AES-128 and AES-256
// alone (IEEE 1619, section 5.1), GCM-SIV too (RFC 8452, section 4). XChaCha20 is offered as an AEAD only.
bool is_defined(const CipherInfo& cipher, const ModeInfo& mode) {
  if (mode.id == Mode::stream) return cipher.id == CipherId::chacha20;
  if (mode.id == Mode::poly1305 || is_stream_cipher(cipher.id)) {
    return mode.id == Mode::poly1305 && is_stream_cipher(cipher.id);
  }
  if (mode.id == Mode::xts || mode.id == Mode::gcm_siv) {
    return cipher.id == CipherId::aes_128 || cipher.id == CipherId::aes_256;
  }
  return cipher.block_len == 16 || mode.any_block_len;
}

std::size_t iv_len_of(const CipherInfo& cipher, const ModeInfo& mode) {
  switch (mode.iv) {
    case IvRule::none:
      return 0;
    case IvRule::block:
      return cipher.block_len;
    case IvRule::any:
      return gcm_plain_iv_len;
    case IvRule::fixed:
      break;
  }
  if (mode.id == Mode::stream) return chacha_iv_len;
  if (mode.id == Mode::gcm_siv) return gcm_siv_nonce_len;
  return cipher.id == CipherId::xchacha20 ? xchacha_nonce_len : chacha_nonce_len;
}

struct List {
  std::deque<std::string> names;  // keeps the text that Algorithm::name refers to
  std::vector<Algorithm> entries;

  List() {
    for (const CipherInfo& cipher : cipher_list) add_modes(cipher);
    for (const CipherInfo& cipher : stream_cipher_list) add_modes(cipher);
  }

  void add_modes(const CipherInfo& cipher) {
    std::apply([&](const auto&... mode) { (add(cipher, mode.info), ...); }, Modes{});
  }

  void add(const CipherInfo& cipher, const ModeInfo& mode) {
    if (!is_defined(cipher, mode)) return;
    names.push_back(std::string(cipher.name) + (mode.name.empty() ? "" : "-") + std::string(mode.name));
    entries.push_back({names.back(), cipher, mode, iv_len_of(cipher, mode)});
  }
};

const List& list() {
  static constinit FirstUse<List> instance;
  return instance.get();
}

}  // namespace

std::span<const Algorithm> algorithms() { return list().entries; }

const Algorithm& find_algorithm(std::string_view name) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.name == name) return algorithm;
  }
  std::string known;
  for (const Algorithm& algorithm : algorithms()) {
    known += (known.empty() ? "" : ", ") + std::string(algorithm.name);
  }
  throw Error(Status::invalid_argument,
              "unknown algorithm '" + std::string(name.substr(0, 64)) + "': expected one of " + known);
}

}  // namespace warpcipher
