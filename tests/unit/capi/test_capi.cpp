// SPDX-License-Identifier: Apache-2.0
// The C ABI as a C program sees it: only the shared library and warpcipher.h.
#include <gtest/gtest.h>
#include <warpcipher.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<unsigned char>;
using KeyPointer = std::unique_ptr<wc_key, decltype(&wc_key_free)>;

KeyPointer make_key(const char* algorithm, const Bytes& bytes) {
  wc_key* key = nullptr;
  EXPECT_EQ(wc_key_new(&key, algorithm, bytes.data(), bytes.size()), WC_OK) << wc_last_error();
  return {key, wc_key_free};
}

Bytes counting(std::size_t len) {
  Bytes bytes(len);
  for (std::size_t i = 0; i < len; ++i) bytes[i] = static_cast<unsigned char>(i * 7 + 1);
  return bytes;
}

TEST(CAbi, TellsWhatThereIs) {
  EXPECT_STREQ(wc_status_text(WC_INVALID_TAG), "invalid tag");
  ASSERT_NE(wc_algorithm_count(), 0u);
  wc_algorithm_info info{};
  for (std::size_t i = 0; i < wc_algorithm_count(); ++i) ASSERT_EQ(wc_algorithm_at(&info, i), WC_OK);
  EXPECT_EQ(wc_algorithm_at(&info, wc_algorithm_count()), WC_INVALID_ARGUMENT);
  EXPECT_EQ(wc_algorithm_at(nullptr, 0), WC_INVALID_ARGUMENT);
  bool has_reference = false;
  for (std::size_t i = 0; i < wc_engine_count(); ++i) {
    wc_engine_info engine{};
    ASSERT_EQ(wc_engine_at(&engine, i), WC_OK);
    EXPECT_EQ(engine.usable == 0, std::strlen(engine.reason) != 0);
    has_reference = has_reference || std::string(engine.name) == "reference";
  }
  EXPECT_TRUE(has_reference);
  int constant_time = -1;
  EXPECT_EQ(wc_engine_constant_time(&constant_time, "reference", "aes-128-ecb"), WC_OK);
  EXPECT_EQ(constant_time, 0);
  EXPECT_EQ(wc_engine_constant_time(&constant_time, "nope", "aes-128-ecb"), WC_INVALID_ARGUMENT);
}

TEST(CAbi, SealsAndOpens) {
  const KeyPointer key = make_key("aes-256-gcm", counting(32));
  const Bytes text = counting(1000), nonce(12, 9), aad = counting(13);
  Bytes sealed(text.size() + 16), opened(text.size(), 0xff);
  ASSERT_EQ(wc_seal(key.get(), sealed.data(), sealed.size(), text.data(), text.size(), nonce.data(), nonce.size(),
                    aad.data(), aad.size()),
            WC_OK);
  const auto open = [&](const Bytes& in) {
    return wc_open(key.get(), opened.data(), opened.size(), in.data(), in.size(), nonce.data(), nonce.size(),
                   aad.data(), aad.size());
  };
  ASSERT_EQ(open(sealed), WC_OK);
  EXPECT_EQ(opened, text);
  for (const std::size_t at : {std::size_t{0}, text.size() - 1, text.size(), sealed.size() - 1}) {
    Bytes forged = sealed;
    forged[at] ^= 0x80;
    std::fill(opened.begin(), opened.end(), 0xff);
    EXPECT_EQ(open(forged), WC_INVALID_TAG);
    EXPECT_EQ(opened, Bytes(text.size(), 0));
  }
  EXPECT_EQ(open(Bytes(15)), WC_INVALID_ARGUMENT);
  EXPECT_NE(std::string(wc_last_error()).find("16-byte tag"), std::string::npos);
}

