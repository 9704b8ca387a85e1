// SPDX-License-Identifier: Apache-2.0
// The checks of messages: everything from outside is checked here, once, before an engine runs.
#include "message/message.hpp"

#include <random>
#include <string>

#include "cipher/aes.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/thread_pool.hpp"
#include "message/checks.hpp"
#include "message/key.hpp"
#include "mode/stream.hpp"

namespace warpcipher {

namespace {

std::string impossible_len(const char* what, std::uint64_t len) {
  return std::string(what) + " is said to have " + std::to_string(len) + " bytes, more than the 2^56 that there can be";
}

class Check {
 public:
  Check(const Message& message, std::size_t index, std::size_t count) : m_(message), index_(index), count_(count) {}

  void run() const {
    check_pointers();
    check_iv();
    check_text();
    check_aead();
    check_overlap();
  }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    refuse(count_ > 1 ? "message " + std::to_string(index_) + ": " + text : text);
  }

  std::string name() const { return std::string(m_.algorithm().name); }

  void check_pointers() const {
    if (m_.key == nullptr) fail("the key is missing (null pointer)");
    check_buffer(m_.in, m_.in_len, "in");
    check_len(m_.out_len, "out");
    check_buffer(m_.out, m_.output_len(), "out");
    check_buffer(m_.iv, m_.iv_len, "iv");
    check_buffer(m_.aad, m_.aad_len, "aad");
    check_buffer(m_.tag, m_.tag_len, "tag");
  }

  void check_len(std::size_t len, const char* what) const {
    if (len > most_buffer_len) fail(impossible_len(what, len));
  }

  void check_buffer(const void* data, std::size_t len, const char* what) const {
    check_len(len, what);
    if (data == nullptr && len != 0) {
      fail(std::string(what) + " is a null pointer but " + std::to_string(len) + " bytes are needed there");
    }
  }

  void check_iv() const {
    const ModeInfo& mode = m_.algorithm().mode;
    const std::size_t needed = m_.algorithm().iv_len;
    if (mode.iv == IvRule::none && m_.iv_len != 0) fail(name() + " takes no IV, got one of " + bytes(m_.iv_len));
    if ((mode.iv == IvRule::block || mode.iv == IvRule::fixed) && m_.iv_len != needed) {
      fail(name() + " takes " + (m_.algorithm().is_aead() ? "a nonce of " : "an IV of ") + bytes(needed) +
           (mode.id == Mode::stream ? " (a counter of 4 bytes, little-endian, and a nonce of 12)" : "") + ", got " +
           (m_.iv_len ? bytes(m_.iv_len) : "none"));
    }
    if (mode.iv == IvRule::any && (m_.iv_len < mode.least_iv_len || m_.iv_len > mode.most_iv_len)) {
      const std::string most = mode.most_iv_len == SIZE_MAX ? " byte or more" : " to " + bytes(mode.most_iv_len);
      fail(name() + " takes an IV (nonce) of " + std::to_string(mode.least_iv_len) + most + ", usually " +
           std::to_string(needed) + ", got " + (m_.iv_len != 0 ? bytes(m_.iv_len) : "none"));
    }
  }

  void check_text() const {
    const Algorithm& algorithm = m_.algorithm();
    const std::size_t block = algorithm.block_len();
    if (m_.padding == Padding::pkcs7 && !algorithm.takes_padding()) {
      fail(name() + " takes no padding: PKCS#7 is for ECB and CBC");
    }
    const bool pads = m_.padding == Padding::pkcs7 && m_.direction == Direction::encrypt;
    if (algorithm.mode.whole_blocks && !pads && (m_.in_len & (block - 1)) != 0) {  // blocks are powers of two
      fail(name() + (m_.padding == Padding::none ? " without padding" : "") + " takes a multiple of " + bytes(block) +
           ", got " + bytes(m_.in_len));
    }
    if (m_.padding == Padding::pkcs7 && m_.direction == Direction::decrypt && m_.in_len == 0) {
      fail(name() + " with PKCS#7 padding decrypts at least " + bytes(block) + ", got 0");
    }
    const ModeInfo& mode = algorithm.mode;
    if (mode.least_text_len != 0 && (m_.in_len < mode.least_text_len || m_.in_len > mode.most_text_len)) {
      fail(name() + " takes a data unit of " + std::to_string(mode.least_text_len) + " to " +
           bytes(mode.most_text_len) + ", got " + bytes(m_.in_len));
    }
    const std::uint64_t most = mode.most_text_len_with(m_.iv_len);
    if (m_.in_len > most) {
      const std::string nonce = most == mode.most_text_len ? "" : " with a nonce of " + bytes(m_.iv_len);
      fail(name() + " takes at most " + bytes(most) + nonce + ", got " + bytes(m_.in_len));
    }
    if (mode.id == Mode::stream && m_.in_len > key_stream_left(m_.iv)) {
      fail(name() + " has a counter of 32 bits that does not wrap: from " + std::to_string(load_le32(m_.iv)) +
           " it has " + bytes(key_stream_left(m_.iv)) + ", got " + bytes(m_.in_len));
    }
    if (m_.out_len < m_.output_len()) {
      fail("out has room for " + bytes(m_.out_len) + ", " + bytes(m_.output_len()) + " are needed");
    }
  }

