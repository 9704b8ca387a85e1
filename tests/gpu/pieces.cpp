// SPDX-License-Identifier: Apache-2.0
#include "pieces.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "core/bytes.hpp"
#include "dispatch/run.hpp"
#include "engine/device_engine.hpp"
#include "force.hpp"
#include "message/plan.hpp"
#include "oracle.hpp"

namespace conformance {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct Shape {
  std::size_t count, pieces, len;
  std::size_t keys = 1;
  std::size_t shift = 0;          // of pieces and ciphertexts from multiples of 256
  std::size_t step = 0;           // from a block to the next, 0: as the pieces need
  const char* counter = nullptr;  // the kernels that are forced
  const char* ghash = nullptr;

  std::string text() const {
    return std::to_string(count) + " of " + std::to_string(pieces) + " pieces of " + std::to_string(len) + ", " +
           std::to_string(keys) + " keys, shift " + std::to_string(shift) + ", step " + std::to_string(step);
  }
};

// Blocks of "tensors" in device memory: piece p of block b lies at p * gap + b * step. Sealed ones lie in rows.
class Cache {
 public:
  static constexpr std::size_t head = 32;

  Cache(const Algorithm& algorithm, const Shape& shape)
      : algorithm_(algorithm),
        shape_(shape),
        blocks_(shape.count + 3),
        step_(shape.step != 0 ? shape.step : shape.pieces * (shape.len + 48)),
        gap_(shape.len + 48),
        text_len_(shape.pieces * shape.len),
        row_(head + text_len_ + 16),
        memory_(256 + shape.shift + step_ * blocks_),
        rows_(256 + shape.shift + row_ * shape.count),
        heads_(random_bytes(head * shape.count)),
        ivs_(random_bytes(12 * shape.count)) {
    for (std::size_t k = 0; k < shape.keys; ++k) keys_.push_back(&random_key(algorithm));
    for (std::size_t i = 0; i < shape.count; ++i) {
      aads_.push_back(random_bytes(random_below(70)));
      numbers_.push_back(blocks_ - 1 - i);
    }
    for (std::size_t p = 0; p < shape.pieces; ++p) {
      places_.push_back({memory_.data + shape.shift + p * gap_, static_cast<std::int64_t>(step_)});
    }
    for (std::size_t b = 0; b < blocks_; ++b) texts_.push_back(random_bytes(text_len_));
    for (std::size_t b = 0; b < blocks_; ++b) write_block(b, texts_[b]);
    must(cudaMemset(rows_.data, 0x5a, 256 + shape.shift + row_ * shape.count), "cudaMemset");
  }

  void repeat_a_block() { numbers_.back() = numbers_[0]; }

  // The texts are sealed where they should be, and nothing else is.
  bool seals(Stream stream) {
    run(Direction::encrypt, stream);
    const Bytes rows = read(rows_.data, 256 + shape_.shift + row_ * shape_.count);
    Bytes expected(rows.size(), 0x5a);
    for (std::size_t i = 0; i < shape_.count; ++i) {
      std::uint8_t* const row = expected.data() + shape_.shift + row_ * i;
      std::copy_n(heads_.begin() + static_cast<std::ptrdiff_t>(head * i), head, row);
      std::copy(texts_[numbers_[i]].begin(), texts_[numbers_[i]].end(), row + head);
      Message m = message(i, Direction::encrypt, expected.data() + shape_.shift);
      m.memory = Memory::host;
      Status status = Status::ok;
      oracle().run(make_plan({&m, 1}, oracle().tile_units()), {&status, 1}, nullptr);
    }
    return rows == expected && blocks_are_right() && heads_arrive(stream);
  }

