// SPDX-License-Identifier: Apache-2.0
#include "weights/plain_tensor.hpp"

namespace warpcipher::weights {
namespace {

constexpr std::size_t max_digits = 18;  // such a number is below 2^63
constexpr std::size_t max_dtype_len = 32;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::size_t position() const { return position_; }
  std::string_view since(std::size_t start) const { return text_.substr(start, position_ - start); }

  bool take(std::string_view expected) {
    if (!text_.substr(position_).starts_with(expected)) return false;
    position_ += expected.size();
    return true;
  }

  // Characters that `may` stand there, up to the first other.
  template <class May>
  std::string_view take_while(const May& may) {
    const std::size_t start = position_;
    while (position_ < text_.size() && may(text_[position_])) ++position_;
    return since(start);
  }

  std::optional<std::uint64_t> number() {
    const std::string_view digits = take_while([](char c) { return c >= '0' && c <= '9'; });
    if (digits.empty() || digits.size() > max_digits || (digits.size() > 1 && digits[0] == '0')) return std::nullopt;
    std::uint64_t value = 0;
    for (const char c : digits) value = 10 * value + static_cast<std::uint64_t>(c - '0');
    return value;
  }

 private:
  std::string_view text_;
  std::size_t position_ = 0;
};

bool in_name(char c) { return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20; }
bool in_dtype(char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

}  // namespace

std::optional<PlainTensor> plain_tensor(std::string_view text) {
  Reader reader(text);
  PlainTensor found;
  if (!reader.take(",\"")) return std::nullopt;
  found.name = reader.take_while(in_name);
  if (found.name == "__metadata__" || !reader.take("\":{\"dtype\":\"")) return std::nullopt;
  const std::size_t kind = reader.position();
  found.dtype = reader.take_while(in_dtype);
  if (found.dtype.empty() || found.dtype.size() > max_dtype_len || !reader.take("\",\"shape\":[")) return std::nullopt;
  const std::size_t lengths = reader.position();
  if (!reader.take("]")) {
    for (std::size_t dimensions = 1;; ++dimensions) {
      if (dimensions > max_dimensions || !reader.number()) return std::nullopt;
      if (reader.take("]")) break;
      if (!reader.take(",")) return std::nullopt;
    }
  }
  found.kind = reader.since(kind);
  found.lengths = reader.since(lengths);
  found.lengths.remove_suffix(1);
  if (!reader.take(",\"data_offsets\":[")) return std::nullopt;
  const std::optional<std::uint64_t> start = reader.number();
  if (!start || !reader.take(",")) return std::nullopt;
  const std::optional<std::uint64_t> end = reader.number();
  if (!end || !reader.take("]}")) return std::nullopt;
  found.start = *start;
  found.end = *end;
  found.size = reader.position();
  return found;
}

}  // namespace warpcipher::weights
