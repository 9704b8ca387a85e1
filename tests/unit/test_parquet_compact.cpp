// SPDX-License-Identifier: Apache-2.0
// Thrift's compact protocol as src/parquet reads it: what is kept, what is refused, and input that means harm. Its
// oracle, thriftpy2, is in tests/python/parquet/test_thrift.py.
#include <limits>

#include "parquet_support.hpp"

namespace warpcipher::parquet {
namespace {

Text written(const CompactStruct& fields) {
  CompactWriter writer;
  fields.write(writer);
  return writer.out();
}

// A struct with a value of every type, nested.
Text everything() {
  Text text =
      StructText().integer(1, -5, Kind::i32).binary(2, "text").structure(3, StructText().integer(1, 7).end()).end();
  text.pop_back();
  const Text rest = {
      0x11,                                               // 4: true
      0x12,                                               // 5: false
      0x13, 0x80,                                         // 6: an i8
      0x17, 0,    0,    0,    0,    0,    0, 0xf0, 0x3f,  // 7: 1.0
      0x19, 0x25, 2,    4,                                // 8: a list of two i32
      0x1a, 0x21, 1,    2,                                // 9: a set of two bools
      0x1b, 1,    0x86, 1,    'k',  2,                    // 10: a map of a text to an i64
      0x1b, 0,                                            // 11: an empty map
      0x1d, 1,    2,    3,    4,    5,    6, 7,    8,    9, 10, 11, 12, 13, 14, 15, 16,  // 12: a uuid
      0x06, 0xd0, 0x0f, 0x80, 0x80, 0x01,                                                // 1000: a long i64
      0,
  };
  text.insert(text.end(), rest.begin(), rest.end());
  return text;
}

TEST(ParquetCompact, BytesComeBack) {
  const Text text = everything();
  EXPECT_EQ(written(CompactStruct(Bytes(text))), text);
}

TEST(ParquetCompact, ASetNumberIsAllThatChanges) {
  const Text text = everything();
  CompactStruct fields{Bytes(text)};
  fields.set(1, 1 << 20);
  fields.erase(1000);
  fields.set(40, 3, Kind::i32);
  const Text changed = written(fields);
  const CompactStruct again{Bytes(changed)};
  EXPECT_EQ(required_integer(again, 1, "it"), 1 << 20);
  EXPECT_EQ(required_integer(again, 40, "it"), 3);
  EXPECT_EQ(again.find(1)->kind, Kind::i32);
  EXPECT_EQ(again.find(1000), nullptr);
  EXPECT_EQ(again.fields().size(), 13u);
}

TEST(ParquetCompact, FieldsInAnyOrderAreSorted) {
  const Text text = {0x06, 0x08, 2, 0x06, 0x02, 4, 0x26, 6, 0};  // 4, 1, 3
  const CompactStruct fields{Bytes(text)};
  ASSERT_EQ(fields.fields().size(), 3u);
  EXPECT_EQ(required_integer(fields, 1, "it"), 2);
  EXPECT_EQ(required_integer(fields, 3, "it"), 3);
  EXPECT_EQ(required_integer(fields, 4, "it"), 1);
}

TEST(ParquetCompact, IntegersOfAllSizes) {
  for (const std::int64_t value :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{63}, std::int64_t{64}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    CompactWriter writer;
    writer.varint(zigzag(value));
    EXPECT_EQ(writer.out().size(), varint_size(zigzag(value)));
    EXPECT_EQ(CompactReader(writer.out()).integer(), value);
  }
  CompactWriter padded;
  padded.varint(zigzag(300), 5);
  EXPECT_EQ(padded.out().size(), 5u);
  EXPECT_EQ(CompactReader(padded.out()).integer(), 300);
}

TEST(ParquetCompact, LiesAreRefused) {
  const auto says = [](const Text& text) { return refusal([&] { CompactStruct{Bytes(text)}; }); };
  EXPECT_EQ(says({}), "cut short after 0 bytes");
  EXPECT_EQ(says(Text(100'000, 0x1c)), "nested more than 48 deep");
  EXPECT_EQ(says(Text(100'000, 0x19)), "nested more than 48 deep");
  EXPECT_EQ(says({0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f, 0}), "a list of 4294967295 elements in 1 bytes");
  EXPECT_EQ(says({0x1b, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x88}), "a map of 4294967295 entries in 1 bytes");
  EXPECT_EQ(says({0x18, 0xff, 0xff, 0xff, 0xff, 0x0f, 0}), "4294967295 bytes of binary where 1 are left");
  EXPECT_EQ(says({0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0}),
            "18446744073709551615 bytes of binary where 1 are left");
  EXPECT_EQ(says({0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0}),
            "an integer of more than 64 bits");
  EXPECT_EQ(says({0x1e, 0}), "unknown type 14");
  EXPECT_EQ(says({0x10, 0}), "unknown type 0");
  EXPECT_EQ(says({0x15, 2, 0x05, 2, 2, 0}), "field 1 is there twice");
  EXPECT_EQ(says({0x05, 0xfe, 0xff, 0x7f, 2, 0}), "a field of number 1048575");
  EXPECT_EQ(says({0x15, 2, 0, 0}), "1 bytes follow its end");
}

TEST(ParquetCompact, WrongFieldsAreNamed) {
  const Text text = StructText().integer(1, -4).binary(2, "x").end();
  const CompactStruct fields{Bytes(text)};
  const auto says = [&](int number) { return refusal([&] { required_integer(fields, number, "its size"); }); };
  EXPECT_EQ(says(1), "its size is -4: expected an integer that is not negative");
  EXPECT_EQ(says(2), "its size has type 8: expected an integer that is not negative");
  EXPECT_EQ(says(3), "its size is missing: expected an integer that is not negative");
  CompactStruct changed = fields;
  EXPECT_EQ(refusal([&] { changed.set(2, 1); }), "field 2 of the metadata has type 8: expected an integer");
}

TEST(ParquetCompact, DamagedTextsGiveAStructOrTheError) {
  damage(everything(), [](const Text& text) {
    const CompactStruct fields{Bytes(text)};
    const Text again = written(fields);
    ASSERT_EQ(written(CompactStruct(Bytes(again))), again);
  });
}

TEST(ParquetCompact, ManyFieldsOutOfOrderTakeNoQuadraticTime) {
  CompactWriter writer;
  for (int number = 32'767; number > -32'768; --number) {
    writer.byte(static_cast<std::uint8_t>(Kind::yes));
    writer.varint(zigzag(number));
  }
  writer.byte(0);
  EXPECT_EQ(CompactStruct(Bytes(writer.out())).fields().size(), 65'535u);
}

}  // namespace
}  // namespace warpcipher::parquet
