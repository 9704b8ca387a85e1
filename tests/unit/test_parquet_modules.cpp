// SPDX-License-Identifier: Apache-2.0
// Modules of chunks found by lengths that may lie, and page headers without encryption.
#include <algorithm>

#include "core/bytes.hpp"
#include "parquet/page_header.hpp"
#include "parquet/page_modules.hpp"
#include "parquet_support.hpp"

namespace warpcipher::parquet {
namespace {

TEST(ParquetModules, AreWalkedByTheirLengths) {
  const Text data = modules_of({40, 1000, 45, 28});
  EXPECT_EQ(walk_modules(data, 0, data.size()), (Column{0, 44, 1048, 1097, 1129}));
  EXPECT_EQ(walk_modules(data, 44, 1048), (Column{44, 1048}));
  EXPECT_EQ(walk_modules(data, 5, 5), (Column{5}));
}

TEST(ParquetModules, LengthsThatLieAreRefused) {
  const auto says = [](const Text& data, std::uint64_t start, std::uint64_t end) {
    return refusal([&] { walk_modules(data, start, end); });
  };
  const Text data = modules_of({40, 50});
  const std::string sum = "the lengths of its modules do not add up to its ";
  EXPECT_EQ(says(data, 0, data.size() - 1), sum + "97 bytes");
  EXPECT_EQ(says(data, 0, data.size() + 9), sum + "107 bytes");
  EXPECT_EQ(says(data, 50, UINT64_MAX), sum + "18446744073709551565 bytes");
  EXPECT_NE(says(data, 90, 80), "");
  EXPECT_EQ(says(data, UINT64_MAX - 3, UINT64_MAX), sum + "3 bytes");
  EXPECT_EQ(says(Text(100, 0), 0, 100), "a module of 0 bytes is shorter than its nonce");
  EXPECT_EQ(says(Text(100, 0xff), 0, 100), sum + "100 bytes");
  Text many;
  for (std::uint64_t i = 0; i <= most_modules; ++i) {
    const Text one = modules_of({12});
    many.insert(many.end(), one.begin(), one.end());
  }
  EXPECT_EQ(says(many, 0, many.size()), "more than 65538 modules");
}

TEST(ParquetModules, PagesAreLaidOutWithoutGaps) {
  const Text data = modules_of({40, 128, 42, 228});
  const PageModules found = lay_out_pages(walk_modules(data, 0, data.size()), true, gcm_overhead, 7);
  EXPECT_EQ(found.heads.modules, (Column{0, 176}));
  EXPECT_EQ(found.heads.outs, (Column{7, 119}));
  EXPECT_EQ(found.heads.sizes, (Column{12, 14}));
  EXPECT_EQ(found.pages.modules, (Column{44, 222}));
  EXPECT_EQ(found.pages.outs, (Column{19, 133}));
  EXPECT_EQ(found.pages.sizes, (Column{100, 200}));
  EXPECT_EQ(found.end, 333u);
}

TEST(ParquetModules, ChunksThatAreNoneAreRefused) {
  const auto says = [](const Text& data, bool dictionary) {
    return refusal([&] { lay_out_pages(walk_modules(data, 0, data.size()), dictionary, gcm_overhead, 0); });
  };
  EXPECT_EQ(says(modules_of({40}), false), "1 modules: expected a header and a page for each of up to 32768 pages");
  EXPECT_EQ(says({}, true), "0 modules: expected a header and a page for each of up to 32768 pages");
  EXPECT_EQ(says({}, false), "");
  EXPECT_EQ(says(modules_of({40, 20}), false), "a module is shorter than its nonce and tag");
  Column positions(most_modules + 1);
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = 40 * i;
  EXPECT_EQ(refusal([&] { lay_out_pages(positions, true, gcm_overhead, 0); }), "");
  EXPECT_NE(refusal([&] { lay_out_pages(positions, false, gcm_overhead, 0); }), "");
}

TEST(ParquetModules, AadsNameThePlace) {
  const PageAads found = page_aads(bytes_of("xy"), 0x0102, 3, true, 3);
  EXPECT_EQ(found.sizes, (Column{7, 9, 9}));
  const Text heads = {'x', 'y', 5, 2, 1, 3, 0, 'x', 'y', 4, 2, 1, 3, 0, 0, 0, 'x', 'y', 4, 2, 1, 3, 0, 1, 0};
  Text pages = heads;
  pages[2] = 3;
  pages[9] = pages[18] = 2;
  EXPECT_EQ(found.heads, heads);
  EXPECT_EQ(found.pages, pages);
  EXPECT_EQ(page_aads({}, 0, 0, false, 32'768).pages.size(), 7u * 32'768);
  EXPECT_TRUE(page_aads({}, 0, 0, true, 0).heads.empty());
}

TEST(ParquetModules, ChunksFollowEachOther) {
  Text data = modules_of({40, 128, 42, 228});
  const std::size_t middle = data.size();
  data.resize(middle + 50, 1);
  const Text more = modules_of({41, 100});
  data.insert(data.end(), more.begin(), more.end());
  const std::vector<ChunkText> chunks{
      {0, middle, 1, 2, true, true}, {middle, 50, 0, 0, false, false}, {middle + 50, more.size(), 1, 3, true, false}};
  const std::vector<std::string> names{"a", "b", "c"};
  const ChunkModules found = lay_out_chunks(data, chunks, names, bytes_of("x"), gcm_overhead);
  ASSERT_EQ(found.chunks.size(), 3u);
  EXPECT_EQ(found.heads.outs, (Column{0, 112, 376}));
  EXPECT_EQ(found.pages.sizes, (Column{100, 200, 72}));
  EXPECT_EQ(found.aads.sizes, (Column{6, 8, 8}));
  EXPECT_EQ(found.aads.heads.size(), 22u);
  EXPECT_EQ(found.dictionaries, (Column{0}));
  EXPECT_EQ(found.chunks[0].data, 112u);
  EXPECT_EQ(found.chunks[1].out, 326u);
  EXPECT_EQ(found.chunks[1].pages, 0u);
  EXPECT_EQ(found.chunks[2].out, 376u);
  EXPECT_EQ(found.chunks[2].size, 85u);
  EXPECT_EQ(found.chunks[2].first_page, 2u);
  EXPECT_EQ(found.chunks[2].first_aad, 14u);
  const auto says = [&](std::size_t which, std::uint64_t position, std::uint64_t size) {
    std::vector<ChunkText> wrong = chunks;
    wrong[which].position = position;
    wrong[which].size = size;
    return refusal([&] { lay_out_chunks(data, wrong, names, {}, gcm_overhead); });
  };
  EXPECT_EQ(says(2, middle + 50, more.size() - 1), "c: the lengths of its modules do not add up to its 148 bytes");
  EXPECT_EQ(says(1, data.size(), 1), "b: it is cut short");
  EXPECT_EQ(says(1, UINT64_MAX, UINT64_MAX), "b: it is cut short");
  EXPECT_NE(says(0, UINT64_MAX - 10, 20), "");
}

TEST(ParquetModules, HeadsAreReadAsTheyAreWritten) {
  Text data(200, 0);
  Text nonces(24);
  for (std::size_t i = 0; i < nonces.size(); ++i) nonces[i] = static_cast<std::uint8_t>(i);
  const Column places{3, 100}, lengths{10, 20}, aads{7, 9};
  write_heads(data, places, lengths, nonces, false);
  EXPECT_EQ(load_le32(data.data() + 3), 38u);
  const ModuleTexts found = texts_of(data, places, lengths, aads, false);
  EXPECT_EQ(found.ivs, nonces);
  EXPECT_EQ(found.texts, (Column{19, 116}));
  EXPECT_EQ(found.sealed, (Column{26, 36}));
  EXPECT_EQ(found.aad_offsets, (Column{0, 7}));
  write_heads(data, places, lengths, nonces, true);
  EXPECT_EQ(load_le32(data.data() + 100), 32u);
  const ModuleTexts counted = texts_of(data, places, lengths, {}, true);
  EXPECT_EQ(counted.sealed, lengths);
  EXPECT_EQ(Text(counted.ivs.begin() + 12, counted.ivs.begin() + 16), (Text{0, 0, 0, 1}));
  EXPECT_EQ(refusal([&] { texts_of(data, Column{185}, Column{1}, {}, false); }), "a module at 185 in 200 bytes");
  EXPECT_EQ(refusal([&] { texts_of(data, Column{UINT64_MAX}, Column{1}, {}, false); }),
            "a module at 18446744073709551615 in 200 bytes");
  EXPECT_NE(refusal([&] { write_heads(data, Column{190}, Column{1}, Text(12), false); }), "");
  EXPECT_NE(refusal([&] { write_heads(data, places, lengths, Text(12), false); }), "");
  EXPECT_NE(refusal([&] { write_heads(data, Column{0}, Column{1ull << 32}, Text(12), false); }), "");
}

// A page header of that type, for a page of that size, with the fields of a data page after it.
StructText header(std::int64_t type, std::int64_t size) {
  StructText text;
  text.integer(1, type, Kind::i32).integer(2, 5000, Kind::i32).integer(3, size, Kind::i32);
  return text;
}

std::int64_t field_of(const Text& text, int number) {
  return required_integer(CompactStruct{Bytes(text)}, number, "it");
}

TEST(ParquetPageHeader, KeepsItsLength) {
  for (const std::int64_t size : {33, 64, 70, 95, 96, 127, 8191, 8192, 8200, 8223, 8224, 1 << 20, (1 << 20) + 31}) {
    for (const bool has_checksum : {false, true}) {
      StructText text = header(0, size);
      if (has_checksum) text.integer(4, -123'456'789, Kind::i32);
      Text mended = text.structure(5, StructText().integer(1, 77, Kind::i32).end()).end();
      const std::size_t length = mended.size();
      // Padding behind it stays out.
      const Text padding{0x15, 2, 0, 0, 0};
      mended.insert(mended.end(), padding.begin(), padding.end());
      EXPECT_EQ(shrink_header(mended, static_cast<std::uint64_t>(size), static_cast<std::uint64_t>(size - 32), false),
                length);
      EXPECT_EQ(Text(mended.end() - 5, mended.end()), padding);
      mended.resize(length);
      EXPECT_EQ(field_of(mended, 3), size - 32);
      EXPECT_EQ(field_of(mended, 2), 5000);
      const CompactStruct fields{Bytes(mended)};
      EXPECT_EQ(fields.find(4), nullptr);
      EXPECT_EQ(field_of(Text(fields.find(5)->value.begin(), fields.find(5)->value.end()), 1), 77);
    }
  }
}

TEST(ParquetPageHeader, OfAnotherPageIsRefused) {
  const auto says = [](Text text, std::uint64_t sealed, bool dictionary) {
    const Text before = text;
    const std::string why = refusal([&] { shrink_header(text, sealed, sealed - 32, dictionary); });
    EXPECT_EQ(text, before);
    return why;
  };
  EXPECT_EQ(says(header(0, 100).end(), 99, false), "it is for a page of 100 bytes, and the page has 99");
  EXPECT_EQ(says(header(2, 100).end(), 100, false), "it is for a page of type 2");
  EXPECT_EQ(says(header(0, 100).end(), 100, true), "it is for a page of type 0");
  EXPECT_EQ(says(StructText().integer(1, 0).end(), 100, false),
            "the size of the page is missing: expected an integer that is not negative");
  EXPECT_EQ(says({}, 100, false), "cut short after 0 bytes");
  // A list in the place of the CRC takes more bytes than numbers can fill up.
  Text crc = header(0, 100).end();
  crc.pop_back();
  crc.insert(crc.end(), {0x19, 0xf3, 40});
  crc.resize(crc.size() + 41);
  EXPECT_EQ(says(crc, 100, false), "a page header cannot be made 43 bytes longer");
}

TEST(ParquetPageHeader, DamagedOnesKeepTheirLengthOrAreRefused) {
  const Text whole = header(0, 8200).integer(4, 99, Kind::i32).structure(5, StructText().integer(1, 77).end()).end();
  damage(whole, [](const Text& text) {
    Text mended = text;
    mended.resize(shrink_header(mended, 8200, 8168, false));
    ASSERT_EQ(field_of(mended, 3), 8168);
  });
}

}  // namespace
}  // namespace warpcipher::parquet
