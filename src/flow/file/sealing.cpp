// SPDX-License-Identifier: Apache-2.0
#include "flow/file/sealing.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/thread_pool.hpp"

namespace warpcipher {
namespace {

[[noreturn]] void refuse_chunk(std::size_t chunk, const std::string& text) { refuse("chunk ", chunk, ": ", text); }

void check_count(const char* what, std::size_t got, std::size_t count, bool may_be_absent) {
  if (got == count || (got == 0 && may_be_absent)) return;
  refuse(what, " has ", got, " entries, expected one for each of ", count, " chunks");
}

void check_bytes(const char* what, std::size_t got, std::size_t count, std::size_t each) {
  if (got == 0 || got / each == count) {
    if (got % each == 0) return;
  }
  refuse(what, " has ", got, " bytes, expected ", each, " for each of ", count, " chunks");
}

void check_range(std::size_t chunk, const char* what, std::uint64_t offset, std::uint64_t len, std::uint64_t size) {
  if (offset <= size && len <= size - offset) return;
  refuse_chunk(chunk, std::string(what) + " range [" + std::to_string(offset) + ", +" + std::to_string(len) +
                          ") leaves the buffer of " + std::to_string(size) + " bytes");
}

void check_columns(const FileChunks& c) {
  check_count("out_offsets", c.out_offsets.size(), c.count, true);
  check_count("aad_offsets", c.aad_offsets.size(), c.count, true);
  check_count("skips", c.skips.size(), c.count, true);
  if (c.skips.size() != c.takes.size()) refuse("skips and takes go together");
  if (c.aad_offsets.size() != c.aad_lengths.size()) refuse("aad_offsets and aad_lengths go together");
  check_buffer_len("out", c.out.size());
  check_buffer_len("aad", c.aad.size());
  if (c.iv_len == 0 && !c.ivs.empty()) refuse("ivs are given, but iv_len is 0");
  if (c.iv_len != 0) check_bytes("ivs", c.ivs.size(), c.count, c.iv_len);
  if (c.tag_len != 0) check_bytes("tags", c.tags.size(), c.count, c.tag_len);
  if (!c.heads.empty() && (c.has_iv_in_file() || c.count == 0 || c.heads.size() / c.count < c.head_len)) {
    refuse("heads are of each chunk, and of none with an IV in the file");
  }
}

void check_algorithm(const FileChunks& c) {
  const Algorithm& algorithm = c.algorithm();
  const std::string name(algorithm.name);
  if (!c.is_authenticated) {
    if (algorithm.mode.id == Mode::ctr && !c.has_mac() && c.tag_len == 0 && c.aad.empty()) return;
    refuse("chunks without tags are in CTR, got ", name);
  }
  if (c.has_mac() == algorithm.is_aead()) {
    refuse(c.has_mac() ? name + " authenticates by itself: it takes no HMAC"
                       : name + " authenticates nothing, and no HMAC is given: chunks of a file are authenticated");
  }
  if (c.has_mac() && !c.aad.empty()) refuse("chunks with an HMAC take no associated data");
  if (c.has_mac() && algorithm.mode.id != Mode::ctr) refuse("an HMAC goes with CTR, got ", name);
  if (c.has_mac() && (c.tag_len < 10 || c.tag_len > 64)) {
    refuse("an HMAC is cut to 10 bytes or more, got a tag_len of ", c.tag_len);
  }
}

// Checks, as an engine does, the values that all chunks share, and the longest text.
void check_shape(const FileChunks& c) {
  if (c.count == 0) return;
  // Nothing is read or written: the text lies somewhere, IV and tag apart from it, wherever the caller's may be.
  static const std::uint8_t somewhere = 0;
  auto* const anywhere = const_cast<std::uint8_t*>(&somewhere);
  auto* const apart = reinterpret_cast<std::uint8_t*>(UINTPTR_MAX - 63);
  Message m;
  m.key = c.keys[0];
  m.direction = Direction::decrypt;
  m.in = m.out = anywhere;
  m.in_len = m.out_len = *std::max_element(c.lengths.begin(), c.lengths.end());
  m.iv = apart;
  m.iv_len = c.iv_len;
  if (c.algorithm().is_aead()) {
    m.tag = apart;
    m.tag_len = c.tag_len;
  }
  check_messages({&m, 1});
}

// Outputs in the order of the chunks need no sorting.
void check_outputs(const FileChunks& c) {
  if (c.out_offsets.empty()) return;
  std::vector<std::pair<std::uint64_t, std::size_t>> places;
  std::uint64_t end = 0;
  bool is_sorted = true;
  for (std::size_t i = 0; i < c.count && is_sorted; ++i) {
    is_sorted = c.take(i) == 0 || c.out_offsets[i] >= end;
    if (c.take(i) != 0) end = c.out_offsets[i] + c.take(i);
  }
  if (is_sorted) return;
  for (std::size_t i = 0; i < c.count; ++i) {
    if (c.take(i) != 0) places.emplace_back(c.out_offsets[i], i);
  }
  std::sort(places.begin(), places.end());
  for (std::size_t k = 1; k < places.size(); ++k) {
    const std::size_t before = places[k - 1].second;
    if (places[k].first - places[k - 1].first < c.take(before)) {
      refuse_chunk(places[k].second, "writes where chunk " + std::to_string(before) + " does");
    }
  }
}

// Inputs must not lie where text is written: a failure would wipe it, and columns are read more than once. Device
// memory that the host can read has one address for both.
void check_apart_from_out(const FileChunks& c) {
  const auto check = [&](const char* what, const void* data, std::size_t len) {
    const auto begin = reinterpret_cast<std::uintptr_t>(data), out = reinterpret_cast<std::uintptr_t>(c.out.data());
    if (len == 0 || c.out.empty() || begin >= out + c.out.size() || out >= begin + len) return;
    refuse(what, " overlaps out: text is not decrypted in place here, give separate buffers");
  };
  const auto check_column = [&](const char* what, const auto& column) {
    check(what, column.data(), column.size_bytes());
  };
  if (c.source.descriptor < 0) check_column("source", c.source.bytes);
  check_column("ivs", c.ivs);
  check_column("heads", c.heads);
  check_column("tags", c.tags);
  check_column("aad", c.aad);
  check_column("file_offsets", c.file_offsets);
  check_column("lengths", c.lengths);
  check_column("key_index", c.key_index);
  check_column("aad_offsets", c.aad_offsets);
  check_column("aad_lengths", c.aad_lengths);
  check_column("out_offsets", c.out_offsets);
  check_column("skips", c.skips);
  check_column("takes", c.takes);
}

// Any chunks, one after another; throws at the first that is wrong.
void check_each(const FileChunks& c) {
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < c.count; ++i) {
    if (c.lengths[i] > most_buffer_len)
      refuse_chunk(i, "has " + std::to_string(c.lengths[i]) + " bytes: more than 2^56");
    if (c.file_offsets[i] > most_offset) {
      refuse_chunk(i, "lies at byte " + std::to_string(c.file_offsets[i]) + " of the file: beyond 2^62");
    }
    if (c.source.descriptor < 0) {
      if (c.file_offsets[i] < c.source.begin) refuse_chunk(i, "lies before the bytes that are given");
      check_range(i, "in", c.file_offsets[i] - c.source.begin, c.len_in_file(i), c.source.bytes.size());
    }
    check_range(i, "wanted", c.skip(i), c.take(i), c.lengths[i]);
    const std::uint64_t place = c.out_offsets.empty() ? next : c.out_offsets[i];
    check_range(i, "out", place, c.take(i), c.out.size());
    next = place + c.take(i);
    if (!c.aad_offsets.empty()) check_range(i, "aad", c.aad_offsets[i], c.aad_lengths[i], c.aad.size());
  }
}

// --- regular files ---

constexpr std::size_t most_regular_iv_len = 16;
constexpr std::size_t number_len = 4;  // of a chunk, in its patterns

bool is_sound(const std::optional<ChunkPattern>& p, std::size_t iv_len) {
  if (!p) return true;
  const std::size_t len = p->base.size();
  const auto fits = [&](int at, std::size_t size) {
    return at < 0 || (static_cast<std::size_t>(at) <= len && size <= len - static_cast<std::size_t>(at));
  };
  return fits(p->number_at, number_len) && fits(p->nonce_at, iv_len) && p->length_len <= std::min<std::size_t>(len, 8);
}

void check_rules(const Sealing& s, std::uint64_t text_len, std::uint64_t chunks) {
  const std::uint64_t most = most_buffer_len;
  const bool has_layout = s.chunk_len != 0 && s.chunk_len <= most && s.iv_len <= most && s.tag_len <= most &&
                          s.header_len <= most && s.first_lacks < s.chunk_len && text_len <= most &&
                          chunks <= most / s.chunk_len + 1 && text_len + s.first_lacks <= chunks * s.chunk_len;
  if (!has_layout) refuse("no file has chunks of this layout");
  for (const auto* pattern : {&s.aad_rule, &s.final_aad_rule, &s.head_rule, &s.final_head_rule}) {
    if (!is_sound(*pattern, s.nonce_base.size()) || (s.head_rule && s.nonce_base.empty())) {
      refuse("no chunks have heads or associated data of this rule");
    }
  }
  const std::size_t bits = 8 * s.nonce_base.size();
  if (s.nonce_base.empty()) return;
  if (s.nonce_base.size() != s.iv_len || s.iv_len > most_regular_iv_len || s.counter_shift % 8 != 0 ||
      s.counter_shift >= bits || s.final_shift >= static_cast<int>(bits)) {
    refuse("no chunks have nonces of this rule");
  }
}

// A column of RegularChunks' own memory.
template <class T>
T* writable(std::span<const T> column) {
  return const_cast<T*>(column.data());
}

// XORs a number into a big-endian one, `shift` bits (a multiple of 8) from its end.
void add_counter(std::uint8_t* nonce, std::size_t len, std::uint64_t number, unsigned shift) {
  for (std::size_t at = len - shift / 8; at-- > 0 && number != 0; number >>= 8) {
    nonce[at] ^= static_cast<std::uint8_t>(number);
  }
}

}  // namespace

