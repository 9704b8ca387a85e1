// SPDX-License-Identifier: Apache-2.0
// Payloads of harrison2008: serialisation on the CPU, and a kernel that finds each thread's message by binary search
// and holds both kinds of modes (a "fat kernel", section 5.2).
//
// Substitutes: descriptors, schedules and thread index were in texture memory, by texture references, which CUDA no
// longer has. Here they are read through the read-only cache, which also serves textures.
//
// Timing: lookups in shared memory collide according to the data. Not constant time.
#include "harrison2008_payload.hpp"

#include <limits>
#include <memory>

#include "core/error.hpp"
#include "tables.hpp"

namespace warpcipher::lab {
namespace {

using harrison::Descriptor;
using harrison::Message;

constexpr std::size_t schedule_len = 16 * 11;

std::vector<Message> messages_of(std::span<const std::uint8_t> bytes, std::size_t key_count) {
  if (bytes.empty() || bytes.size() % sizeof(Message) != 0) {
    throw Error(Status::invalid_argument,
                "messages are " + std::to_string(bytes.size()) + " bytes: expected 32 for each, and one at least");
  }
  std::vector<Message> messages(bytes.size() / sizeof(Message));
  std::memcpy(messages.data(), bytes.data(), bytes.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    if (message.blocks == 0 || message.serial > 1 || message.key >= key_count || message.padding > 16) {
      throw Error(Status::invalid_argument, "message " + std::to_string(i) + " has " + std::to_string(message.blocks) +
                                                " blocks, mode " + std::to_string(message.serial) + ", key " +
                                                std::to_string(message.key) + " of " + std::to_string(key_count) +
                                                " and " + std::to_string(message.padding) + " bytes of padding");
    }
  }
  return messages;
}

// The bridging layer's work on the CPU (section 6.1).
class Payload {
 public:
  explicit Payload(const Setting& setting) : keys_(setting.key) {
    if (keys_.size() == 0 || keys_.size() % 16 != 0) {
      throw Error(Status::invalid_argument,
                  "keys are " + std::to_string(keys_.size()) + " bytes: expected 16 for each, and one at least");
    }
    messages_ = messages_of(setting.iv, keys_.size() / 16);
    for (const Message& message : messages_) {
      blocks_ += message.blocks;
      added_ += message.padding == 16 ? 1 : 0;
      threads_ += message.serial ? 1 : message.blocks;
    }
    if (blocks_ > std::numeric_limits<std::int32_t>::max()) {
      throw Error(Status::invalid_argument,
                  "the messages have " + std::to_string(blocks_) + " blocks: expected 2^31 - 1 at most");
    }
    streams_ = SecretBytes(messages_.size() * (sizeof(Descriptor) + 4) + schedule_len * position_keys());
  }

  std::size_t count() const { return messages_.size(); }
  std::uint32_t threads() const { return static_cast<std::uint32_t>(threads_); }
  std::size_t in_len() const { return 16 * (blocks_ - added_); }
  std::size_t out_len() const { return 16 * blocks_; }
  std::size_t schedules_at() const { return sizeof(Descriptor) * count(); }
  std::size_t index_at() const { return streams_.size() - 4 * count(); }
  const SecretBytes& streams() const { return streams_; }

  // Makes the streams.
  void serialise() {
    std::uint8_t* const bytes = streams_.data();
    for (const auto& [key, position] : positions_) {
      const Secret<RoundKeys> schedule = expand_key({reinterpret_cast<const std::uint8_t*>(key.data()), 16});
      std::memcpy(bytes + schedules_at() + schedule_len * position, schedule->words, schedule_len);
    }
    std::uint32_t first_in = 0;
    std::uint32_t first_out = 0;
    std::uint32_t first_thread = 0;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      const Message& message = messages_[i];
      Descriptor descriptor{first_in,        first_out, message.blocks, message.serial, key_positions_[message.key],
                            message.padding, {}};
      std::memcpy(descriptor.iv, message.iv, 16);
      std::memcpy(bytes + sizeof descriptor * i, &descriptor, sizeof descriptor);
      std::memcpy(bytes + index_at() + 4 * i, &first_thread, 4);
      first_in += message.blocks - (message.padding == 16 ? 1 : 0);
      first_out += message.blocks;
      first_thread += message.serial ? 1 : message.blocks;
    }
  }

