// SPDX-License-Identifier: Apache-2.0
// quirem2013 against the plain cipher: texts that fill the paper's grid and texts that do not, and grids of one block
// of threads, of a square and of more.
#include "cipher/aes_reference.hpp"
#include "core/bytes.hpp"
#include "lab_test.hpp"

namespace warpcipher::lab::test {

void test_quirem2013() {
  struct Shape {
    std::int64_t threads;
    std::size_t text_len, blocks;  // of threads, by section II: 1 by 1, 1 by 2, 2 by 2, 2 by 3
  };
  for (const Variant& variant : find_paper("quirem2013").variants) {
    if (!can_run(variant)) continue;
    const std::string name(variant.name);
    Call call{"quirem2013", variant.name, random_bytes(32)};
    const aes::reference::Schedule schedule = aes::reference::expand_key(call.key.data(), 32);
    const std::size_t bytes = name == "thread" ? 16 : 4;  // a thread
    for (const Shape& shape : {Shape{32, 16, 1}, {32, 64 * bytes, 2}, {64, 200 * bytes, 4}, {32, 160 * bytes, 6}}) {
      const std::size_t covered =
          variant.needs_gpu ? static_cast<std::size_t>(shape.threads) * bytes * shape.blocks : shape.text_len;
      const Bytes in = random_bytes(16 + covered);
      Bytes expected(covered);
      for (std::size_t i = 0; i < covered; i += 16) {
        aes::reference::decrypt_block(schedule, &in[16 + i], &expected[i]);
        xor_bytes(&expected[i], &expected[i], &in[i], 16);
      }
      if (variant.needs_gpu) {
        call.parameters = {{"threads", shape.threads}, {"text", static_cast<std::int64_t>(shape.text_len)}};
      }
      const std::string what = name + ", " + std::to_string(shape.text_len) + " bytes";
      expect_equal(expected, run(call, in, covered), what);
      expect_refusal(call, in, covered + 16, what + ", long result");
      if (variant.needs_gpu) expect_refusal(call, Bytes(16 + covered + 32), covered + 32, what + ", another grid");
    }
    expect_refusal({"quirem2013", variant.name, Bytes(16)}, Bytes(16), 0, name + ", key of 16");
    expect_refusal({"quirem2013", variant.name, Bytes(32), Bytes(16)}, Bytes(16), 0, name + ", an iv apart");
  }
  expect_refusal({"quirem2013", "thread", Bytes(32), {}, {{"threads", 100}}}, Bytes(16), 0, "100 threads");
}

}  // namespace warpcipher::lab::test
