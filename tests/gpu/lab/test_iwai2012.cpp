// SPDX-License-Identifier: Apache-2.0
// iwai2012 against the plain cipher: every column of its tables, texts that end inside a turn, fewer blocks of threads
// than the text needs, as many, and more.
#include "cipher/aes_reference.hpp"
#include "lab_test.hpp"

namespace warpcipher::lab::test {

void test_iwai2012() {
  const Bytes in = random_bytes(16 * 300);
  for (const Variant& variant : find_paper("iwai2012").variants) {
    if (!can_run(variant)) continue;
    const std::string name(variant.name);
    Call call{"iwai2012", variant.name, random_bytes(16)};
    const aes::reference::Schedule schedule = aes::reference::expand_key(call.key.data(), 16);
    Bytes expected(in.size());
    for (std::size_t i = 0; i < in.size(); i += 16) aes::reference::encrypt_block(schedule, &in[i], &expected[i]);
    struct Shape {
      std::int64_t threads, blocks;
      std::size_t len;
    };
    // A byte a thread: 32 threads are two blocks of the cipher in a turn.
    for (const Shape& shape : {Shape{64, 2, 4800}, {32, 0, 4800}, {96, 3, 1008}, {512, 60, 16}, {1024, 1, 0}}) {
      if (variant.needs_gpu) call.parameters = {{"threads", shape.threads}, {"blocks", shape.blocks}};
      const auto end = static_cast<std::ptrdiff_t>(shape.len);
      expect_equal({expected.begin(), expected.begin() + end}, run(call, {in.begin(), in.begin() + end}, shape.len),
                   name + ", " + std::to_string(shape.threads) + " threads, " + std::to_string(shape.blocks) +
                       " blocks, " + std::to_string(shape.len) + " bytes");
    }
    expect_refusal(call, Bytes(24), 24, name + ", 24 bytes");
    call.parameters["threads"] = 40;
    expect_refusal(call, Bytes(16), 16, name + ", 40 threads");
    expect_refusal({"iwai2012", variant.name, Bytes(32)}, Bytes(16), 16, name + ", key of 32");
    expect_refusal({"iwai2012", variant.name, Bytes(16), Bytes(16)}, Bytes(16), 16, name + ", an iv");
  }
}

}  // namespace warpcipher::lab::test