TEST(CAbi, SealsNothing) {
  const KeyPointer key = make_key("aes-128-gcm", counting(16));
  const Bytes nonce(12, 9);
  Bytes tag(16);
  ASSERT_EQ(wc_seal(key.get(), tag.data(), 16, nullptr, 0, nonce.data(), 12, nullptr, 0), WC_OK);
  EXPECT_EQ(wc_open(key.get(), nullptr, 0, tag.data(), 16, nonce.data(), 12, nullptr, 0), WC_OK);
  tag[3] ^= 1;
  EXPECT_EQ(wc_open(key.get(), nullptr, 0, tag.data(), 16, nonce.data(), 12, nullptr, 0), WC_INVALID_TAG);
}

TEST(CAbi, PadsAndTakesPaddingOff) {
  for (const char* name : {"aes-128-cbc", "aes-256-ecb", "des-ede3-cbc"}) {
    wc_algorithm_info info{};
    for (std::size_t i = 0; i < wc_algorithm_count(); ++i) {
      wc_algorithm_at(&info, i);
      if (std::string(info.name) == name) break;
    }
    const KeyPointer key = make_key(name, counting(info.key_len));
    const Bytes iv(info.iv_rule == WC_IV_NONE ? 0 : info.block_len, 3);
    for (std::size_t len = 0; len < 40; ++len) {
      const Bytes text = counting(len);
      Bytes out(len + 16), back(len + 16);
      std::size_t written = 0, got = 0;
      ASSERT_EQ(wc_encrypt(key.get(), out.data(), out.size(), &written, text.data(), len, iv.data(), iv.size(),
                           WC_PADDING_PKCS7),
                WC_OK);
      EXPECT_EQ(written, (len / info.block_len + 1) * info.block_len);
      ASSERT_EQ(wc_decrypt(key.get(), back.data(), back.size(), &got, out.data(), written, iv.data(), iv.size(),
                           WC_PADDING_PKCS7),
                WC_OK);
      back.resize(got);
      EXPECT_EQ(back, text);
    }
    const Bytes garbage(64, 0x5c);
    Bytes back(64, 0xff);
    EXPECT_EQ(wc_decrypt(key.get(), back.data(), back.size(), nullptr, garbage.data(), garbage.size(), iv.data(),
                         iv.size(), WC_PADDING_PKCS7),
              WC_INVALID_PADDING);
    EXPECT_EQ(back, Bytes(64, 0));
  }
}

TEST(CAbi, ABadTagFailsItsMessageAlone) {
  const KeyPointer key = make_key("aes-192-gcm", counting(24));
  const Bytes text = counting(500), nonces = counting(36);
  Bytes ciphertext[3], tags[3], back[3];
  wc_message messages[3] = {};
  wc_result results[3];
  for (int i = 0; i < 3; ++i) {
    ciphertext[i].resize(text.size());
    tags[i].resize(16);
    back[i].resize(text.size(), 0xff);
    messages[i].key = key.get();
    messages[i].in = text.data();
    messages[i].in_len = messages[i].out_len = text.size();
    messages[i].out = ciphertext[i].data();
    messages[i].iv = nonces.data() + 12 * i;
    messages[i].iv_len = 12;
    messages[i].tag = tags[i].data();
    messages[i].tag_len = 16;
  }
  ASSERT_EQ(wc_run(nullptr, results, messages, 3, nullptr), WC_OK) << wc_last_error();
  tags[1][0] ^= 1;
  for (int i = 0; i < 3; ++i) {
    messages[i].direction = WC_DECRYPT;
    messages[i].in = ciphertext[i].data();
    messages[i].out = back[i].data();
  }
  EXPECT_EQ(wc_run("auto", results, messages, 3, nullptr), WC_INVALID_TAG);
  EXPECT_EQ(results[0].status, WC_OK);
  EXPECT_EQ(results[1].status, WC_INVALID_TAG);
  EXPECT_EQ(results[1].written, 0u);
  EXPECT_EQ(results[2].written, text.size());
  EXPECT_EQ(back[0], text);
  EXPECT_EQ(back[1], Bytes(text.size(), 0));
  EXPECT_EQ(back[2], text);
}