  // After seals(): other blocks get the texts, but for those of forged rows.
  bool opens(Stream stream, const std::vector<std::size_t>& forged) {
    for (const std::size_t i : forged) {
      std::uint8_t* const at = rows_.data + shape_.shift + row_ * i + head + random_below(text_len_ + 16);
      Bytes byte = read(at, 1);
      byte[0] ^= 4;
      must(cudaMemcpy(at, byte.data(), 1, cudaMemcpyHostToDevice), "cudaMemcpy");
    }
    const std::vector<Bytes> before = texts_;
    for (std::size_t i = 0; i < shape_.count; ++i) {
      if (std::find(forged.begin(), forged.end(), i) == forged.end())
        texts_[shape_.count - 1 - i] = before[numbers_[i]];
    }
    for (std::size_t i = 0; i < shape_.count; ++i) numbers_[i] = shape_.count - 1 - i;
    const std::vector<std::uint32_t> verdicts = run(Direction::decrypt, stream);
    for (std::size_t i = 0; i < shape_.count; ++i) {
      const bool is_forged = std::find(forged.begin(), forged.end(), i) != forged.end();
      if (verdicts[i] != (is_forged ? 0u : 1u)) return false;
      if (is_forged && is_wiped(numbers_[i])) texts_[numbers_[i]].assign(text_len_, 0);
    }
    return blocks_are_right();
  }

 private:
  Message message(std::size_t i, Direction direction, std::uint8_t* rows) const {
    Message m;
    m.key = keys_[i % keys_.size()];
    m.direction = direction;
    m.memory = Memory::device;
    m.out = rows + row_ * i + head;
    m.in = m.out;
    m.in_len = m.out_len = text_len_;
    m.iv = ivs_.data() + 12 * i;
    m.iv_len = 12;
    m.aad = aads_[i].data();
    m.aad_len = aads_[i].size();
    m.tag = m.out + text_len_;
    m.tag_len = 16;
    return m;
  }

  // Verdicts, for decryption.
  std::vector<std::uint32_t> run(Direction direction, Stream stream) const {
    std::vector<Message> messages;
    for (std::size_t i = 0; i < shape_.count; ++i) {
      messages.push_back(message(i, direction, rows_.data + shape_.shift));
    }
    const DeviceBytes on_device(shape_.count * sizeof(std::uint32_t));
    auto* const verdicts = reinterpret_cast<std::uint32_t*>(on_device.data);
    Pieces pieces{places_, shape_.len, numbers_};
    if (direction == Direction::encrypt) pieces.heads = heads_;
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    run_pieces(messages, pieces, direction == Direction::encrypt ? nullptr : verdicts, stream);
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<std::uint32_t> found(direction == Direction::encrypt ? 0 : shape_.count);
    must(cudaMemcpy(found.data(), verdicts, found.size() * sizeof found[0], cudaMemcpyDeviceToHost), "cudaMemcpy");
    return found;
  }

  bool heads_arrive(Stream stream) const {
    DeviceEngine& engine = cuda_engine();
    auto* const host = static_cast<std::uint8_t*>(engine.allocate_pinned(heads_.size()));
    engine.copy_rows_to_host(host, rows_.data + shape_.shift, row_, head, shape_.count, stream);
    engine.wait(stream);
    const bool are_right = std::equal(heads_.begin(), heads_.end(), host);
    engine.free_pinned(host, heads_.size(), 0);
    return are_right;
  }

