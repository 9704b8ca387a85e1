// SPDX-License-Identifier: Apache-2.0
// A batch as the GPU runs it: messages of one algorithm and direction, and all that its kernels read, in device memory.
// It comes from messages that the host knows one by one (message_batch.hpp), or from columns whose views the GPU makes
// itself (columns.hpp). execute() runs both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cipher/gf128.hpp"
#include "core/wipe.hpp"
#include "engine/cuda/aes/launches.hpp"
#include "engine/cuda/chacha/launches.hpp"
#include "engine/cuda/execution/launch_plan.hpp"
#include "engine/cuda/ghash/ghash.hpp"
#include "engine/cuda/inputs/keys.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/inputs/summary.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "engine/stream.hpp"
#include "message/key.hpp"
#include "mode/algorithm.hpp"

namespace warpcipher {
struct Message;
}

namespace warpcipher::cuda {

// The keys of a stream cipher's batch in device memory: their bytes, and the GPU's derivations from them and from each
// message's nonce.
struct DeviceBatch;

class StreamKeys {
 public:
  // bytes: of the keys, one after another, in device memory.
  void take_bytes(const std::uint8_t* bytes) { bytes_ = bytes; }

  const std::uint8_t* bytes() const { return bytes_; }

  // Enqueues the derivation, unless it is done. A speculative launch tells the host of the plan, and derives in any
  // case.
  void derive(const DeviceBatch& batch, const Speculation& speculation = {});

  // Few messages of an AEAD, of which none is a part: the host derives. Call reserve() before `upload` is allocated,
  // fill() for each message after that.
  void reserve(Upload& upload, std::uint32_t messages, std::uint64_t most_chunks);
  void fill(Upload& upload, const Message& message, std::uint32_t number);

  // Device memory, after derive(). AEADs: the halves of the one-time keys, a block for each message.
  const chacha::KeyStream* streams() const { return streams_; }
  const Block* r() const { return r_; }
  const Block* s() const { return s_; }
  // As of chacha::Tags.
  std::uint32_t* factors() const { return factors_; }
  poly1305::Element* sums() const { return sums_; }

 private:
  struct OfHost {
    Upload::Array<chacha::KeyStream> streams;
    Upload::Array<Block> s;
    Upload::Array<std::uint32_t> factors;
    Upload::Array<poly1305::Element> sums;
    std::uint32_t messages;
  };

  const std::uint8_t* bytes_ = nullptr;
  std::optional<Upload> memory_;
  OfHost of_host_{};
  std::uint32_t* factors_ = nullptr;
  poly1305::Element* sums_ = nullptr;
  chacha::KeyStream* streams_ = nullptr;
  Block* r_ = nullptr;
  Block* s_ = nullptr;
};

// Enqueues the derivation of keys, if their own kernels take its results.
void derive_stream_keys(const DeviceBatch& batch);

// Of texts of whole blocks: enqueues the tags of ciphertexts, which are written without verdicts; or text
// and tags where the text lies in pieces, which the caller wipes where a verdict is 0.
void run_stream_tags(const DeviceBatch& batch, std::uint32_t* verdicts);
void run_stream_pieces(const DeviceBatch& batch, const chacha::TextPieces& pieces, std::uint32_t* verdicts);

// Enqueues text and tags, as execute() says.
void run_stream_cipher(const DeviceBatch& batch, std::uint32_t* verdicts);

// start_text() of an AEAD. If another kernel than the one for short messages is suitable, only the keys are derived,
// and the assumption never holds.
void start_stream_cipher(const DeviceBatch& batch, std::uint32_t* verdicts, Speculation& speculation);

}  // namespace warpcipher::cuda

// The keys that AES-GCM-SIV derives for each message of a batch from its key and its nonce (RFC 8452, section 4). The
// host derives the keys of a single message, so that kernels can have them as parameters; the GPU derives those
// of many.
namespace warpcipher::cuda {

struct DeviceBatch;

class SivKeys {
 public:
  SivKeys(const Device& device, Stream stream, const Algorithm& algorithm);

  // A single message: call reserve() before `upload` is allocated, fill() after that.
  void reserve(Upload& upload, const Message& message);
  void fill(Upload& upload) { of_messages_.fill(upload); }

  // Enqueues the work before the text: the derivation, unless the host has done it; then `nonces` has the nonces, and
  // views number the keys of messages.
  void begin(const DeviceBatch& batch, Block* nonces);

  // After begin().
  const lane_table::SivMessages& messages() const { return messages_; }

  // Of encryption, a key for each message.
  AesKeys& of_messages() { return of_messages_; }
  const Key* only_key() const { return only_key_ ? &*only_key_ : nullptr; }  // that the host has derived

  // Of authentication, as GHASH takes them: one of the two.
  const gf128::Element* hash_keys() const { return hash_keys_; }  // device memory
  const gf128::Element* only_hash_key() const { return only_key_ ? &*only_hash_key_ : nullptr; }

