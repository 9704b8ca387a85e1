// SPDX-License-Identifier: Apache-2.0
// GB/s on one core (docs/design/cpu-figures.md has all), AES-128 of 16 KiB, own code and libcrypto 3.0.19:
//
//               AVX-512: Xeon, 4.2 GHz    VAES: Zen 3, 3.1 GHz    AES-NI: Zen 3       AES-NI: Xeon, 2.9 GHz
//   ECB         26.6, 13.2                19.6, 9.7               9.8, 9.7            8.6, 8.2
//   CBC, dec.   26.3, 12.0                19.3, 9.1               9.8, 9.1            8.5, 7.9
//   CFB, dec.   26.6, 9.0                 18.9, 5.5               9.8, 5.5            8.5, 5.5
//   CTR         24.9, 10.9                17.2, 8.0               9.1, 8.0            8.3, 7.2
//   XTS         24.1, 9.4                 13.4, 7.9               7.1, 7.9 (*)        6.4, 5.0
//   GCM         19.8, 7.1                 7.8, 4.0                4.3, 4.1            5.7, 4.9
//
//   ChaCha20, 256 KiB           AVX2, Zen 3: 3.36, 3.31;  with Poly1305: 2.75, 2.20
//   up to 4 KiB                 everything: a call of libcrypto takes 0.3 us
//
// (*) the only one where libcrypto is faster; up to 8 KiB its call costs more.
#include "engine/cpu/rule.hpp"

#include <string_view>

#include "core/processor.hpp"
#include "engine/cpu/lanes.hpp"
#include "engine/cpu/libcrypto.hpp"

namespace warpcipher {

namespace {

constexpr std::size_t most_short_xts = 8192;
constexpr std::size_t most_short_chacha = 4096;

CodeRule chacha_rule(std::size_t len) {
  if (cpu::chacha_lanes_list().size() > 1)
    return {true, "own code is as fast as libcrypto, or faster, at every length"};
  if (len <= most_short_chacha) return {true, "up to 4 KiB: a call of libcrypto takes 0.3 us"};
  return {false, "above 4 KiB libcrypto is faster than vectors of 128 bits"};
}

CodeRule aes_rule(const Algorithm& algorithm, Direction direction, std::size_t len) {
  const Mode mode = algorithm.mode.id;
  const auto list = cpu::aes_lanes_list();
  if (list.empty()) return {false, "own code needs AES instructions, AVX and carry-less products"};
  const bool is_encryption = direction == Direction::encrypt;
  if (mode == Mode::cfb8 && is_encryption) return {false, "own code would take a call for each byte"};
  if (mode == Mode::gcm_siv) return {true, "OpenSSL has it from 3.2 on, and at 0.4 GB/s"};
  if (mode == Mode::ccm) return {true, "made of CBC encryption and CTR"};
  if (!algorithm.parallel(direction)) return {true, "up to eight messages side by side"};
  if (list.size() > 1)
    return {true, "own code has 1.7 to 3.4 times the rate of libcrypto 3.0 with 16 KiB, more with less"};
  if (mode != Mode::xts) return {true, "own code is as fast as libcrypto, or faster, at every length"};
  if (len <= most_short_xts) return {true, "up to 8 KiB: a call of libcrypto takes 0.3 us"};
  return {false, "above 8 KiB libcrypto is faster than AES-NI's own XTS"};
}

}  // namespace

CodeRule code_rule(const Algorithm& algorithm, Direction direction, std::size_t len) {
  const CipherId cipher = algorithm.cipher.id;
  if (!is_aes(cipher) && !is_stream_cipher(cipher))
    return {true, "constant time: libcrypto looks secrets up in tables"};
  if (!Libcrypto::is_here()) return {true, "libcrypto cannot be loaded"};
  return is_aes(cipher) ? aes_rule(algorithm, direction, len) : chacha_rule(len);
}

Decision explain_cpu(const Algorithm& algorithm, Direction direction, std::size_t len) {
  const CodeRule rule = code_rule(algorithm, direction, len);
  const CipherId cipher = algorithm.cipher.id;
  const char* set = "no instruction set";
  if (is_stream_cipher(cipher)) {
    set = cpu::chacha_lanes_list().front()->name;
  } else if (!is_aes(cipher)) {
    set = cpu::des_lanes_list().front()->name;
  } else if (!cpu::aes_lanes_list().empty()) {
    set = cpu::aes_lanes_list().front()->name;
  }
  const std::string_view version =
      Libcrypto::is_here() ? std::string_view(Libcrypto::instance().version()) : "cannot be loaded";
  return {"CPU", {{"own code", set, rule.own, rule.reason}, {"libcrypto", version, !rule.own, rule.reason}}};
}

}  // namespace warpcipher

namespace warpcipher::cpu {

std::span<const AesLanes* const> aes_lanes_list() { return runnable<&Lanes::aes>(); }
std::span<const GcmLanes* const> gcm_lanes_list() { return runnable<&Lanes::gcm>(); }
std::span<const ChaChaLanes* const> chacha_lanes_list() { return runnable<&Lanes::chacha>(); }
std::span<const DesLanes* const> des_lanes_list() { return runnable<&Lanes::des>(); }

const SerialCode* serial_code() {
  const auto found = runnable<&Lanes::serial>();
  return found.empty() ? nullptr : found.front();
}

}  // namespace warpcipher::cpu
