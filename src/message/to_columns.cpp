// SPDX-License-Identifier: Apache-2.0
#include "message/to_columns.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>

#include "core/sort_runs.hpp"
#include "core/thread_pool.hpp"

namespace warpcipher {
namespace {

// Messages that a core takes at a time.
constexpr std::size_t at_once = 4096;

template <class T>
std::unique_ptr<T[]> make_array(std::size_t count) {
  return std::unique_ptr<T[]>(new T[count]);
}

std::uintptr_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

std::size_t tag_len_at_input(const Message& m) { return m.direction == Direction::decrypt ? m.tag_len : 0; }
std::size_t tag_len_at_output(const Message& m) { return m.direction == Direction::encrypt ? m.tag_len : 0; }

// Whether the tag of the message follows its text, as in columns.
bool has_tag_in_place(const Message& m) {
  if (m.tag_len == 0) return true;
  return m.tag == (m.direction == Direction::encrypt ? m.out + m.output_len() : m.in + m.in_len);
}

bool is_like(const Message& m, const Message& first) {
  return &m.algorithm() == &first.algorithm() && m.direction == first.direction && m.padding == first.padding &&
         m.memory == Memory::device && m.iv_len == first.iv_len && m.tag_len == first.tag_len && !m.compute_tag &&
         !m.is_part;
}

}  // namespace

// One core's findings in its part of the messages.
struct MessageColumns::Bounds {
  std::uintptr_t in_begin = UINTPTR_MAX, in_end = 0;
  std::uintptr_t out_begin = UINTPTR_MAX, out_end = 0;
  std::uintptr_t last_out = 0;  // of the last message
  std::uint64_t texts_len = 0;
  bool ascend = true;  // outputs
  bool one_key = true;
  bool one_aad = true;

  void add(const Message& m, const Message& first) {
    in_begin = std::min(in_begin, address(m.in));
    in_end = std::max(in_end, address(m.in) + m.in_len + tag_len_at_input(m));
    texts_len += m.in_len;
    const std::uintptr_t out = address(m.out);
    ascend = ascend && last_out <= out;
    last_out = out + m.output_len() + tag_len_at_output(m);
    out_begin = std::min(out_begin, out);
    out_end = std::max(out_end, last_out);
    one_key = one_key && m.key == first.key;
    one_aad = one_aad && m.aad == first.aad && m.aad_len == first.aad_len;
  }

  void add(const Bounds& other) {
    in_begin = std::min(in_begin, other.in_begin);
    in_end = std::max(in_end, other.in_end);
    out_begin = std::min(out_begin, other.out_begin);
    out_end = std::max(out_end, other.out_end);
    texts_len += other.texts_len;
    ascend = ascend && other.ascend;
    one_key = one_key && other.one_key;
    one_aad = one_aad && other.one_aad;
  }
};

std::optional<MessageColumns> MessageColumns::make(std::span<const Message> messages) {
  if (messages.empty() || messages[0].key == nullptr || messages.size() >= UINT32_MAX) return std::nullopt;
  const Message& first = messages[0];
  std::atomic<bool> good{true};
  std::mutex mutex;
  Bounds all;
  ThreadPool::instance().parallel_for(messages.size(), at_once, [&](std::size_t begin, std::size_t end) {
    Bounds some;
    if (begin != 0) {  // also compare with the last message of the part before
      const Message& before = messages[begin - 1];
      if (before.key != nullptr) some.last_out = address(before.out) + before.output_len() + tag_len_at_output(before);
    }
    for (std::size_t i = begin; i < end; ++i) {
      const Message& m = messages[i];
      if (!is_right(m) || !is_like(m, first) || !has_tag_in_place(m)) good = false;
      if (!good) return;
      some.add(m, first);
    }
    const std::lock_guard lock(mutex);
    all.add(some);
  });
  if (!good) return std::nullopt;
  std::optional<MessageColumns> made(MessageColumns{});
  made->place_texts(messages, all);
  if (first.algorithm().is_aead()) {
    if (all.one_aad) {
      made->columns_.aad = {first.aad, first.aad_len};
    } else {
      made->place_aad(messages);
    }
  }
  if (all.one_key) {
    made->keys_ = {first.key};
  } else {
    made->number_keys(messages);
  }
  return made;
}

void MessageColumns::place_texts(std::span<const Message> messages, const Bounds& bounds) {
  const std::size_t count = messages.size();
  const Message& first = messages[0];
  if (!bounds.ascend) {
    order_.resize(count);
    for (std::uint32_t i = 0; i < count; ++i) order_[i] = i;
    sort_runs(order_, [&](std::uint32_t a, std::uint32_t b) { return messages[a].out < messages[b].out; });
  }
  columns_.direction = first.direction;
  columns_.padding = first.padding;
  columns_.memory = Memory::device;
  columns_.count = count;
  columns_.iv_len = first.iv_len;
  columns_.tag_len = first.tag_len;
  columns_.scattered = true;
  columns_.texts_len = bounds.texts_len;
  columns_.in = {reinterpret_cast<const std::uint8_t*>(bounds.in_begin), bounds.in_end - bounds.in_begin};
  columns_.out = {reinterpret_cast<std::uint8_t*>(bounds.out_begin), bounds.out_end - bounds.out_begin};
  in_offsets_ = make_array<std::uint64_t>(count);
  in_lengths_ = make_array<std::uint64_t>(count);
  out_offsets_ = make_array<std::uint64_t>(count);
  ivs_ = make_array<std::uint8_t>(count * first.iv_len);
  ThreadPool::instance().parallel_for(count, at_once, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Message& m = message_at(messages, i);
      in_offsets_[i] = address(m.in) - bounds.in_begin;
      in_lengths_[i] = m.in_len + tag_len_at_input(m);
      out_offsets_[i] = address(m.out) - bounds.out_begin;
      if (m.iv_len != 0) std::memcpy(ivs_.get() + i * m.iv_len, m.iv, m.iv_len);
    }
  });
}

