// SPDX-License-Identifier: Apache-2.0
// The kernels of the lane-table family, as the host launches them. The kernels of each mode are compiled in a file of
// their own.
#pragma once

#include <cuda_runtime.h>
#include <cstdint>

#include "cipher/gf128.hpp"
#include "engine/cuda/aes/kernels.hpp"
#include "engine/cuda/aes/source.hpp"
#include "engine/cuda/aes/table_layout.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/inputs/summary.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"
#include "mode/mode.hpp"

namespace warpcipher {
class Key;
struct Algorithm;
struct Message;
}  // namespace warpcipher

namespace warpcipher::cuda::lane_table {

// Exactly one source is set. one_key: only for modes that have it, with keys of 10 or 14 rounds, and in the layout
// tables_128; these modes have no `single`.
struct ParallelLaunch {
  const Device& device;
  Stream stream;
  TableLayout layout;
  const SingleSource* single = nullptr;
  const OneKeySource* one_key = nullptr;
  const BatchSource* batch = nullptr;
};

// A batch in a mode that is neither CTR nor GCM. in_place: some messages run in place. only_key: of all messages, or
// nullptr.
void run_tiles(const Device& device, Stream stream, const Algorithm& algorithm, Direction direction,
               const TextChoice& choice, const BatchSource& batch, bool in_place, const Key* only_key);

// One message of at least a unit, in any parallel mode but XTS; for GCM, its counter mode. start: the IV or the first
// counter. verdict: device memory; if it is 0, zeros are written in place of text. nullptr: the message is good.
void run_one(const Device& device, Stream stream, const TextChoice& choice, const Message& message, const Block& start,
             const std::uint32_t* verdict);

// Mode: one of modes.hpp, with its parameters.
template <class Mode, class Parameters>
void launch_parallel(const ParallelLaunch& run, Parameters parameters);

// --- The counter mode of a batch, by the kernel that is chosen for it (kernels.hpp).
// Messages of one key length. Pointers are to device memory.
struct CounterBatch {
  const MessageView* views;  // `start`: the first counter
  const std::uint64_t* first_tile;
  std::uint64_t tiles;
  std::uint64_t units;       // of all messages
  std::uint64_t most_units;  // of one
  std::uint32_t messages;
  std::uint32_t rounds;
  const uint4* round_keys;   // most_round_keys for each key; KeySource::bytes: not read
  const std::uint8_t* keys;  // as given, one after another; nullptr: not on the device
  const Key* only_key;       // of all messages, or nullptr
  bool is_aligned;           // all texts lie at multiples of 16
  bool lacks_ends;           // as TileList
  std::uint64_t end_units;   // of the ends
};

// verdicts: as CounterParameters. choice: for the form.
void run_counter_batch(const Device& device, Stream stream, const CounterBatch& batch, const CounterChoice& choice,
                       CounterForm form, const std::uint32_t* verdicts);

// The same before the host knows the batch: tiles and units are for messages of one length. Fills in the rest of
// the speculation. False: the kernel for such a batch does not check the assumption; nothing has been launched. Ends
// that tiles lack are left: run_ends() takes them.
bool start_counter_batch(const Device& device, Stream stream, const CounterBatch& batch, CounterChoice choice,
                         CounterForm form, Speculation& speculation);

// The rest of a batch that was started with `choice`, if any.
void run_ends(const Device& device, Stream stream, const CounterBatch& batch, const CounterChoice& choice,
              CounterForm form);

// --- Serial modes of AES as the engine and its columnar batches call them.
// Messages of one key length, in any mode that is serial (serial.cuh). Pointers are to device memory.
struct SerialBatch {
  const MessageView* views;    // `start`: the IV
  const std::uint32_t* order;  // of the views, by length; nullptr: as they are
  const uint4* round_keys;     // fifteen a key, for encryption
  std::uint32_t messages;
  std::uint32_t rounds;
};

void run_serial_batch(const Device& device, Stream stream, Mode mode, const SerialChoice& choice,
                      const SerialBatch& batch);

// --- One block of each message of a batch, encrypted before its text is: E(J0) of GCM, the first tweak of XTS.
struct FirstBlocks {
  MessageView* views;
  std::uint32_t count;
  const uint4* round_keys;
  std::uint32_t rounds;
  Block* masks;
};

// Encrypts views[i].start under key views[i].key, one message in each lane. With masks: the result goes there, and
// start becomes the next counter (inc32: SP 800-38D, section 6.2). Without: start becomes the result. Pointers are to
// device memory.
void encrypt_first_blocks(const Device& device, Stream stream, TableLayout layout, const FirstBlocks& batch);

// --- AES-CCM (SP 800-38C), a message a lane. Each block of text is two of AES that do not wait for each other: one of
// the MAC's chain, one of key stream. All pointers are to device memory.
struct CcmBatch {
  const MessageView* views;  // start: the counter block of the text's first block
  const HashView* hash_views;
  const Block* masks;          // of each message: block 0 of its key stream
  const std::uint32_t* order;  // nullptr: as they lie
  const uint4* round_keys;     // most_round_keys for each key
  std::uint32_t rounds;
  std::uint32_t messages;
  bool encrypting;
};

// Text and tags. verdicts: decryption that checks tags; verdicts[i] becomes 1 if the tag of message i matches, else 0,
// and its text zeros. Without them tags are written.
void run_ccm(const Device& device, Stream stream, TableLayout layout, const CcmBatch& batch, std::uint32_t* verdicts);

// --- The blocks that AES-GCM-SIV encrypts in addition to the text of a message (RFC 8452, section 4): those that give
// its keys, and the one that gives its tag. A lane a message. All pointers are to device memory. Keys by number: round
// keys, or bytes of which the kernels make them.
struct SivKeySource {
  std::uint32_t rounds;
  const uint4* round_keys;    // most_round_keys for each key
  const std::uint8_t* bytes;  // not nullptr: keys of 128 bits one after another, by tables_128; round_keys is not read
};

struct SivMessages {
  MessageView* views;
  const HashView* hash_views;
  std::uint32_t count;
  Block* nonces;  // of each message, and zeros
};

struct SivDerivedKeys {
  std::uint8_t* encryption;        // as many bytes for each message as its key has
  gf128::Element* authentication;  // GHASH's key for POLYVAL's
};

// The keys of each message from its nonce, views[i].start, and the key views[i].key.
void derive_siv_keys(const Device& device, Stream stream, TableLayout layout, const SivMessages& messages,
                     const SivKeySource& keys, const SivDerivedKeys& derived);

// Once keys are derived: moves the nonces to messages.nonces, and makes views[i].key i. Decryption: views[i].start
// becomes the first counter. GivenTag: where the tag lies that came with the text.
enum class GivenTag : std::uint8_t {
  none,  // encryption
  tag,   // at HashView::tag
  mask,  // in HashView::mask
};
void begin_siv_messages(const Device& device, Stream stream, const SivMessages& messages, GivenTag given);

// Tags from the hashes of messages, under key i for message i. encrypting: writes the tag, and views[i].start becomes
// the first counter. Else writes the tag that the text should have; or, with verdicts, compares the given one in
// constant time, and sets verdicts[i] to 1 if they match, else to 0.
void finish_siv_tags(const Device& device, Stream stream, TableLayout layout, const SivMessages& messages,
                     const SivKeySource& keys, const Block* hashes, bool encrypting, std::uint32_t* verdicts);

// --- Sectors: data units of XTS of one length and one key that follow each other, as one text (hybrid_rows_sm90a.cu).
// Runs data units of one key as a speculative launch, if SectorKernel::rows was chosen. Also fills in its summary,
// which must be zeros before. If the data units are not sectors the summary is bad, and no text is written.
void start_hybrid_rows(const Device& device, Stream stream, const ColumnView& columns, const Key& key,
                       std::uint32_t rounds, const Speculation& speculation);

// The kernels of short messages packed into warps (packed.cuh), as the host launches them.

// The parameters that do not depend on the key.
struct PackedParameters {
  std::uint32_t group_log;        // log2 of G
  bool wrap_32;                   // as CounterParameters
  const std::uint32_t* verdicts;  // likewise
};

// Messages of one key of 10 or 14 rounds, by tables_128. CounterForm: not first_word. If `batch` lacks ends, these are
// encrypted and no more; so below.
void launch_packed(const Device& device, Stream stream, const OneKeySource& batch, const PackedParameters& parameters,
                   const Speculation& speculation);

// Messages with a key of 128 bits each, whose round keys the kernel makes, by tables_128. keys: one after another.
void launch_packed(const Device& device, Stream stream, CounterForm form, const MessageList& list,
                   const std::uint8_t* keys, const PackedParameters& parameters, const Speculation& speculation);

// Messages with a key each. CounterForm: not first_word if `batch` lacks ends.
void launch_packed(const Device& device, Stream stream, TableLayout layout, CounterForm form, const BatchSource& batch,
                   const PackedParameters& parameters, const Speculation& speculation);

}  // namespace warpcipher::cuda::lane_table
