// SPDX-License-Identifier: Apache-2.0
// billava2022 against the plain cipher: ECB and CTR, both key sizes, blocks of threads that the text does not fill.
#include <cstring>

#include "cipher/aes_reference.hpp"
#include "core/bytes.hpp"
#include "lab_test.hpp"

namespace warpcipher::lab::test {
namespace {

// CTR when there is an iv, else ECB.
Bytes plain_cipher(const Bytes& key, const Bytes& iv, const Bytes& in) {
  const aes::reference::Schedule schedule = aes::reference::expand_key(key.data(), key.size());
  Bytes out(in.size());
  Bytes counter = iv;
  for (std::size_t i = 0; i < in.size(); i += 16) {
    aes::reference::encrypt_block(schedule, iv.empty() ? &in[i] : counter.data(), &out[i]);
    if (iv.empty()) continue;
    xor_bytes(&out[i], &out[i], &in[i], 16);
    add_be128(counter.data(), 1);
  }
  return out;
}

}  // namespace

void test_billava2022() {
  Bytes wrapping(16, 0xff);
  wrapping[15] = 0xfd;
  for (const Variant& variant : find_paper("billava2022").variants) {
    if (!can_run(variant)) continue;
    const std::string name(variant.name);
    for (const std::size_t key_len : {std::size_t{16}, std::size_t{32}}) {
      Call call{"billava2022", variant.name, random_bytes(key_len)};
      const std::string what = name + " with a key of " + std::to_string(key_len);
      if (name.starts_with("key-")) {
        const aes::reference::Schedule schedule = aes::reference::expand_key(call.key.data(), key_len);
        const std::size_t len = 16 * (static_cast<std::size_t>(schedule.rounds) + 1);
        expect_equal(Bytes(schedule.bytes, schedule.bytes + len), run(call, {}, len), what);
        expect_refusal(call, {}, len - 1, what + ", short result");
        continue;
      }
      for (const Bytes& iv : {Bytes{}, random_bytes(16), wrapping}) {
        call.iv = iv;
        for (const std::int64_t threads : {512, 32, 96}) {
          if (name == "kernel") call.parameters = {{"threads", threads}};
          for (const std::size_t len : {0, 16, 32, 512, 1040}) {
            const Bytes in = random_bytes(len);
            expect_equal(plain_cipher(call.key, iv, in), run(call, in, len),
                         what + (iv.empty() ? ", ECB, " : ", CTR, ") + std::to_string(len) + " bytes");
          }
          if (name != "kernel") break;
        }
      }
      expect_refusal(call, Bytes(17), 17, what + ", 17 bytes");
      expect_refusal(call, Bytes(32), 16, what + ", short result");
      call.parameters["blocks"] = 1;
      expect_refusal(call, Bytes(16), 16, what + ", unknown parameter");
    }
    expect_refusal({"billava2022", variant.name, Bytes(24)}, {}, 0, name + " with a key of 24");
  }
  expect_refusal({"billava2022", "kernel", Bytes(16), {}, {{"threads", 100}}}, {}, 0, "100 threads");
  expect_refusal({"billava2022", "kernel", Bytes(16), {}, {{"threads", 2048}}}, {}, 0, "2048 threads");
}

}  // namespace warpcipher::lab::test