  void check_aead() const {
    if (!m_.algorithm().is_aead()) {
      if (m_.aad_len != 0) fail(name() + " takes no associated data (AAD): use an AEAD such as aes-256-gcm");
      if (m_.tag_len != 0) fail(name() + " has no tag: use an AEAD such as aes-256-gcm");
      return;
    }
    if (!m_.algorithm().takes_tag_len(m_.tag_len)) {
      fail(name() + " takes a tag of " + tag_lens_text(m_.algorithm()) + " bytes, got " + bytes(m_.tag_len));
    }
    const std::uint64_t most_aad_len = m_.algorithm().mode.most_aad_len;
    if (m_.aad_len > most_aad_len) {
      fail(name() + " takes at most " + bytes(most_aad_len) + " of associated data, got " + bytes(m_.aad_len));
    }
  }

  void check_overlap() const {
    const std::size_t out_len = m_.output_len();
    if (m_.in != m_.out && overlap(m_.in, m_.in_len, m_.out, out_len)) {
      fail("in and out overlap without being the same: give the same pointer or separate buffers");
    }
    if (m_.tag_len != 0 &&
        (overlap(m_.tag, m_.tag_len, m_.out, out_len) || overlap(m_.tag, m_.tag_len, m_.in, m_.in_len))) {
      fail("the tag overlaps the text");
    }
    // Parts of a text run side by side, and each reads the IV.
    if (overlap(m_.iv, m_.iv_len, m_.out, out_len)) fail("the IV overlaps out: give a copy of it");
    if (overlap(m_.aad, m_.aad_len, m_.out, out_len)) fail("the AAD overlaps out: give a copy of it");
  }

  static bool overlap(const std::uint8_t* a, std::size_t a_len, const std::uint8_t* b, std::size_t b_len) {
    const auto x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
    return a_len != 0 && b_len != 0 && x < y + b_len && y < x + a_len;
  }

  static std::string bytes(std::uint64_t n) { return std::to_string(n) + (n == 1 ? " byte" : " bytes"); }