void MessageColumns::place_aad(std::span<const Message> messages) {
  const std::size_t count = messages.size();
  aad_offsets_ = make_array<std::uint64_t>(count);
  aad_lengths_ = make_array<std::uint64_t>(count);
  std::uint64_t len = 0;
  for (std::size_t i = 0; i < count; ++i) {
    aad_offsets_[i] = len;
    aad_lengths_[i] = message_at(messages, i).aad_len;
    len += aad_lengths_[i];
  }
  aad_ = make_array<std::uint8_t>(len);
  ThreadPool::instance().parallel_for(count, at_once, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Message& m = message_at(messages, i);
      if (m.aad_len != 0) std::memcpy(aad_.get() + aad_offsets_[i], m.aad, m.aad_len);
    }
  });
  columns_.aad = {aad_.get(), len};
}

// A key may get more than one number; then the GPU derives it more than once, which is harmless. A table of the keys
// seen last finds keys that alternate.
void MessageColumns::number_keys(std::span<const Message> messages) {
  const std::size_t count = messages.size();
  const auto pointers = make_array<const Key*>(count);
  ThreadPool::instance().parallel_for(count, at_once, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) pointers[i] = message_at(messages, i).key;
  });
  struct Entry {
    const Key* key = nullptr;
    std::uint32_t number = 0;
  };
  constexpr int table_log = 12;
  constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15u;  // spreads addresses (Knuth, volume 3, section 6.4)
  const auto table = std::make_unique<std::array<Entry, std::size_t{1} << table_log>>();
  key_index_ = make_array<std::uint32_t>(count);
  for (std::size_t i = 0; i < count; ++i) {
    Entry& entry = (*table)[address(pointers[i]) * golden_ratio >> (64 - table_log)];
    if (entry.key != pointers[i]) {
      entry = {pointers[i], static_cast<std::uint32_t>(keys_.size())};
      keys_.push_back(pointers[i]);
    }
    key_index_[i] = entry.number;
  }
}

Columns MessageColumns::columns() const {
  Columns columns = columns_;
  const std::size_t count = columns.count;
  columns.keys = keys_;
  columns.in_offsets = {in_offsets_.get(), count};
  columns.in_lengths = {in_lengths_.get(), count};
  columns.out_offsets = {out_offsets_.get(), count};
  columns.ivs = {ivs_.get(), count * columns.iv_len};
  if (key_index_ != nullptr) columns.key_index = {key_index_.get(), count};
  if (aad_offsets_ != nullptr) {
    columns.aad_offsets = {aad_offsets_.get(), count};
    columns.aad_lengths = {aad_lengths_.get(), count};
  }
  return columns;
}

}  // namespace warpcipher