 private:
  lane_table::SivMessages messages_{};
  AesKeys of_messages_;
  std::optional<Key> only_key_;
  const Key* list_of_key_ = nullptr;  // read by of_messages_
  Secret<gf128::Element> only_hash_key_;
  std::optional<Upload> memory_;
  const gf128::Element* hash_keys_ = nullptr;
};

// Where a kernel of aes/gcm_siv.hpp finds keys: their bytes if it takes them, else round keys, which are
// derived.
lane_table::SivKeySource source_of(AesKeys& keys, lane_table::TableLayout layout);

struct DeviceBatch {
  const Device& device;
  Stream stream;
  const Algorithm& algorithm;
  Direction direction;
  MessageView* views = nullptr;               // `start`: the IV; later the encrypted first block, or the first counter
  const std::uint64_t* first_tile = nullptr;  // prefix sums, one more than messages; not for serial modes
  std::uint32_t messages = 0;
  std::uint64_t tiles = 0;
  std::uint64_t units = 0;        // of all messages
  std::uint64_t most_units = 0;   // of one
  bool in_place = true;           // some messages may run in place
  bool is_aligned = false;        // all texts, and where they go, lie at multiples of 16
  bool is_ordered = false;        // serial modes: views are in the order of length
  bool lacks_ends = false;        // counter modes: tiles do, as TileList says
  std::uint64_t end_units = 0;    // of the ends
  bool computes_tags = false;     // AEAD decryption: write the tags that the texts should have
  bool are_parts = false;         // Message::is_part
  const Key* only_key = nullptr;  // of all messages, where the host has it
  AesKeys* aes_keys = nullptr;
  DesKeys des_keys{};
  StreamKeys* stream_keys = nullptr;  // ChaCha20
  SivKeys* siv_keys = nullptr;        // GCM-SIV
  ghash::HashBatch hashes{};          // AEADs; Poly1305: only views, masks, chunks and work
  LaunchPlan plan{};                  // as plan_of()

  // Of the messages as they are described so far.
  LaunchPlan plan_of(std::uint64_t sectors_len = 0) const {
    BatchFacts facts{algorithm, direction, messages, tiles, units, most_units, end_units};
    // Of GCM-SIV texts have their own keys, which the host derives only for one message.
    const bool has_own_keys = is_gcm_siv();
    facts.has_only_key = has_own_keys ? siv_keys->only_key() != nullptr : only_key != nullptr;
    facts.has_key_bytes = has_own_keys ? !facts.has_only_key : is_aes() && aes_keys->bytes() != nullptr;
    facts.is_aligned = is_aligned;
    facts.are_parts = are_parts;
    facts.hashes = hashes.work;
    facts.hashes.messages -= hashes.in_rows.messages;
    facts.hashes.blocks -= hashes.in_rows.blocks;
    facts.sectors_len = sectors_len;
    return plan_launches(device, facts);
  }

  bool is_gcm() const { return algorithm.mode.id == Mode::gcm; }
  bool is_ccm() const { return algorithm.mode.id == Mode::ccm; }
  bool is_gcm_siv() const { return algorithm.mode.id == Mode::gcm_siv; }
  bool is_chacha() const { return is_stream_cipher(algorithm.cipher.id); }
  bool is_aes() const { return warpcipher::is_aes(algorithm.cipher.id); }
  // Whether tags are checked here: execute() then needs one word for each message.
  bool checks_tags() const { return algorithm.is_aead() && direction == Direction::decrypt && !computes_tags; }
};

// Encrypts the first block of each message, before the text. GCM and CCM: E(J0) and E(Ctr0), which go to `masks`; the
// view then has the first counter. GCM-SIV: the nonce goes to `masks`; where it decrypts, the view then has the first
// counter. XTS: the first tweak. Nothing for other modes. Derives the keys.
void encrypt_first_blocks(const DeviceBatch& batch, Block* masks);

// Enqueues text and tags, as the plan says. verdicts: device memory, one word for each message, if checks_tags(). A
// message with a wrong tag gets verdict 0, and its text is zeros. GCM does not decrypt it before its tag has been
// verified, not even in place. ChaCha20-Poly1305 may: it reads long texts once, decrypts and hashes them in one pass.
// GCM-SIV must, since it hashes the plaintext. So must CCM, likewise. All of these wipe forged texts before later
// work of the stream begins. started: the part that start_text() has rightly started.
void execute(const DeviceBatch& batch, std::uint32_t* verdicts, const std::optional<CounterChoice>& started = {});

// Starts the text of a counter mode, or text and tags of ChaCha20-Poly1305, before the host knows the plan
// (speculation.hpp): tiles and units are for messages of one length. Fills in the rest of the speculation.
// Nothing: the kernel for such a batch does not check the assumption itself; nothing has been launched. verdicts: as of
// execute().
std::optional<CounterChoice> start_text(const DeviceBatch& batch, std::uint32_t* verdicts, Speculation& speculation);

// --- The device memory that the summary of columns fills in.
class PlanMemory {
 public:
  PlanMemory(std::uint32_t count, bool is_aead, BatchSummary* summary, Stream stream) {
    const auto sums = memory_.reserve_on_device<Sums>((std::size_t{count} + messages_of_sum - 1) / messages_of_sum);
    const auto views = memory_.reserve_on_device<MessageView>(count);
    const auto first_tile = memory_.reserve_on_device<std::uint64_t>(std::size_t{count} + 1);
    const auto hash_views = memory_.reserve_on_device<HashView>(is_aead ? count : 0);
    const auto first_chunk = memory_.reserve_on_device<std::uint64_t>(is_aead ? std::size_t{count} + 1 : 0);
    memory_.allocate(stream, Wiping::needless);
    buffers_ = {summary,
                memory_.device(sums),
                memory_.device(views),
                is_aead ? memory_.device(hash_views) : nullptr,
                memory_.device(first_tile),
                is_aead ? memory_.device(first_chunk) : nullptr};
  }

  const SummaryBuffers& buffers() const { return buffers_; }

 private:
  Upload memory_;
  SummaryBuffers buffers_{};
};

}  // namespace warpcipher::cuda