  static Bytes read(const std::uint8_t* device, std::size_t len) {
    Bytes bytes(len);
    must(cudaMemcpy(bytes.data(), device, len, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return bytes;
  }

  std::uint8_t* at(std::size_t block) const { return memory_.data + shape_.shift + step_ * block; }

  // A block as it lies, with what is between its pieces.
  Bytes image_of(const Bytes& text) const {
    Bytes image(gap_ * shape_.pieces, 0x33);
    for (std::size_t p = 0; p < shape_.pieces; ++p) {
      std::copy_n(text.begin() + static_cast<std::ptrdiff_t>(shape_.len * p), shape_.len,
                  image.begin() + static_cast<std::ptrdiff_t>(gap_ * p));
    }
    return image;
  }

  void write_block(std::size_t block, const Bytes& text) {
    const Bytes image = image_of(text);
    must(cudaMemcpy(at(block), image.data(), image.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }

  bool is_wiped(std::size_t block) const {
    const Bytes expected = image_of(Bytes(text_len_));
    return read(at(block), expected.size()) == expected;
  }

  bool blocks_are_right() const {
    for (std::size_t b = 0; b < blocks_; ++b) {
      const Bytes expected = image_of(texts_[b]);
      if (read(at(b), expected.size()) != expected) return false;
    }
    return true;
  }

  const Algorithm& algorithm_;
  const Shape shape_;
  const std::size_t blocks_, step_, gap_, text_len_, row_;
  DeviceBytes memory_, rows_;
  std::vector<const Key*> keys_;
  Bytes heads_, ivs_;
  std::vector<Bytes> aads_, texts_;
  std::vector<std::uint64_t> numbers_;
  std::vector<PiecePlace> places_;
};

bool test_shape(const Algorithm& algorithm, const Shape& shape, Stream stream) {
  force("counter", is_aes(algorithm.cipher.id) ? shape.counter : nullptr);
  force("ghash", is_aes(algorithm.cipher.id) ? shape.ghash : nullptr);
  bool good = true;
  {
    Cache repeated(algorithm, shape);
    repeated.repeat_a_block();
    good = repeated.seals(stream);
  }
  for (const bool forge : {false, true}) {
    Cache cache(algorithm, shape);
    std::vector<std::size_t> forged;
    if (forge) forged = {0, shape.count / 2};
    good = good && cache.seals(stream) && cache.opens(stream, forged);
  }
  force("counter", nullptr);
  force("ghash", nullptr);
  if (!good) std::printf("  DIFFERS: %s, %s\n", std::string(algorithm.name).c_str(), shape.text().c_str());
  return good;
}

bool is_refused(const Key& key, const Pieces& pieces, std::size_t in_len) {
  Message m;
  m.key = &key;
  m.memory = Memory::device;
  m.in_len = m.out_len = in_len;
  static constexpr std::uint8_t iv[12] = {};
  m.iv = iv;
  m.iv_len = sizeof iv;
  m.tag_len = 16;
  try {
    run_pieces({&m, 1}, pieces, nullptr, nullptr);
  } catch (const Error& error) {
    return error.status() == Status::invalid_argument;
  }
  return false;
}

}  // namespace

int test_pieces(const Algorithm& algorithm, const Options& options, Stream stream) {
  std::vector<Shape> shapes{
      {1, 1, 64},
      {3, 2, 192},
      {2, 3, 4096},
      {5, 4, 8192},
      {1, 7, 1024},
      {3, 2, 65536},
      {7, 3, 4160, 1, 16},
      {3, 4, 4096, 1, 4},
      {9, 2, 2048, 3},
      {9, 2, 2048, 6},
      {12, 12, 1024},
      {10, 12, 4096, 2},
      {3, 5, 1 << 14, 1, 0, 0, "hybrid"},
      {3, 3, 1088, 1, 0, 0, "packed"},
      {4, 3, 8256, 5, 0, 0, "tiles"},
      {1, 80, 8192, 1, 0, 0, nullptr, "scalar"},
  };
  if (!options.quick) {
    shapes.push_back({1, 80, 8192});
    shapes.push_back({300, 80, 8192});
    shapes.push_back({64, 32, 65536});
    shapes.push_back({200, 160, 4096, 9});
  }
  if (options.large) shapes.push_back({2, 3, 8192, 1, 0, (std::size_t{1} << 31) + 4096});
  int failures = 0;
  for (const Shape& shape : shapes) failures += test_shape(algorithm, shape, stream) ? 0 : 1;
  const Key& key = random_key(algorithm);
  const PiecePlace place{nullptr, 64};
  const std::uint64_t block = 0;
  failures += is_refused(key, {{&place, 1}, 96, {&block, 1}}, 96) ? 0 : 1;
  failures += is_refused(key, {{}, 64, {&block, 1}}, 0) ? 0 : 1;
  failures += is_refused(key, {{&place, 1}, 64, {&block, 1}}, 128) ? 0 : 1;
  failures += is_refused(key, {{&place, 1}, 64, {}}, 64) ? 0 : 1;
  failures += is_refused(random_key(find_algorithm("aes-128-ctr")), {{&place, 1}, 64, {&block, 1}}, 64) ? 0 : 1;
  std::printf("%-16s %zu shapes in pieces: %s\n", std::string(algorithm.name).c_str(), shapes.size(),
              failures == 0 ? "ok" : "FAILED");
  return failures;
}

}  // namespace conformance