 private:
  // The cache of key schedules: where each key's lies. Returns how many there are.
  std::size_t position_keys() {
    for (std::size_t i = 0; i < keys_.size(); i += 16) {
      const std::string_view key(reinterpret_cast<const char*>(keys_.data()) + i, 16);
      key_positions_.push_back(positions_.emplace(key, static_cast<std::uint32_t>(positions_.size())).first->second);
    }
    return positions_.size();
  }

  SecretBytes keys_;
  std::vector<Message> messages_;
  std::map<std::string_view, std::uint32_t> positions_;  // into keys_
  std::vector<std::uint32_t> key_positions_;
  std::size_t blocks_ = 0;
  std::size_t added_ = 0;  // of these, by padding
  std::size_t threads_ = 0;
  SecretBytes streams_;
};

Job serialisation(const Setting& setting) {
  return host_job([payload = std::make_shared<Payload>(setting)](const Data& data) {
    check_len("out", data.out_len, {payload->streams().size()});
    payload->serialise();
    std::memcpy(data.out, payload->streams().data(), data.out_len);
  });
}

#if WARPCIPHER_HAS_CUDA

constexpr std::uint32_t block_threads = 256;  // as in the paper (section 4)
constexpr std::uint32_t warp_len = 32;
constexpr std::uint32_t no_thread = 0xffffffff;

__device__ const Tables global_tables = make_tables(aes::te0);

// From physical to logical threads (section 6.2). Either
//   one to one in groups of `multiprocessors` blocks of threads. The last group, if it is not full, is spread over its
//   blocks of threads evenly: `share` each.
//   striped: warp w of block b gets group w * blocks + b of 32 logical threads, so that those that follow each other
//   lie in different blocks of threads.
struct Mapping {
  std::uint32_t threads;  // logical
  std::uint32_t blocks;   // of threads
  std::uint32_t full;     // logical threads in full groups
  std::uint32_t share;    // 0: striped

  Mapping(std::uint32_t count, bool striped, std::uint32_t multiprocessors) : threads(count) {
    const std::uint32_t group = multiprocessors * block_threads;
    blocks = striped ? (count - 1) / block_threads + 1 : ((count - 1) / group + 1) * multiprocessors;
    full = striped ? 0 : count / group * group;
    share = striped ? 0 : (count - full + multiprocessors - 1) / multiprocessors;
    if (!striped && share == 0) share = 1;  // all groups are full
  }

