// SPDX-License-Identifier: Apache-2.0
// Modules of chunks found by lengths that may lie, and page headers without encryption.
#include <algorithm>
#include <cstdio>

#include "core/bytes.hpp"
#include "parquet/page_modules.hpp"
#include "parquet_support.hpp"

namespace warpcipher::parquet {
namespace {

// The scan of the text, which lies in memory from `begin` of its file on, and of a file that holds it there: both find
// the same.
PageModules scan(const Text& text, bool dictionary = false, std::uint64_t overhead = gcm_overhead,
                 std::uint64_t begin = 0, std::uint64_t size = UINT64_MAX) {
  const SealedChunk chunk{begin, std::min<std::uint64_t>(size, text.size()), 0, 0, true, dictionary};
  ChunkSource memory;
  memory.bytes = text;
  memory.begin = begin;
  const auto scanned = [&](const ChunkSource& source) { return scan_pages(source, chunk, overhead, [] {}); };
  std::FILE* const file = std::tmpfile();
  std::fseek(file, static_cast<long>(begin), SEEK_SET);
  if (!text.empty()) {  // whose pointer is null
    EXPECT_EQ(std::fwrite(text.data(), 1, text.size(), file), text.size());
  }
  std::fflush(file);
  ChunkSource on_disk;
  on_disk.descriptor = fileno(file);
  PageModules found;
  const std::string why = refusal([&] { found = scanned(on_disk); });
  std::fclose(file);
  EXPECT_EQ(refusal([&] { scanned(memory); }), why);
  if (!why.empty()) refuse(why);
  const PageModules other = scanned(memory);
  EXPECT_EQ(found.heads, other.heads);
  EXPECT_EQ(found.nonces, other.nonces);
  EXPECT_EQ(found.pages.size(), other.pages.size());
  return found;
}

// Headers of all lengths, in one read and in several.
TEST(ParquetModules, AreFoundByTheirLengths) {
  std::vector<std::size_t> lengths{28, 60, 30, 500, 300, 508, 31, 509, 4000, 4095, 70'000, 28, 28, 28, 476, 477};
  for (std::size_t length = 440; length < 520; ++length) lengths.insert(lengths.end(), {length, 100});
  for (const std::uint64_t begin : {0, 9}) {
    Text data;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const std::size_t start = data.size();
      data.resize(start + length_size + lengths[i], static_cast<std::uint8_t>(i));
      store_le32(data.data() + start, static_cast<std::uint32_t>(lengths[i]));
      for (std::size_t k = 0; k < nonce_size; ++k) data[start + length_size + k] = static_cast<std::uint8_t>(7 * i + k);
    }
    const PageModules found = scan(data, false, gcm_overhead, begin);
    ASSERT_EQ(found.pages.size(), lengths.size() / 2);
    Text heads, nonces;
    for (std::size_t i = 0; i < found.pages.size(); ++i) {
      const PageModules::Page& page = found.pages[i];
      EXPECT_EQ(page.head_size, lengths[2 * i] - 28);
      EXPECT_EQ(page.page_size, lengths[2 * i + 1] - 28);
      const auto head = data.begin() + static_cast<std::ptrdiff_t>(page.position - begin);
      const auto sealed = head + static_cast<std::ptrdiff_t>(length_size + lengths[2 * i]);
      heads.insert(heads.end(), head, sealed);
      nonces.insert(nonces.end(), sealed + length_size, sealed + head_size);
    }
    EXPECT_EQ(found.heads, heads);
    EXPECT_EQ(found.nonces, nonces);
  }
  EXPECT_TRUE(scan({}).pages.empty());
  EXPECT_TRUE(scan({}, true).pages.empty());
  EXPECT_EQ(scan(modules_of({40, 128}), false, head_size).pages[0].page_size, 116u);  // in counter mode
}

TEST(ParquetModules, LengthsThatLieAreRefused) {
  const auto says = [](const Text& data, std::uint64_t size = UINT64_MAX) {
    return refusal([&] { scan(data, false, gcm_overhead, 0, size); });
  };
  const Text data = modules_of({40, 50});
  const std::string sum = "the lengths of its modules do not add up to its ";
  EXPECT_EQ(says(data, data.size() - 1), sum + "97 bytes");
  EXPECT_EQ(says(Text(100, 0)), "a module of 0 bytes is shorter than its nonce");
  EXPECT_EQ(says(Text(100, 0xff)), sum + "100 bytes");
  EXPECT_EQ(says(Text(3, 0)), sum + "3 bytes");
  EXPECT_EQ(says(modules_of({40, 20})), "a module is shorter than its nonce and tag");
  EXPECT_EQ(says(modules_of({40})), "1 modules: expected a header and a page for each of up to 32768 pages");
}

TEST(ParquetModules, MoreThanTheFormatNumbersAreRefused) {
  const Text page = modules_of({28, 28});
  Text data;
  for (std::uint64_t i = 0; i <= most_ordinal + 1; ++i) data.insert(data.end(), page.begin(), page.end());
  EXPECT_EQ(scan(data, true).pages.size(), most_ordinal + 2);
  EXPECT_EQ(refusal([&] { scan(data); }), "65538 modules: expected a header and a page for each of up to 32768 pages");
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

TEST(ParquetModules, HeadsAreWritten) {
  Text data(200, 0);
  Text nonces(24);
  for (std::size_t i = 0; i < nonces.size(); ++i) nonces[i] = static_cast<std::uint8_t>(i + 1);
  const Column places{3, 100}, lengths{10, 20};
  const ModuleTexts found = write_heads(data, places, lengths, nonces, false);
  EXPECT_EQ(load_le32(data.data() + 3), 38u);
  EXPECT_EQ(Text(data.begin() + 7, data.begin() + 19), Text(nonces.begin(), nonces.begin() + 12));
  EXPECT_EQ(Text(data.begin() + 104, data.begin() + 116), Text(nonces.begin() + 12, nonces.end()));
  EXPECT_EQ(found.ivs, nonces);
  EXPECT_EQ(found.texts, (Column{19, 116}));
  const ModuleTexts counted = write_heads(data, places, lengths, nonces, true);
  EXPECT_EQ(load_le32(data.data() + 100), 32u);
  EXPECT_EQ(Text(counted.ivs.begin() + 12, counted.ivs.begin() + 16), (Text{0, 0, 0, 1}));
  const auto says = [&](const Column& at, const Column& lens, std::size_t nonce_bytes) {
    return refusal([&] { write_heads(data, at, lens, Text(nonce_bytes), false); });
  };
  EXPECT_EQ(says({185}, {1}, 12), "a module at 185 in 200 bytes");
  EXPECT_EQ(says({UINT64_MAX}, {1}, 12), "a module at 18446744073709551615 in 200 bytes");
  EXPECT_NE(says(places, lengths, 12), "");
  EXPECT_NE(says({0}, {1ull << 32}, 12), "");
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