Message SealedChunks::message(std::size_t i, Direction direction, const std::uint8_t* in, std::uint8_t* out,
                              const std::uint8_t* iv, std::uint8_t* tag) const {
  const std::span<const std::uint8_t> data = aad_of(i);
  Message m;
  m.key = &key(i);
  m.direction = direction;
  m.in = in;
  m.out = out;
  m.in_len = m.out_len = lengths[i];
  m.iv = iv;
  m.iv_len = iv_len;
  m.aad = data.data();
  m.aad_len = data.size();
  if (m.algorithm().is_aead()) {
    m.tag = tag;
    m.tag_len = tag_len;
  }
  return m;
}

void check_sealed_chunks(const SealedChunks& c) {
  check_message_count(c.count);
  check_count("file_offsets", c.file_offsets.size(), c.count, false);
  check_count("lengths", c.lengths.size(), c.count, false);
  check_count("key_index", c.key_index.size(), c.count, true);
  check_buffer_len("an IV", c.iv_len);
  check_buffer_len("a tag", c.tag_len);
  if (c.keys.empty()) refuse("no key given");
  for (const Key* const key : c.keys) {
    if (&key->algorithm() == &c.algorithm()) continue;
    refuse("all keys of a file's chunks have one algorithm: got ", c.algorithm().name, " and ", key->algorithm().name);
  }
  if (c.key_index.empty() && c.keys.size() > 1) {
    refuse(c.keys.size(), " keys and no key_index: it says which chunk takes which key");
  }
  for (std::size_t i = 0; i < c.key_index.size(); ++i) {
    if (c.key_index[i] < c.keys.size()) continue;
    refuse_chunk(i, joined("key index ", c.key_index[i], ", but there are ", c.keys.size(), " keys"));
  }
}

