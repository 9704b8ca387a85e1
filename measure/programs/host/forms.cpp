// SPDX-License-Identifier: Apache-2.0
// The forms of AES that this processor has, by own code and by libcrypto: GB/s on one core, text in the cache.
//
//   cpu_forms [MODE]...     all modes without an argument; the median of 31 and in parentheses the best
//
// The forms take turns of about 0.1 ms, so that whatever else runs slows all of them.
#include <memory>
#include <span>

#include "engine/cpu/lanes.hpp"
#include "engine/cpu/modes.hpp"
#include "frame.hpp"

namespace warpcipher {
namespace {

constexpr int turns = 31;

// GCM, which encrypts, by the widest form only.
void run(const cpu::AesLanes* form, AesKey& state, const Message& m) {
  const bool gcm = m.algorithm().is_aead();
  if (form == nullptr) {
    gcm ? void(run_gcm_message(state, *state.mode(m.direction).borrow(), m))
        : run_libcrypto_piece(state, m, whole_piece(m));
  } else {
    gcm ? void(OwnGcm(state).run(m)) : run_own_piece(*form, state, m, whole_piece(m));
  }
}

void measure(const Algorithm& algorithm, Direction direction, std::size_t len) {
  std::vector<std::uint8_t> text(len), out(len), key_bytes(64);
  std::uint8_t tag[16];
  for (std::size_t i = 0; i < key_bytes.size(); ++i) key_bytes[i] = static_cast<std::uint8_t>(7 * i + 1);
  std::vector<const cpu::AesLanes*> forms(cpu::aes_lanes_list().begin(), cpu::aes_lanes_list().end());
  if (algorithm.is_aead() && forms.size() > 1) forms.erase(forms.begin() + 1, forms.end());
  forms.push_back(nullptr);  // libcrypto
  std::printf("%-12s %s %8zu", algorithm.name.data(), direction == Direction::encrypt ? "encrypt" : "decrypt", len);
  std::vector<std::unique_ptr<Key>> keys;  // one each: a key keeps what its form made of it
  for (std::size_t f = 0; f < forms.size(); ++f) {
    keys.push_back(std::make_unique<Key>(algorithm, std::span(key_bytes).first(algorithm.key_len())));
  }
  std::vector<std::vector<double>> seconds(forms.size());
  const std::size_t calls = 1 + 500000 / (len + 500);
  for (int turn = 0; turn < turns; ++turn) {
    for (std::size_t f = 0; f < forms.size(); ++f) {
      Message m;
      m.key = keys[f].get();
      m.direction = direction;
      m.in = text.data();
      m.in_len = m.out_len = len;
      m.out = out.data();
      m.iv = key_bytes.data();
      m.iv_len = algorithm.is_aead() ? 12 : 16;
      m.tag = tag;
      m.tag_len = algorithm.is_aead() ? sizeof tag : 0;
      AesKey& state = AesKey::of(*m.key);
      const auto start = bench::Clock::now();
      for (std::size_t i = 0; i < calls; ++i) {
        run(forms[f], state, m);
      }
      seconds[f].push_back(bench::seconds(start, bench::Clock::now()) / static_cast<double>(calls));
    }
  }
  for (std::size_t f = 0; f < forms.size(); ++f) {
    const double gigabytes = static_cast<double>(len) / 1e9;
    std::printf("  %s %.2f (%.2f)", forms[f] != nullptr ? forms[f]->name : "libcrypto",
                gigabytes / bench::median(seconds[f]),
                gigabytes / *std::min_element(seconds[f].begin(), seconds[f].end()));
  }
  std::puts("");
}

}  // namespace
}  // namespace warpcipher

int main(int argc, char** argv) {
  using namespace warpcipher;
  const std::vector<std::string> modes(argv + 1, argv + argc);
  for (const Algorithm& algorithm : algorithms()) {
    const bool asked = modes.empty() || std::find(modes.begin(), modes.end(), algorithm.mode.name) != modes.end();
    if (!asked || !is_aes(algorithm.cipher.id) || algorithm.mode.id == Mode::gcm_siv) continue;
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      if (!algorithm.parallel(direction) || (algorithm.is_aead() && direction == Direction::decrypt)) continue;
      for (const std::size_t len : {64u, 256u, 512u, 1024u, 4096u, 16384u, 1u << 20})
        measure(algorithm, direction, len);
    }
  }
}
