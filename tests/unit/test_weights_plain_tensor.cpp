// SPDX-License-Identifier: Apache-2.0
// Tensors in headers of safetensors files: which are taken, and that nothing beyond them is read.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "weights/plain_tensor.hpp"

namespace warpcipher::weights {
namespace {

const std::string member = R"(,"a.b":{"dtype":"BF16","shape":[2,30],"data_offsets":[8,128]})";

std::string with(const std::string& from, const std::string& to) {
  std::string text = member;
  return text.replace(text.find(from), from.size(), to);
}

std::vector<std::uint64_t> lengths_of(std::string_view text) {
  std::vector<std::uint64_t> lengths;
  for_lengths(text, [&](std::uint64_t length) { lengths.push_back(length); });
  return lengths;
}

TEST(PlainTensor, IsTaken) {
  for (const std::string rest : {"", "}", ",\"c\"", "  "}) {
    const std::string text = member + rest;
    const auto found = plain_tensor(text);
    ASSERT_TRUE(found) << text;
    EXPECT_EQ(found->name, "a.b");
    EXPECT_EQ(found->dtype, "BF16");
    EXPECT_EQ(found->kind, R"(BF16","shape":[2,30])");
    EXPECT_EQ(lengths_of(found->lengths), (std::vector<std::uint64_t>{2, 30}));
    EXPECT_EQ(found->start, 8u);
    EXPECT_EQ(found->end, 128u);
    EXPECT_EQ(found->size, member.size());
  }
}

// Of a tensor whose shape is spelt so.
std::vector<std::uint64_t> lengths_in(const std::string& shape) {
  const std::string text = with("[2,30]", shape);
  const auto found = plain_tensor(text);
  EXPECT_TRUE(found) << text;
  return found ? lengths_of(found->lengths) : std::vector<std::uint64_t>();
}

TEST(PlainTensor, MayHaveNoDimensionsOrEight) {
  using Lengths = std::vector<std::uint64_t>;
  EXPECT_EQ(lengths_in("[]"), Lengths());
  EXPECT_EQ(lengths_in("[0]"), Lengths{0});
  EXPECT_EQ(lengths_in("[1,2,3,4,5,6,7,80]"), (Lengths{1, 2, 3, 4, 5, 6, 7, 80}));
  EXPECT_EQ(lengths_in("[999999999999999999]"), Lengths{999999999999999999});
}

TEST(PlainTensor, IsLeftToTheGeneralReaderWhereItIsSpeltDifferently) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {",\"a", "\"a"},
           {",\"a", ", \"a"},
           {"a.b", "a\\u0041b"},
           {"a.b", "a\nb"},
           {"a.b", "__metadata__"},
           {"\":{", "\": {"},
           {"dtype", "shape"},
           {"BF16", "bf16"},
           {"BF16", ""},
           {"BF16", std::string(33, 'F')},
           {"BF16", "F\\u0033"},
           {"[2,30]", "[2, 30]"},
           {"[2,30]", "[2,]"},
           {"[2,30]", "[,2]"},
           {"[2,30]", "[02,30]"},
           {"[2,30]", "[-2,30]"},
           {"[2,30]", "[2.0,30]"},
           {"[2,30]", "[1,2,3,4,5,6,7,8,9]"},
           {"[2,30]", "[1000000000000000000]"},
           {"[2,30]", "\"2,30\""},
           {"[8,128]", "[8]"},
           {"[8,128]", "[8,128,256]"},
           {"[8,128]", "[8,0128]"},
           {"[8,128]", "[]"},
           {"[8,128]}", "[8,128],}"},
       }) {
    EXPECT_FALSE(plain_tensor(with(from, to))) << with(from, to);
  }
}

TEST(PlainTensor, IsNotReadBeyondItsText) {
  for (std::size_t size = 0; size < member.size(); ++size) {
    const std::unique_ptr<char[]> text(new char[size]);  // AddressSanitizer finds a read behind it
    member.copy(text.get(), size);
    EXPECT_FALSE(plain_tensor({text.get(), size})) << size;
  }
}

}  // namespace
}  // namespace warpcipher::weights