void check_file_chunks(const FileChunks& c) {
  check_sealed_chunks(c);
  check_columns(c);
  check_algorithm(c);
  check_apart_from_out(c);
  if (c.wanted == 0 || c.wanted > c.out.size() || c.source.descriptor < 0) check_each(c);
  check_shape(c);
  check_outputs(c);
}

RegularChunks::RegularChunks(const Sealing& sealing, std::uint64_t text_len, std::uint64_t chunks_of_file)
    : text_len_(text_len), chunks_of_file_(chunks_of_file) {
  check_rules(sealing, text_len, chunks_of_file);
  static_cast<Sealing&>(chunks_) = sealing;
}

RegularChunks::RegularChunks(const Sealing& sealing, std::uint64_t text_len, std::uint64_t chunks_of_file,
                             std::uint64_t begin, std::uint64_t len)
    : RegularChunks(sealing, text_len, chunks_of_file) {
  if (begin > text_len || len > text_len - begin) {
    refuse("the range [", begin, ", +", len, ") leaves the file, which has ", text_len, " bytes");
  }
  if (len == 0) return;
  chunks_.wanted = len;
  const std::uint64_t shifted = begin + sealing.first_lacks;
  const std::uint64_t first = shifted / sealing.chunk_len, last = (shifted + len - 1) / sealing.chunk_len;
  const std::uint64_t skip = begin - sealing.begin_of(first);
  const std::uint64_t last_end = begin + len - sealing.begin_of(last);
  const bool in_parts = skip != 0 || last_end != length_of(last);
  make_columns(first, last - first + 1, in_parts);
  if (!in_parts) return;
  writable(chunks_.takes)[chunks_.count - 1] = last_end;
  writable(chunks_.skips)[0] = skip;
  writable(chunks_.takes)[0] -= skip;
}

