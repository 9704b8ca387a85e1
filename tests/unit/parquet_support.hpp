// SPDX-License-Identifier: Apache-2.0
// Texts of thrift's compact protocol for the tests of src/parquet, and random damage to them. Each text that is read
// lies in an allocation of exactly its size, so that a sanitizer sees the first byte beyond.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "parquet/compact.hpp"
#include "parquet/page_modules.hpp"

namespace warpcipher::parquet {

using Text = std::vector<std::uint8_t>;

inline Text bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

// A struct written field by field.
class StructText {
 public:
  StructText& integer(int number, std::int64_t value, Kind kind = Kind::i64) {
    writer_.field(last_, number, kind);
    writer_.varint(zigzag(value));
    return *this;
  }
  StructText& binary(int number, const std::string& value) {
    writer_.field(last_, number, Kind::binary);
    writer_.varint(value.size());
    writer_.bytes(bytes_of(value));
    return *this;
  }
  StructText& structure(int number, const Text& value) {
    writer_.field(last_, number, Kind::structure);
    writer_.bytes(value);
    return *this;
  }
  StructText& list(int number, const std::vector<Text>& structs) {
    writer_.field(last_, number, Kind::list);
    writer_.list(Kind::structure, structs.size());
    for (const Text& each : structs) writer_.bytes(each);
    return *this;
  }
  Text end() {
    writer_.byte(0);
    return writer_.out();
  }

 private:
  CompactWriter writer_;
  int last_ = 0;
};

// Modules of these lengths, the four bytes of the length not counted.
inline Text modules_of(std::initializer_list<std::uint32_t> lengths) {
  Text data;
  for (const std::uint32_t length : lengths) {
    const std::size_t start = data.size();
    data.resize(start + length_size + length, 0xaa);
    store_le32(data.data() + start, length);
  }
  return data;
}

// The text of the refusal of `call`; "" where it does its work.
inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_argument);
    return error.what();
  }
  return "";
}

// Calls `read` with every cut of a text and with many texts that differ from it in some bytes. It may refuse them.
inline void damage(const Text& text, const std::function<void(const Text&)>& read) {
  const auto attempt = [&](const Text& changed) { refusal([&] { read(Text(changed.begin(), changed.end())); }); };
  for (std::size_t size = 0; size < text.size(); ++size)
    attempt(Text(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size)));
  std::mt19937_64 random(7);
  const auto byte = [&] { return static_cast<std::uint8_t>(random() % 3 == 0 ? 0xff : random()); };
  for (int run = 0; run < 5000; ++run) {
    Text changed = text;
    for (std::uint64_t changes = 1 + random() % 4; changes > 0 && !changed.empty(); --changes) {
      const auto at = static_cast<std::ptrdiff_t>(random() % changed.size());
      switch (random() % 4) {
        case 0: changed.erase(changed.begin() + at); break;
        case 1: changed.insert(changed.begin() + at, byte()); break;
        default: changed[static_cast<std::size_t>(at)] = byte();
      }
    }
    attempt(changed);
  }
}

}  // namespace warpcipher::parquet