  __device__ std::uint32_t logical(std::uint32_t block, std::uint32_t thread) const {
    std::uint32_t found = block * block_threads + thread;
    if (share == 0) {
      found = (thread / warp_len * blocks + block) * warp_len + thread % warp_len;
    } else if (found >= full) {
      found = thread < share ? full + (block - full / block_threads) * share + thread : no_thread;
    }
    return found < threads ? found : no_thread;
  }
};

struct Streams {
  const Descriptor* descriptors;
  const std::uint32_t* schedules;
  const std::uint32_t* index;
  std::uint32_t count;
};

// A message's last block with its padding; `in` has the first 16 - padding bytes. The one thread of a warp that gets
// here makes the others wait (section 6.3).
__device__ inline uint4 padded_block(const uint4* in, std::uint32_t padding) {
  const uint4 text = padding == 16 ? make_uint4(0, 0, 0, 0) : *in;
  std::uint32_t words[4] = {text.x, text.y, text.z, text.w};
#pragma unroll
  for (std::uint32_t i = 0; i < 16; ++i) {
    if (i < 16 - padding) continue;
    words[i / 4] = (words[i / 4] & ~(0xffu << 8 * (i % 4))) | padding << 8 * (i % 4);
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

__global__ void run_payload(const uint4* in, uint4* out, Streams streams, Mapping mapping) {
  auto* const shared = reinterpret_cast<std::uint32_t*>(shared_memory);
  for (std::uint32_t i = threadIdx.x; i < 1024; i += blockDim.x) shared[i] = global_tables[i / 256][i % 256];
  __syncthreads();
  const std::uint32_t thread = mapping.logical(blockIdx.x, threadIdx.x);
  if (thread == no_thread) return;

  // The last message whose first thread is not after this one.
  std::uint32_t low = 0;
  for (std::uint32_t high = streams.count; high - low > 1;) {
    const std::uint32_t middle = (low + high) / 2;
    if (__ldg(&streams.index[middle]) <= thread) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const Descriptor* const descriptor = &streams.descriptors[low];
  const uint4* const its_in = in + __ldg(&descriptor->first_in);
  uint4* const its_out = out + __ldg(&descriptor->first_out);
  const std::uint32_t last = __ldg(&descriptor->blocks) - 1;
  const std::uint32_t padding = __ldg(&descriptor->padding);
  const auto text = [&](std::uint32_t block) {
    return padding != 0 && block == last ? padded_block(its_in + block, padding) : its_in[block];
  };
  const std::uint32_t* const schedule = streams.schedules + 44 * std::size_t{__ldg(&descriptor->schedule)};
  const std::uint32_t iv[4] = {__ldg(&descriptor->iv[0]), __ldg(&descriptor->iv[1]), __ldg(&descriptor->iv[2]),
                               __ldg(&descriptor->iv[3])};
  const Boxes<const std::uint32_t*, 4> boxes{shared};
  const auto keys = [&](unsigned i) { return __ldg(&schedule[i]); };
  if (__ldg(&descriptor->serial) == 0) {
    const std::uint32_t block = thread - __ldg(&streams.index[low]);
    its_out[block] = sum(text(block), encrypt_state(boxes, keys, counter_behind(iv, block)));
    return;
  }
  uint4 chain = make_uint4(iv[0], iv[1], iv[2], iv[3]);
  for (std::uint32_t block = 0; block <= last; ++block) {
    chain = encrypt_state(boxes, keys, sum(text(block), chain));
    its_out[block] = chain;
  }
}

template <bool Striped>
Job payload_job(const Setting& setting) {
  const auto payload = std::make_shared<Payload>(setting);
  const Mapping mapping(payload->threads(), Striped,
                        static_cast<std::uint32_t>(setting.parameters.take("multiprocessors", 16, 1, 1024)));
  const auto memory = std::make_shared<const DeviceMemory>(setting.device, payload->streams().size(), true);
  return kernel_job({setting, run_payload, block_threads, sizeof(Tables)},
                    [payload, mapping, memory](const Launch& launch, const Data& data, Stream stream) {
                      check_len("in", data.in_len, {payload->in_len()});
                      check_len("out", data.out_len, {payload->out_len()});
                      const DeviceScope scope(launch.device);
                      payload->serialise();
                      const SecretBytes& streams = payload->streams();
                      cuda::check(cudaMemcpyAsync(memory->data(), streams.data(), streams.size(),
                                                  cudaMemcpyHostToDevice, static_cast<cudaStream_t>(stream)),
                                  "copy a payload's streams");
                      const auto* const bytes = memory->as<const std::uint8_t>();
                      const Streams on_device{reinterpret_cast<const Descriptor*>(bytes),
                                              reinterpret_cast<const std::uint32_t*>(bytes + payload->schedules_at()),
                                              reinterpret_cast<const std::uint32_t*>(bytes + payload->index_at()),
                                              static_cast<std::uint32_t>(payload->count())};
                      launch(run_payload, std::size_t{mapping.blocks} * block_threads, stream,
                             reinterpret_cast<const uint4*>(data.in), reinterpret_cast<uint4*>(data.out), on_device,
                             mapping);
                    });
}

#endif

}  // namespace

std::vector<Variant> harrison2008_payloads() {
  return {
      WARPCIPHER_LAB_GPU("payload-direct", "payloads, threads mapped one to one (section 6.2)", false,
                         payload_job<false>),
      WARPCIPHER_LAB_GPU("payload-striped", "payloads, threads striped over blocks (section 6.2)", false,
                         payload_job<true>),
      {"serialise", "a payload's streams, by one CPU thread (section 6.1)", false, false, serialisation},
  };
}

}  // namespace warpcipher::lab
