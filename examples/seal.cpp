// SPDX-License-Identifier: Apache-2.0
// The C++ header: keys that free themselves, spans of anything contiguous, exceptions.
// Build: c++ -std=c++17 seal.cpp $(pkg-config --cflags --libs warpcipher)

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>
#include <warpcipher.hpp>

#if __cplusplus >= 202002L
#include <span>
#endif

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("not so: %s\n", what);
  ++failures;
}

void seal_and_open() {
  const std::array<unsigned char, 32> secret{1, 2, 3};  // from a key store
  const warpcipher::key key("aes-256-gcm", secret);
  const std::string text = "attack at dawn";
  const unsigned char nonce[12] = {7};  // never twice with one key
  std::vector<std::byte> sealed(text.size() + 16);
  warpcipher::seal(key, sealed, text, nonce, std::string_view("header"));

  std::string opened(text.size(), ' ');
  warpcipher::open(key, opened, sealed, nonce, std::string_view("header"));
  expect(opened == text, "what was sealed opens");

  sealed.back() ^= std::byte{1};
  try {
    warpcipher::open(key, opened, sealed, nonce, std::string_view("header"));
    expect(false, "a changed tag throws");
  } catch (const warpcipher::invalid_tag& error) {
    expect(error.status() == WC_INVALID_TAG && std::strlen(error.what()) > 0, "it says so");
  }
}

void refuse() {
  try {
    warpcipher::key key("aes-257-gcm", std::string(32, 'k'));
    expect(false, "an unknown algorithm throws");
  } catch (const warpcipher::error& error) {
    expect(error.status() == WC_INVALID_ARGUMENT, "as a wrong argument");
    expect(std::strstr(error.what(), "aes-257-gcm") != nullptr, "with what was given");
  }
}

void run_many() {
  warpcipher::key made("aes-128-ctr", std::vector<int>(4));  // 16 bytes, as four int
  const warpcipher::key key = std::move(made);
  const std::vector<unsigned char> in(1000, 'x');
  std::vector<unsigned char> out(in.size()), one(in.size());
  const std::array<unsigned char, 16> iv{9};
  expect(warpcipher::encrypt(key, one, in, iv) == in.size(), "all of the text is written");

  const auto results = warpcipher::run({warpcipher::message(key, WC_ENCRYPT, out, in, iv)});
  expect(results.size() == 1 && results[0].status == WC_OK && out == one, "run gives the same");

  std::fill(out.begin(), out.end(), static_cast<unsigned char>(0));
  warpcipher::batch batch;
  const auto index = batch.add(warpcipher::message(key, WC_ENCRYPT, out, in, iv));
  batch.start();
  batch.wait();
  expect(batch.done() && batch.result(index).written == in.size() && out == one, "and so does a batch");

  std::fill(out.begin(), out.end(), static_cast<unsigned char>(0));
  warpcipher::queue queue("cpu");
  const warpcipher::job job = queue.submit(warpcipher::message(key, WC_ENCRYPT, out, in, iv));
  expect(job.wait() == in.size() && job.done() && out == one, "and a queue");
  queue.close();
  expect(queue.statistics().messages == 1, "which counts");
  try {
    queue.submit(warpcipher::message(key, WC_ENCRYPT, out, in, iv));
    expect(false, "a closed queue throws");
  } catch (const warpcipher::error& error) {
    expect(error.status() == WC_QUEUE_CLOSED, "it says so");
  }

  const std::string text = "not a block";
  const warpcipher::key cbc("aes-128-cbc", std::vector<int>(4));
  std::vector<char> padded(16), plain(16);
  expect(warpcipher::encrypt(cbc, padded, text, iv, WC_PADDING_PKCS7) == 16, "padding fills the block");
  const auto size = warpcipher::decrypt(cbc, plain, padded, iv, WC_PADDING_PKCS7);
  expect(std::string(plain.data(), size) == text, "and is taken off");
#if __cplusplus >= 202002L
  const std::span<const unsigned char> half(in.data(), 500);
  expect(warpcipher::encrypt(key, std::span(out), half, iv) == 500, "std::span is taken");
#endif
}

}  // namespace

static_assert(!std::is_copy_constructible_v<warpcipher::key> && std::is_move_constructible_v<warpcipher::key>);
static_assert(!std::is_constructible_v<warpcipher::mutable_view, const std::vector<char>&>, "it would be written to");
static_assert(!std::is_constructible_v<warpcipher::view, std::vector<std::string>&>, "strings are not bytes");

int main() {
  expect(warpcipher::version() == WC_VERSION, "the header is the library's");
  expect(!warpcipher::algorithms().empty() && !warpcipher::engines().empty(), "there is something");
  seal_and_open();
  refuse();
  run_many();
  if (failures == 0) std::printf("sealed, opened, refused, ran\n");
  return failures == 0 ? 0 : 1;
}