  const Message& m_;
  const std::size_t index_;
  const std::size_t count_;
};

// A fast check without a branch for each mode: in a batch that mixes modes the processor would mispredict half of those
// branches. False does not mean that the message is wrong: Check decides then. That includes messages with padding, and
// empty texts with a null pointer.
bool is_plainly_right(const Message& m) {
  if (m.key == nullptr) return false;
  const Algorithm& algorithm = m.algorithm();
  const ModeInfo& mode = algorithm.mode;
  const std::size_t block = algorithm.block_len();
  const bool aead = algorithm.is_aead();
  const auto in = reinterpret_cast<std::uintptr_t>(m.in), out = reinterpret_cast<std::uintptr_t>(m.out);
  const auto tag = reinterpret_cast<std::uintptr_t>(m.tag);
  const auto iv = reinterpret_cast<std::uintptr_t>(m.iv), aad = reinterpret_cast<std::uintptr_t>(m.aad);
  const std::size_t len = m.in_len;
  bool wrong = m.padding != Padding::none;
  wrong |= (len < mode.least_text_len) | (len > mode.most_text_len) | (m.aad_len > mode.most_aad_len);
  wrong |= (in == 0) | (out == 0) | ((m.iv == nullptr) & (m.iv_len != 0)) | ((m.aad == nullptr) & (m.aad_len != 0));
  wrong |= (m.iv_len != algorithm.iv_len) &
           ((mode.iv != IvRule::any) | (m.iv_len < mode.least_iv_len) | (m.iv_len > mode.most_iv_len));
  wrong |= mode.whole_blocks & ((len & (block - 1)) != 0);
  wrong |= (len > most_buffer_len) | (m.out_len < len) | (m.tag_len > 16);
  wrong |= (m.out_len > most_buffer_len) | (m.iv_len > most_buffer_len) | (m.aad_len > most_buffer_len);
  wrong |= (in != out) & (in < out + len) & (out < in + len);
  wrong |= (iv < out + len) & (out < iv + m.iv_len);
  wrong |= (aad < out + len) & (out < aad + m.aad_len);
  wrong |= (m.aad_len + m.tag_len != 0) & !aead;
  wrong |= aead & ((tag == 0) | ((mode.tag_lens >> (m.tag_len & 31) & 1) == 0));
  wrong |= aead & (((tag < in + len) & (in < tag + m.tag_len)) | ((tag < out + len) & (out < tag + m.tag_len)));
  if (wrong || len > mode.most_text_len_with(m.iv_len)) return false;
  return mode.id != Mode::stream || len <= key_stream_left(m.iv);
}

// Messages that a thread checks at a time.
constexpr std::size_t checked_at_once = 2048;

void check_each(std::span<const Message> messages, std::size_t begin, std::size_t end) {
  constexpr std::size_t ahead = 16;  // messages to prefetch: nothing has read them before
  for (std::size_t i = begin; i < end; ++i) {
    if (ahead < end - i) {
      __builtin_prefetch(&messages[i + ahead]);
      __builtin_prefetch(&messages[i + ahead].aad);
    }
    if (!is_plainly_right(messages[i])) Check(messages[i], i, messages.size()).run();
    if (messages[i].memory != messages[0].memory) {
      refuse("message ", i,
             " lies in another kind of memory than message 0: run host and device "
             "messages in separate batches");
    }
  }
}

void check_serially(std::span<const Message> messages) {
  check_each(messages, 0, messages.size());
  check_overlap_between(messages);
  check_nonces(messages);
}

// The checks between messages rely on the checks of each message.
void check_on_all_cores(std::span<const Message> messages) {
  ThreadPool& pool = ThreadPool::instance();
  pool.parallel_for(messages.size(), checked_at_once,
                    [&](std::size_t begin, std::size_t end) { check_each(messages, begin, end); });
  pool.parallel_for(2, 1, [&](std::size_t which, std::size_t) {
    which == 0 ? check_nonces(messages) : check_overlap_between(messages);
  });
}

}  // namespace

bool is_right(const Message& message) {
  if (is_plainly_right(message)) return true;
  try {
    Check(message, 0, 1).run();
    return true;
  } catch (const Error&) {
    return false;
  }
}

void check_buffer_len(const char* what, std::uint64_t len) {
  if (len > most_buffer_len) refuse(impossible_len(what, len));
}

void check_message_count(std::uint64_t count) {
  if (count > UINT32_MAX) {
    refuse("a batch takes at most 2^32 - 1 messages, got ", count);
  }
}

void check_messages(std::span<const Message> messages) {
  check_message_count(messages.size());
  if (messages.size() < 2 * checked_at_once) return check_serially(messages);
  try {
    check_on_all_cores(messages);
  } catch (const Error&) {
    check_serially(messages);  // reports the first wrong message, not the one that some thread found first
    throw;
  }
}

namespace {

std::array<std::uint8_t, 16> random_block() {
  std::random_device random;
  std::array<std::uint8_t, 16> block;
  for (std::size_t i = 0; i < block.size(); i += 4) store_le32(block.data() + i, random());
  return block;
}

}  // namespace

Key::Key(const Algorithm& algorithm, std::span<const std::uint8_t> bytes) : algorithm_(algorithm) {
  if (bytes.size() != algorithm.key_len()) {
    refuse(algorithm.name, " takes a key of ", algorithm.key_len(), " bytes, got ", bytes.size());
  }
  if (algorithm.mode.two_keys) {
    const std::size_t half = bytes.size() / 2;
    if (equal_constant_time(bytes.data(), bytes.data() + half, half)) {
      refuse(algorithm.name, ": the two halves of the key are equal, it takes two different keys");
    }
  }
  bytes_ = SecretBytes(bytes);
}

const std::array<std::uint8_t, 16>& Key::fingerprint() const {
  fingerprint_once_.call([&] {
    static constinit FirstUse<std::array<std::uint8_t, 16>> block;
    const Secret schedule(aes::expand_key(bytes_.data(), algorithm_.cipher.key_len));
    aes::encrypt_block(*schedule, block.get(random_block).data(), fingerprint_.data());
  });
  return fingerprint_;
}

}  // namespace warpcipher
