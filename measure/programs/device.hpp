// SPDX-License-Identifier: Apache-2.0
// The benchmarks of the CUDA engine share this: memory, times of a stream and of calls, messages of one length, and
// the comparison with the reference engine.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/bytes.hpp"
#include "engine/device_engine.hpp"
#include "engine/engine.hpp"
#include "frame.hpp"
#include "message/plan.hpp"

namespace warpcipher::bench {

inline void must(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

// Throws where the engine cannot run.
inline void print_devices() {
  const std::string& reason = cuda_engine().unavailable_reason();
  if (!reason.empty()) throw std::runtime_error(reason);
  for (const std::string& device : cuda_engine().devices()) std::printf("%s\n", device.c_str());
}

// ---- memory ---------------------------------------------------------------------------------------------------------

// Memory of the current device.
class Bytes {
 public:
  explicit Bytes(std::size_t len) : len_(len) {
    must(cudaMalloc(reinterpret_cast<void**>(&data_), len != 0 ? len : 1), "cudaMalloc");
    must(cudaMemset(data_, 0x5a, len), "cudaMemset");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // other streams do not wait for it
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() { cudaFree(data_); }

  template <class T>
  static std::unique_ptr<Bytes> copy_of(const std::vector<T>& values) {
    auto copy = std::make_unique<Bytes>(values.size() * sizeof(T));
    must(cudaMemcpy(copy->data_, values.data(), copy->len_, cudaMemcpyHostToDevice), "cudaMemcpy");
    return copy;
  }

  std::uint8_t* data() const { return data_; }
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data_), len_ / sizeof(T)};
  }

 private:
  const std::size_t len_;
  std::uint8_t* data_ = nullptr;
};

inline std::vector<std::uint8_t> read(const std::uint8_t* from, std::size_t len) {
  std::vector<std::uint8_t> bytes(len);
  must(cudaMemcpy(bytes.data(), from, len, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return bytes;
}

// A text of `len` bytes on the current device, as much room for results, and a stream.
class Buffers {
 public:
  explicit Buffers(std::size_t len) : in_(len), out_(len) {}
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() { cuda_engine().destroy_stream(stream_); }

  std::uint8_t* in() const { return in_.data(); }
  std::uint8_t* out() const { return out_.data(); }
  Stream stream() const { return stream_; }
  cudaStream_t native() const { return static_cast<cudaStream_t>(stream_); }

 private:
  const Bytes in_, out_;
  const Stream stream_ = cuda_engine().create_stream();
};

// ---- times ----------------------------------------------------------------------------------------------------------

// Time on a device between two points of a stream.
class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream) {
    must(cudaEventCreate(&start_), "cudaEventCreate");
    must(cudaEventCreate(&stop_), "cudaEventCreate");
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }

  // Milliseconds that the work which `enqueue` puts on the stream takes. Waits for it.
  template <class Enqueue>
  double milliseconds(Enqueue&& enqueue) {
    must(cudaEventRecord(start_, stream_), "cudaEventRecord");
    enqueue();
    must(cudaEventRecord(stop_, stream_), "cudaEventRecord");
    must(cudaEventSynchronize(stop_), "cudaEventSynchronize");
    float ms = 0;
    must(cudaEventElapsedTime(&ms, start_, stop_), "cudaEventElapsedTime");
    return static_cast<double>(ms);
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};

// ---- messages -------------------------------------------------------------------------------------------------------

inline constexpr std::size_t tag_len = 16;

struct Case {
  const char* algorithm;
  std::size_t messages;
  std::size_t len;
  std::size_t aad_len = 0;
  bool own_keys = false;
  Direction direction = Direction::encrypt;
};

inline const char* name_of(Direction direction) { return direction == Direction::encrypt ? "encrypt" : "decrypt"; }

// The messages of a case on a device: each begins at a block, and its tag follows its text. IVs are zeros but for the
// message's number.
class Texts {
 public:
  Texts(const Case& c, const std::uint8_t* in, std::uint8_t* out)
      : algorithm(find_algorithm(c.algorithm)),
        shape(c),
        step((c.len + (algorithm.is_aead() ? tag_len : 0) + 15) / 16 * 16),
        key_bytes(algorithm.key_len() * (c.own_keys ? c.messages : 1)),
        ivs(algorithm.iv_len * c.messages),
        aad(c.aad_len, 7),
        in_(in),
        out_(out) {
    std::mt19937 random(1);
    for (std::uint8_t& byte : key_bytes) byte = static_cast<std::uint8_t>(random());
    for (std::size_t i = 0; i < c.messages && algorithm.iv_len >= 8; ++i) store_be64(&ivs[algorithm.iv_len * i], i);
  }

  std::size_t key_count() const { return shape.own_keys ? shape.messages : 1; }
  std::span<const std::uint8_t> key(std::size_t i) const {
    return std::span(key_bytes).subspan(shape.own_keys ? i * algorithm.key_len() : 0, algorithm.key_len());
  }

  Message message(std::size_t i, const Key& its_key) const {
    Message m;
    m.key = &its_key;
    m.direction = shape.direction;
    m.memory = Memory::device;
    m.in = in_ + step * i;
    m.out = out_ + step * i;
    m.in_len = m.out_len = shape.len;
    m.iv = ivs.data() + algorithm.iv_len * i;
    m.iv_len = algorithm.iv_len;
    if (algorithm.is_aead()) {
      m.aad = aad.data();
      m.aad_len = aad.size();
      m.tag = m.out + shape.len;
      m.tag_len = tag_len;
    }
    return m;
  }

  // keys: gets the keys of the messages.
  std::vector<Message> messages(std::deque<Key>& keys) const {
    std::vector<Message> made;
    made.reserve(shape.messages);
    for (std::size_t i = 0; i < shape.messages; ++i) {
      if (i < key_count()) keys.emplace_back(algorithm, key(i));
      made.push_back(message(i, keys.back()));
    }
    return made;
  }

  const Algorithm& algorithm;
  const Case shape;
  const std::size_t step;
  std::vector<std::uint8_t> key_bytes, ivs, aad;

 private:
  const std::uint8_t* const in_;
  std::uint8_t* const out_;
};

// The first `len` bytes of a message by the reference engine; of the whole message its tag follows. Not for a part of
// one whose every byte depends on all others (GCM-SIV).
inline std::vector<std::uint8_t> by_reference(const Message& message, std::size_t len) {
  std::vector<std::uint8_t> text = read(message.in, len);
  text.resize(len + tag_len);
  Message m = message;
  m.memory = Memory::host;
  m.in = m.out = text.data();
  m.in_len = m.out_len = len;
  if (m.tag_len != 0) m.tag = text.data() + len;
  Status status = Status::ok;
  reference_engine().run(make_plan({&m, 1}, reference_engine().tile_units()), {&status, 1}, nullptr);
  if (m.tag_len == 0 || len < message.in_len) text.resize(len);
  return text;
}

// Whether the first `len` bytes of a message that was run are right, and of a shorter message all of it.
inline bool is_right(const Message& message, std::size_t len = std::size_t{1} << 16) {
  len = std::min(len, message.in_len);
  const std::vector<std::uint8_t> expected = by_reference(message, len);
  std::vector<std::uint8_t> found = read(message.out, len);
  if (expected.size() != len) {
    const std::vector<std::uint8_t> tag = read(message.tag, tag_len);
    found.insert(found.end(), tag.begin(), tag.end());
  }
  return found == expected;
}

}  // namespace warpcipher::bench
