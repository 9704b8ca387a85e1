// SPDX-License-Identifier: Apache-2.0
// Builds the list of algorithms from the list of ciphers and the list of modes.
#include "mode/algorithm.hpp"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "mode/list.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t longest_name = 64;  // longer text is not a name, and is neither compared nor repeated

// 64-bit blocks have the five modes of SP 800-38A that need no 128-bit counter. XChaCha20 is offered as an AEAD only.
bool is_defined(const CipherInfo& cipher, const ModeInfo& mode) {
  if (mode.id == Mode::stream) return cipher.id == CipherId::chacha20;
  if (mode.id == Mode::poly1305 || is_stream_cipher(cipher.id)) {
    return mode.id == Mode::poly1305 && is_stream_cipher(cipher.id);
  }
  if (mode.no_key_192 && cipher.id == CipherId::aes_192) return false;
  return cipher.block_len == 16 || mode.any_block_len;
}

std::size_t iv_len_of(const CipherInfo& cipher, const ModeInfo& mode) {
  if (mode.iv == IvRule::none) return 0;
  if (mode.iv == IvRule::block) return cipher.block_len;
  return mode.iv_len != 0 ? mode.iv_len : cipher.nonce_len;
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

// A name as it is compared: people write AES-256-GCM, aes_256_gcm and aes256gcm.
std::string bare(std::string_view name) {
  std::string made;
  for (const char c : name.substr(0, longest_name)) {
    if (c >= 'A' && c <= 'Z') made += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) made += c;
  }
  return made;
}

// How much two names have in common, 0 to 1: the rest of both when letters are taken out until they are equal.
double likeness(std::string_view a, std::string_view b) {
  std::vector<std::size_t> common(b.size() + 1);  // of the read part of `a`, with each beginning of `b`
  for (const char c : a) {
    std::size_t diagonal = 0;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t longer = b[j] == c ? diagonal + 1 : std::max(common[j], common[j + 1]);
      diagonal = std::exchange(common[j + 1], longer);
    }
  }
  return 2.0 * static_cast<double>(common.back()) / static_cast<double>(a.size() + b.size());
}

// "did you mean aes-256-xts? ", the likest names; nothing where none is like it.
std::string hint(const std::string& given) {
  // Other names of triple DES: the likest ones would be names of DES.
  for (const std::string_view other : {"tripledes", "3des", "des3", "tdes", "tdea"}) {
    if (given.starts_with(other)) return hint("desede3" + given.substr(other.size()));
  }
  double most = 0.7;
  std::string names;
  for (const Algorithm& algorithm : list().entries) {
    const double found = likeness(given, bare(algorithm.name));
    if (found < most) continue;
    if (found > most) names.clear();
    most = found;
    names += (names.empty() ? "" : " or ") + std::string(algorithm.name);
  }
  return names.empty() ? "" : "did you mean " + names + "?";
}

}  // namespace

std::string tag_lens_text(const Algorithm& algorithm) {
  std::string text;
  for (std::size_t len = 0; len <= full_tag_len; ++len) {
    if (!algorithm.takes_tag_len(len)) continue;
    std::size_t end = len;  // of those without a gap
    while (algorithm.takes_tag_len(end + 1)) ++end;
    const bool is_last = algorithm.mode.tag_lens >> end == 1;
    text += (text.empty() ? "" : is_last ? " or " : ", ") + std::to_string(len);
    if (end > len) text += " to " + std::to_string(end);
    len = end;
  }
  return text;
}

std::span<const Algorithm> algorithms() { return list().entries; }

const Algorithm& find_algorithm(std::string_view name) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.name == name) return algorithm;
  }
  const std::string given = bare(name);
  for (const Algorithm& algorithm : algorithms()) {
    if (bare(algorithm.name) == given) return algorithm;
  }
  const std::string like = hint(given);
  refuse("unknown algorithm '", name.substr(0, longest_name),
         "': ", like.empty() ? "expected a cipher and a mode, such as aes-256-gcm" : like);
}

}  // namespace warpcipher