TEST(CAbi, RunsColumns) {
  const KeyPointer a = make_key("aes-128-gcm", counting(16)), b = make_key("aes-128-gcm", Bytes(16, 1));
  const wc_key* keys[] = {a.get(), b.get()};
  const std::uint32_t key_index[] = {0, 1, 1};
  const std::uint64_t lengths[] = {10, 0, 100}, sealed_lengths[] = {26, 16, 116};
  const Bytes text = counting(110), nonces = counting(36), aad = counting(5);
  Bytes sealed(110 + 48), back(110);
  wc_result results[3];
  wc_columns columns = {};
  columns.keys = keys;
  columns.key_count = 2;
  columns.key_index = key_index;
  columns.count = 3;
  columns.in = text.data();
  columns.in_len = text.size();
  columns.in_lengths = lengths;
  columns.out = sealed.data();
  columns.out_len = sealed.size();
  columns.ivs = nonces.data();
  columns.iv_len = 12;
  columns.aad = aad.data();
  columns.aad_len = aad.size();
  columns.tag_len = 16;
  ASSERT_EQ(wc_run_columns("auto", results, &columns, nullptr), WC_OK) << wc_last_error();
  EXPECT_EQ(results[2].written, 116u);
  columns.direction = WC_DECRYPT;
  columns.in = sealed.data();
  columns.in_len = sealed.size();
  columns.in_lengths = sealed_lengths;
  columns.out = back.data();
  columns.out_len = back.size();
  ASSERT_EQ(wc_run_columns("reference", results, &columns, nullptr), WC_OK) << wc_last_error();
  EXPECT_EQ(back, text);
  columns.in_len -= 1;
  EXPECT_EQ(wc_run_columns("auto", results, &columns, nullptr), WC_INVALID_ARGUMENT);
  EXPECT_NE(std::string(wc_last_error()).find("leaves the buffer"), std::string::npos);
  columns.in_len += 1;

  // The same keys as bytes.
  Bytes key_bytes = counting(16);
  key_bytes.insert(key_bytes.end(), 16, 1);
  columns.algorithm = "aes-128-gcm";
  columns.key_bytes = key_bytes.data();
  columns.key_bytes_len = key_bytes.size();
  EXPECT_EQ(wc_run_columns("auto", results, &columns, nullptr), WC_INVALID_ARGUMENT);  // given twice
  columns.keys = nullptr;
  columns.key_count = 0;
  back.assign(back.size(), 0);
  ASSERT_EQ(wc_run_columns("auto", results, &columns, nullptr), WC_OK) << wc_last_error();
  EXPECT_EQ(back, text);
  sealed[30] ^= 1;
  EXPECT_EQ(wc_run_columns("auto", results, &columns, nullptr), WC_INVALID_TAG);
  EXPECT_EQ(results[1].status, WC_INVALID_TAG);
  EXPECT_EQ(results[2].status, WC_OK);
  columns.key_bytes_len = 31;
  EXPECT_EQ(wc_run_columns("auto", results, &columns, nullptr), WC_INVALID_ARGUMENT);
  columns.key_bytes_len = 32;
  columns.columns_memory = WC_MEMORY_DEVICE;  // but the text lies on the host
  EXPECT_EQ(wc_run_columns("auto", results, &columns, nullptr), WC_INVALID_ARGUMENT);
}

struct FreeBatch {
  void operator()(wc_batch* batch) const { wc_batch_free(batch); }
};