RegularChunks RegularChunks::whole(const Sealing& sealing, std::uint64_t first, std::size_t count, std::uint64_t len,
                                   bool is_final) {
  const std::uint64_t most = most_buffer_len, others = is_final ? 0 : 1, end = first + count;
  if (sealing.chunk_len == 0 || count == 0 || first > most || count > most || end > most / sealing.chunk_len ||
      len > most) {
    refuse("no file has chunks of this layout");
  }
  RegularChunks made(sealing, sealing.begin_of(first) + len + others, end + others);
  const std::uint64_t text_end = sealing.begin_of(first) + len;
  if (is_final ? text_end < sealing.begin_of(end - 1) : text_end != sealing.begin_of(end)) {
    refuse(count, " chunks from ", first, " on do not have ", len, " bytes of plaintext");
  }
  made.chunks_.wanted = len;
  made.make_columns(first, count, false);
  return made;
}

std::uint64_t RegularChunks::length_of(std::uint64_t i) const {
  return std::min(chunks_.begin_of(i + 1), text_len_) - chunks_.begin_of(i);
}

void RegularChunks::make_columns(std::uint64_t first, std::size_t count, bool in_parts) {
  FileChunks& c = chunks_;
  c.first_number = first;
  c.count = count;
  // The cores write it first, and so have the system's pages made: that is most of the time.
  const auto add = [&](auto& column, std::size_t len) {
    memory_.push_back(std::make_unique_for_overwrite<std::uint64_t[]>((len * sizeof column[0] + 7) / 8));
    column = {reinterpret_cast<decltype(column.data())>(memory_.back().get()), len};
  };
  add(c.file_offsets, count);
  add(c.lengths, count);
  if (!c.nonce_base.empty()) add(c.ivs, count * c.iv_len);
  if (in_parts) {
    add(c.skips, count);
    add(c.takes, count);
  }
  // Of `count` patterns, whose last may be the final one's.
  const auto len_of = [&](const std::optional<ChunkPattern>& any, const std::optional<ChunkPattern>& last) {
    return (count - 1) * any->base.size() + last->base.size();
  };
  const bool is_end = is_final(first + count - 1);
  if (c.aad_rule) {
    add(c.aad, len_of(c.aad_rule, c.aad_rule_of(is_end)));
    add(c.aad_offsets, count);
    add(c.aad_lengths, count);
  }
  if (c.head_rule) {
    add(c.heads, len_of(c.head_rule, c.head_rule_of(is_end)));
    c.head_len = c.head_rule->base.size();
  }
  ThreadPool::instance().parallel_for(count, chunks_at_once, [&](std::size_t from, std::size_t to) {
    for (std::size_t k = from; k < to; ++k) make(first + k);
  });
}

void RegularChunks::make(std::uint64_t i) {
  const FileChunks& c = chunks_;
  const std::size_t k = i - c.first_number;
  writable(c.file_offsets)[k] = c.header_len + c.begin_of(i) + i * c.overhead();
  writable(c.lengths)[k] = length_of(i);
  if (!c.takes.empty()) {
    writable(c.skips)[k] = 0;
    writable(c.takes)[k] = c.lengths[k];
  }
  if (!c.ivs.empty()) {
    std::uint8_t* const nonce = writable(c.ivs) + k * c.iv_len;
    std::ranges::copy(c.nonce_base, nonce);
    add_counter(nonce, c.iv_len, c.number_from + i, c.counter_shift);
    if (is_final(i) && c.final_shift >= 0) {
      const auto shift = static_cast<std::size_t>(c.final_shift);
      nonce[c.iv_len - 1 - shift / 8] ^= static_cast<std::uint8_t>(1u << (shift % 8));
    }
  }
  if (c.aad_rule) {
    const ChunkPattern& pattern = *c.aad_rule_of(is_final(i));
    writable(c.aad_offsets)[k] = k * c.aad_rule->base.size();
    writable(c.aad_lengths)[k] = pattern.base.size();
    write(pattern, i, writable(c.aad) + c.aad_offsets[k]);
  }
  if (c.head_rule) write(*c.head_rule_of(is_final(i)), i, writable(c.heads) + k * c.head_len);
}

void RegularChunks::write(const ChunkPattern& pattern, std::uint64_t i, std::uint8_t* out) const {
  const std::size_t k = i - chunks_.first_number;
  std::ranges::copy(pattern.base, out);
  if (pattern.number_at >= 0) {
    const auto number = static_cast<std::uint32_t>(chunks_.number_from + i);
    (pattern.is_big_endian ? store_be32 : store_le32)(out + pattern.number_at, number);
  }
  if (pattern.nonce_at >= 0)
    std::ranges::copy(chunks_.ivs.subspan(k * chunks_.iv_len, chunks_.iv_len), out + pattern.nonce_at);
  std::uint8_t* const end = out + pattern.base.size();
  for (std::size_t byte = 0; byte < pattern.length_len; ++byte) {
    *(end - 1 - byte) = static_cast<std::uint8_t>(chunks_.lengths[k] >> (8 * byte));
  }
}

}  // namespace warpcipher
