// SPDX-License-Identifier: Apache-2.0
// Row groups found in a footer and rewritten without encryption; footers that lie.
#include "parquet/row_groups.hpp"
#include "parquet_support.hpp"

namespace warpcipher::parquet {
namespace {

constexpr std::uint64_t file_size = 10'000;

StructText metadata(std::int64_t dictionary, std::int64_t data, std::int64_t size) {
  StructText text;
  text.integer(1, 2, Kind::i32).integer(4, 0, Kind::i32).integer(5, 50).integer(6, 900).integer(7, size);
  text.integer(9, data);
  if (dictionary != 0) text.integer(11, dictionary);
  return text;
}

Text chunk(const Text& meta) {
  return StructText()
      .integer(2, 4)
      .structure(3, meta)
      .integer(4, 5000)
      .integer(5, 60, Kind::i32)
      .structure(8, StructText().structure(1, Text{0}).end())
      .end();
}

Text group(const std::vector<Text>& chunks) {
  return StructText()
      .list(1, chunks)
      .integer(2, 1800)
      .integer(3, 50)
      .integer(5, 4)
      .integer(6, 800)
      .integer(7, 3, Kind::i16)
      .end();
}

Text list_of(const std::vector<Text>& groups) {
  CompactWriter writer;
  writer.list(Kind::structure, groups.size());
  for (const Text& each : groups) writer.bytes(each);
  return writer.out();
}

Text usual() { return list_of({group({chunk(metadata(4, 100, 400).end()), chunk(metadata(0, 404, 400).end())})}); }

std::string refused(const Text& meta) {
  const RowGroups groups(list_of({group({chunk(meta)})}), {"a"});
  return refusal([&] { groups.locate(0, 0, file_size); });
}

TEST(ParquetRowGroups, ChunksAreFound) {
  const RowGroups groups(usual(), {"a", "b"});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups.rows(0), 50u);
  EXPECT_EQ(groups.ordinal(0), 3u);
  const ChunkRange first = groups.locate(0, 0, file_size), second = groups.locate(0, 1, file_size);
  EXPECT_EQ(first.start, 4u);
  EXPECT_EQ(first.data, 100u);
  EXPECT_TRUE(first.dictionary);
  EXPECT_EQ(second.start, 404u);
  EXPECT_EQ(second.size, 400u);
  EXPECT_FALSE(second.dictionary);
  EXPECT_EQ(groups.crypto(0, 0)->size(), 3u);
  EXPECT_FALSE(groups.sealed_metadata(0, 0));
}

TEST(ParquetRowGroups, LiesAreNamed) {
  const std::string what = "column a, row group 0: ";
  EXPECT_EQ(refused(metadata(0, 9'800, 201).end()), what + "201 bytes at 9800 are not in the file, which has 10000");
  EXPECT_EQ(refused(metadata(0, INT64_MAX, INT64_MAX).end()).find(what + "9223372036854775807 bytes"), 0u);
  EXPECT_EQ(refused(metadata(4, 500, 400).end()), what + "its data pages begin at 500, after its end");
  EXPECT_EQ(refused(metadata(0, -4, 400).end()),
            what + "the offset of its data is -4: expected an integer that is not negative");
  EXPECT_EQ(refused(StructText().integer(9, 4).end()),
            what + "its size is missing: expected an integer that is not negative");
  const auto none = [](const Text& fields) {
    const RowGroups groups(list_of({group({fields})}), {"a"});
    return refusal([&] { groups.locate(0, 0, file_size); });
  };
  EXPECT_EQ(none({0}), what + "there is no metadata");
  EXPECT_EQ(none(StructText().binary(3, "x").end()), what + "there is no metadata");
  EXPECT_EQ(none(StructText().binary(1, "/etc/passwd").structure(3, metadata(0, 4, 4).end()).end()),
            what + "its data lies in another file");
}

TEST(ParquetRowGroups, ListsThatAreNoneAreRefused) {
  const auto says = [](const Text& list, std::vector<std::string> names) {
    return refusal([&] { RowGroups(list, std::move(names)); });
  };
  EXPECT_EQ(says({0x15, 2}, {"a"}), "the row groups: expected a list of structs");
  EXPECT_EQ(says(list_of({Text{0}}), {"a"}), "the columns of row group 0: expected a list of structs");
  EXPECT_EQ(says(list_of({group({})}), {"a"}), "row group 0 has 0 columns, the schema has 1");
  EXPECT_EQ(says({0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f}, {"a"}), "a list of 4294967295 elements in 0 bytes");
  EXPECT_EQ(says(usual(), {"a"}), "row group 0 has 2 columns, the schema has 1");
  const RowGroups groups(usual(), {"a", "b"});
  EXPECT_EQ(refusal([&] { groups.rows(1); }), "no row group 1");
  EXPECT_EQ(refusal([&] { groups.locate(0, 2, file_size); }), "no column 2");
}

TEST(ParquetRowGroups, MetadataEndsWhereItsStructDoes) {
  RowGroups groups(usual(), {"a", "b"});
  const Text text = metadata(4, 100, 400).end();
  Text padded = text;
  padded.insert(padded.end(), {0, 0x15, 2, 0});
  groups.set_metadata(0, 0, padded);
  const Bytes found = groups.metadata(0, 0);
  EXPECT_EQ(Text(found.begin(), found.end()), text);
  EXPECT_EQ(refusal([&] { groups.set_metadata(0, 0, Text(text.begin(), text.end() - 1)); }),
            "column a, row group 0: cut short after " + std::to_string(text.size() - 1) + " bytes");
}

TEST(ParquetRowGroups, AreWrittenWithoutEncryption) {
  RowGroups groups(usual(), {"a", "b"});
  groups.set_metadata(0, 0, metadata(4, 100, 400).integer(14, 7000).integer(15, 90, Kind::i32).end());
  PlainChunk plain;
  plain.is_there = plain.was_encrypted = true;
  plain.start = 4;
  plain.size = 336;
  plain.data = 70;
  plain.shrunk = 64;
  plain.column_index = 6000;
  plain.column_index_size = 30;
  const std::vector<PlainChunk> chunks{plain, PlainChunk()};
  const std::vector<Text> stubs{{0x15, 4, 0x35, 0}, {0x15, 4, 0x35, 0}};
  const Text list = groups.write_plain(Column{0}, chunks, stubs);
  const RowGroups again(list, {"a", "b"});
  EXPECT_EQ(again.ordinal(0), 0u);
  EXPECT_FALSE(again.crypto(0, 0));
  const ChunkRange range = again.locate(0, 0, file_size);
  EXPECT_EQ(range.start, 4u);
  EXPECT_EQ(range.size, 336u);
  EXPECT_EQ(range.data, 70u);
  const CompactStruct meta(again.metadata(0, 0));
  EXPECT_EQ(required_integer(meta, 6, "it"), 900 - 64);
  EXPECT_EQ(meta.find(14), nullptr);
  EXPECT_EQ(meta.find(15), nullptr);
  const CompactStruct fields(again.chunk(0, 0));
  EXPECT_EQ(fields.find(4), nullptr);
  EXPECT_EQ(required_integer(fields, 6, "it"), 6000);
  EXPECT_EQ(required_integer(fields, 7, "it"), 30);
  const CompactStruct stub(again.metadata(0, 1));
  EXPECT_EQ(required_integer(stub, 5, "it"), 50);
  EXPECT_EQ(required_integer(stub, 7, "it"), 0);
  EXPECT_EQ(required_integer(stub, 9, "it"), 4);
  EXPECT_NE(refusal([&] { groups.write_plain(Column{0}, {}, stubs); }), "");
  EXPECT_NE(refusal([&] { groups.write_plain(Column{1}, chunks, stubs); }), "");
}

TEST(ParquetRowGroups, DamagedFootersGiveGroupsOrTheError) {
  const std::vector<Text> stubs{{0x15, 4, 0x35, 0}, {0x15, 4, 0x35, 0}};
  damage(usual(), [&](const Text& text) {
    const RowGroups groups(text, {"a", "b"});
    for (std::size_t group = 0; group < groups.size(); ++group) {
      std::vector<PlainChunk> chunks(2);
      for (std::size_t column = 0; column < 2; ++column) {
        const ChunkRange range = groups.locate(group, column, file_size);
        ASSERT_LE(range.start + range.size, file_size);
        groups.sealed_metadata(group, column);
        chunks[column] = {true, false, range.start, range.size, range.data, 0};
      }
      const RowGroups again(groups.write_plain(Column{group}, chunks, stubs), {"a", "b"});
      ASSERT_EQ(again.size(), 1u);
    }
  });
}

}  // namespace
}  // namespace warpcipher::parquet