TEST(CAbi, RunsABatchInTheBackground) {
  const KeyPointer gcm = make_key("aes-256-gcm", counting(32)), ctr = make_key("aes-128-ctr", counting(16));
  const Bytes text = counting(1000), iv = counting(16);
  std::vector<Bytes> sealed(20, Bytes(text.size())), tags(20, Bytes(16)), nonces;
  wc_batch* made = nullptr;
  ASSERT_EQ(wc_batch_new(&made, nullptr), WC_OK);
  const std::unique_ptr<wc_batch, FreeBatch> batch(made);
  for (std::uint8_t i = 0; i < 20; ++i) nonces.push_back(Bytes(12, i));
  for (std::size_t i = 0; i < 20; ++i) {
    wc_message m = {};
    m.key = i % 2 == 0 ? gcm.get() : ctr.get();
    m.in = text.data();
    m.in_len = text.size();
    m.out = sealed[i].data();
    m.out_len = sealed[i].size();
    m.iv = i % 2 == 0 ? nonces[i].data() : iv.data();
    m.iv_len = i % 2 == 0 ? 12 : 16;
    m.tag = i % 2 == 0 ? tags[i].data() : nullptr;
    m.tag_len = i % 2 == 0 ? 16 : 0;
    std::size_t index = 99;
    ASSERT_EQ(wc_batch_add(made, &index, &m), WC_OK) << wc_last_error();
    EXPECT_EQ(index, i);
  }
  wc_result result;
  EXPECT_EQ(wc_batch_wait(made), WC_INVALID_ARGUMENT);
  EXPECT_EQ(wc_batch_result(&result, made, 0), WC_INVALID_ARGUMENT);
  int done = 7;
  EXPECT_EQ(wc_batch_query(&done, made), WC_OK);
  EXPECT_EQ(done, 0);
  ASSERT_EQ(wc_batch_start(made, nullptr), WC_OK) << wc_last_error();
  EXPECT_EQ(wc_batch_start(made, nullptr), WC_INVALID_ARGUMENT);
  wc_message late = {};
  EXPECT_EQ(wc_batch_add(made, nullptr, &late), WC_INVALID_ARGUMENT);
  ASSERT_EQ(wc_batch_wait(made), WC_OK) << wc_last_error();
  EXPECT_EQ(wc_batch_query(&done, made), WC_OK);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(wc_batch_result(&result, made, 20), WC_INVALID_ARGUMENT);
  for (std::size_t i = 0; i < 20; ++i) {
    ASSERT_EQ(wc_batch_result(&result, made, i), WC_OK);
    EXPECT_EQ(result.status, WC_OK);
    EXPECT_EQ(result.written, text.size());
  }
  Bytes expected(text.size());
  ASSERT_EQ(wc_encrypt(ctr.get(), expected.data(), expected.size(), nullptr, text.data(), text.size(), iv.data(), 16,
                       WC_PADDING_NONE),
            WC_OK);
  EXPECT_EQ(sealed[1], expected);
}

TEST(CAbi, TellsOfABatchWhatFailed) {
  const KeyPointer gcm = make_key("aes-256-gcm", counting(32));
  Bytes sealed(100), out(84), other(84), nonce = counting(12);
  ASSERT_EQ(wc_seal(gcm.get(), sealed.data(), 100, counting(84).data(), 84, nonce.data(), 12, nullptr, 0), WC_OK);
  wc_message m = {};
  m.key = gcm.get();
  m.direction = WC_DECRYPT;
  m.in = sealed.data();
  m.in_len = m.out_len = 84;
  m.out = out.data();
  m.iv = nonce.data();
  m.iv_len = 12;
  Bytes tag(sealed.begin() + 84, sealed.end()), bad = tag;
  bad[0] ^= 1;
  m.tag = tag.data();
  m.tag_len = 16;
  wc_batch* made = nullptr;
  ASSERT_EQ(wc_batch_new(&made, "cpu"), WC_OK);
  std::unique_ptr<wc_batch, FreeBatch> batch(made);
  ASSERT_EQ(wc_batch_add(made, nullptr, &m), WC_OK);
  m.tag = bad.data();
  m.out = other.data();
  ASSERT_EQ(wc_batch_add(made, nullptr, &m), WC_OK);
  ASSERT_EQ(wc_batch_start(made, nullptr), WC_OK);
  EXPECT_EQ(wc_batch_wait(made), WC_INVALID_TAG);
  wc_result result;
  ASSERT_EQ(wc_batch_result(&result, made, 0), WC_OK);
  EXPECT_EQ(result.status, WC_OK);
  ASSERT_EQ(wc_batch_result(&result, made, 1), WC_OK);
  EXPECT_EQ(result.status, WC_INVALID_TAG);
  EXPECT_EQ(other, Bytes(84));
  // A message that cannot be right is found when the batch runs, and then nothing has been run.
  made = nullptr;
  ASSERT_EQ(wc_batch_new(&made, "cpu"), WC_OK);
  batch.reset(made);
  m.key = nullptr;
  ASSERT_EQ(wc_batch_add(made, nullptr, &m), WC_OK);
  ASSERT_EQ(wc_batch_start(made, nullptr), WC_OK);
  EXPECT_EQ(wc_batch_wait(made), WC_INVALID_ARGUMENT);
  EXPECT_NE(std::string(wc_last_error()).find("key"), std::string::npos);
  EXPECT_EQ(wc_batch_result(&result, made, 0), WC_INVALID_ARGUMENT);
}

TEST(CAbi, RefusesWhatCannotBeRight) {
  const Bytes bytes = counting(64);
  wc_key* key = nullptr;
  EXPECT_EQ(wc_key_new(&key, "aes-128-gcm", bytes.data(), 17), WC_INVALID_ARGUMENT);
  EXPECT_EQ(wc_key_new(&key, "rot13", bytes.data(), 16), WC_INVALID_ARGUMENT);
  EXPECT_EQ(wc_key_new(&key, nullptr, bytes.data(), 16), WC_INVALID_ARGUMENT);
  EXPECT_EQ(wc_key_new(nullptr, "aes-128-gcm", bytes.data(), 16), WC_INVALID_ARGUMENT);
  EXPECT_EQ(key, nullptr);
  const KeyPointer ctr = make_key("aes-128-ctr", counting(16));
  Bytes out(64);
  EXPECT_EQ(wc_encrypt(nullptr, out.data(), 64, nullptr, bytes.data(), 64, bytes.data(), 16, WC_PADDING_NONE),
            WC_INVALID_ARGUMENT);
  EXPECT_EQ(wc_encrypt(ctr.get(), out.data(), 63, nullptr, bytes.data(), 64, bytes.data(), 16, WC_PADDING_NONE),
            WC_INVALID_ARGUMENT);
  const volatile int unknown_padding = 7;  // as C code may pass; a constant would be an error in C++
  EXPECT_EQ(wc_encrypt(ctr.get(), out.data(), 64, nullptr, bytes.data(), 64, bytes.data(), 16,
                       static_cast<wc_padding>(unknown_padding)),
            WC_INVALID_ARGUMENT);
  EXPECT_EQ(wc_seal(ctr.get(), out.data(), 64, bytes.data(), 16, bytes.data(), 12, nullptr, 0), WC_INVALID_ARGUMENT);
  const KeyPointer gcm = make_key("aes-128-gcm", counting(16));
  EXPECT_EQ(wc_encrypt(gcm.get(), out.data(), 64, nullptr, bytes.data(), 64, bytes.data(), 12, WC_PADDING_NONE),
            WC_INVALID_ARGUMENT);
  EXPECT_NE(std::string(wc_last_error()).find("wc_seal"), std::string::npos);
  EXPECT_EQ(wc_run("tpu", nullptr, nullptr, 0, nullptr), WC_ENGINE_UNAVAILABLE);
  EXPECT_NE(std::string(wc_last_error()).find("tpu"), std::string::npos);
  EXPECT_EQ(wc_run("auto", nullptr, nullptr, 1, nullptr), WC_INVALID_ARGUMENT);
  EXPECT_EQ(out, Bytes(64, 0));
}

}  // namespace
