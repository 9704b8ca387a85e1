// SPDX-License-Identifier: Apache-2.0
#include "columnar_batch.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <span>

#include "dispatch/run.hpp"
#include "oracle.hpp"

using namespace warpcipher;
using conformance::generator;
using conformance::must;
using conformance::random_bytes;

namespace {

struct Free {
  void operator()(void* memory) const { cudaFree(memory); }
};

// Device memory for the length of a test.
class DeviceMemory {
 public:
  template <class T>
  std::span<T> hold(const std::vector<T>& host) {
    if (host.empty()) return {};
    void* memory = nullptr;
    must(cudaMalloc(&memory, host.size() * sizeof(T)), "cudaMalloc");
    held_.emplace_back(memory);
    must(cudaMemcpy(memory, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return {static_cast<T*>(memory), host.size()};
  }

 private:
  std::vector<std::unique_ptr<void, Free>> held_;
};

template <class T>
std::vector<T> fetch(std::span<T> device) {
  std::vector<T> host(device.size());
  if (!host.empty())
    must(cudaMemcpy(host.data(), device.data(), device.size_bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy");
  return host;
}

}  // namespace

std::string Shape::text() const {
  return std::string(direction == Direction::encrypt ? "encrypt " : "decrypt ") + std::to_string(count) + " from " +
         std::to_string(shortest) + " to " + std::to_string(longest) + " keys " + std::to_string(keys) +
         (key_bytes ? " as bytes" : "") + (device_columns ? " columns on the device" : "") +
         (offsets ? " offsets" : "") + (in_place ? " in place" : "") + (aad_ranges ? " aad ranges" : "") +
         (pads ? " padded" : "") + (one_length ? " one length" : "") + (gaps ? "" : " no gaps") +
         (messages ? " as messages" : "") +
         (every_other != 0 ? " every other at most " + std::to_string(every_other) : "") + " tag " +
         std::to_string(tag_len) + " slack " + std::to_string(slack);
}

ColumnarBatch::ColumnarBatch(const Algorithm& algorithm, const Shape& shape) : algorithm_(algorithm), shape_(shape) {
  const bool aead = algorithm.is_aead();
  const std::size_t tag = aead ? shape.tag_len : 0;
  key_bytes = random_bytes(shape.keys * algorithm.key_len());
  for (std::size_t k = 0; k < shape.keys; ++k) {
    keys_.emplace_back(algorithm, std::span(key_bytes).subspan(k * algorithm.key_len(), algorithm.key_len()));
    pointers_.push_back(&keys_.back());
  }
  block_len_ = algorithm.block_len();
  iv_len = algorithm.iv_len;
  ivs = random_bytes(iv_len * shape.count);
  if (algorithm.mode.id == Mode::stream) {
    for (std::size_t i = 0; i < shape.count; ++i) ivs[iv_len * i + 3] &= 0x7f;  // counters with blocks left
  }
  const bool encrypting = shape.direction == Direction::encrypt;
  const std::size_t unit = algorithm.mode.whole_blocks && !shape.pads ? block_len_ : 1;
  std::size_t in = 0, out = 0, aad_at = 0;
  for (std::size_t i = 0; i < shape.count; ++i) {
    const std::size_t any = shape.shortest + random_below(shape.longest - shape.shortest + 1);
    std::size_t text = (shape.one_length ? shape.longest : any) / unit * unit;
    if (shape.every_other != 0 && i % 2 == 0) text = random_below(shape.every_other + 1) / unit * unit;
    if (algorithm.mode.id == Mode::xts) text = std::max<std::size_t>(text, 16);
    std::size_t padding = shape.pads ? block_len_ - text % block_len_ : 0;
    if (!encrypting) {  // there it is part of the text
      text += padding;
      padding = 0;
    }
    const std::size_t gap = shape.offsets && shape.gaps ? (random_below(2) == 0 ? random_below(40) : 16 - in % 16) : 0;
    const std::size_t in_len = text + (encrypting ? 0 : tag);
    const std::size_t out_len = text + padding + (encrypting ? tag : 0);
    in += gap;
    out = shape.in_place ? in : out + gap;
    in_offsets.push_back(in);
    out_offsets.push_back(out);
    in_lengths.push_back(in_len);
    in += shape.in_place ? text + padding + tag : in_len;
    out += shape.in_place ? text + padding + tag : out_len;
    if (shape.keys > 1) key_index.push_back(static_cast<std::uint32_t>(random_below(shape.keys)));
    if (aead && shape.aad_ranges) {
      aad_offsets.push_back(aad_at);
      aad_lengths.push_back(random_below(random_below(8) == 0 ? 300 : 40));
      aad_at += aad_lengths.back() / 2;
    }
  }
  text_ = random_bytes(in + shape.slack);
  out_ = shape.in_place ? text_ : random_bytes(out + shape.slack);
  if (aead) aad = random_bytes(shape.aad_ranges ? aad_at + 300 : 13);
  if (aead && !encrypting) seal();
  if (shape.pads && !encrypting) pad();
}

std::vector<Result> ColumnarBatch::expect(std::vector<std::uint8_t>& out) const {
  std::vector<std::uint8_t> text = text_;
  out = out_;
  std::vector<Result> results(shape_.count);
  for (std::size_t i = 0; i < shape_.count; ++i) {
    Message m = message(i, shape_.direction, text.data(), shape_.in_place ? text.data() : out.data());
    Status status = Status::ok;
    oracle().run(make_plan({&m, 1}, oracle().tile_units()), {&status, 1}, nullptr);
    const std::size_t added = shape_.direction == Direction::encrypt ? m.tag_len : 0;
    results[i] = status == Status::ok ? Result{status, m.output_len() + added} : Result{status, 0};
    if (paddings_.empty()) continue;
    results[i] = paddings_[i] == 0 ? Result{Status::invalid_padding, 0} : Result{status, m.in_len - paddings_[i]};
    if (paddings_[i] == 0) std::fill_n(m.out, m.in_len, std::uint8_t{0});
  }
  if (shape_.in_place) out = text;
  return results;
}

std::vector<Result> ColumnarBatch::run_messages(std::uint8_t* text, std::uint8_t* out, Stream stream) const {
  std::vector<std::size_t> order(shape_.count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (random_below(2) == 0) std::shuffle(order.begin(), order.end(), generator);
  std::vector<Message> messages;
  for (const std::size_t i : order) {
    Message& m = messages.emplace_back(message(i, shape_.direction, text, out));
    m.memory = Memory::device;
    m.padding = shape_.pads ? Padding::pkcs7 : Padding::none;
  }
  std::vector<Result> rows(shape_.count, Result{Status::engine_failure, 77}), results(shape_.count);
  warpcipher::run("cuda", messages, rows, stream);
  for (std::size_t k = 0; k < order.size(); ++k) {
    results[order[k]] = rows[k];
    const bool is_sealed = rows[k].status == Status::ok && shape_.direction == Direction::encrypt;
    if (is_sealed) results[order[k]].written += messages[k].tag_len;  // as columns count
  }
  return results;
}

std::vector<Result> ColumnarBatch::run(std::vector<std::uint8_t>& out, Stream stream) const {
  DeviceMemory memory;
  const std::span<std::uint8_t> text = memory.hold(text_);
  const std::span<std::uint8_t> target = shape_.in_place ? text : memory.hold(out_);
  if (shape_.messages) {
    const std::vector<Result> results = run_messages(text.data(), target.data(), stream);
    must(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "cudaStreamSynchronize");
    out = fetch(target);
    return results;
  }
  Columns c;
  c.direction = shape_.direction;
  c.memory = Memory::device;
  c.count = shape_.count;
  c.in = text;
  c.out = target;
  c.iv_len = iv_len;
  c.padding = shape_.pads ? Padding::pkcs7 : Padding::none;
  c.tag_len = algorithm_.is_aead() ? shape_.tag_len : 0;
  const auto place = [&](const auto& column) -> std::span<const typename std::decay_t<decltype(column)>::value_type> {
    if (shape_.device_columns) return memory.hold(column);
    return column;
  };
  if (shape_.key_bytes) {
    c.algorithm = &algorithm_;
    c.key_bytes = place(key_bytes);
  } else {
    c.keys = pointers_;
  }
  c.key_index = place(key_index);
  c.in_lengths = place(in_lengths);
  if (shape_.offsets || shape_.in_place) {
    c.in_offsets = place(in_offsets);
    c.out_offsets = place(out_offsets);
  }
  c.ivs = place(ivs);
  c.aad = place(aad);
  c.aad_offsets = place(aad_offsets);
  c.aad_lengths = place(aad_lengths);
  std::vector<Result> results(shape_.count, Result{Status::engine_failure, 77});
  std::span<Result> outcome = results;
  if (shape_.device_columns) {
    c.columns_memory = Memory::device;
    outcome = memory.hold(results);
  }
  const auto finish = [&] {
    must(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "cudaStreamSynchronize");
    out = fetch(target);
  };
  try {
    run_columns("cuda", c, outcome, stream);
  } catch (const Error&) {
    finish();
    throw;
  }
  finish();
  return shape_.device_columns ? fetch(outcome) : results;
}

Message ColumnarBatch::message(std::size_t i, Direction direction, std::uint8_t* text, std::uint8_t* out) const {
  const std::size_t tag = algorithm_.is_aead() ? shape_.tag_len : 0;
  Message m;
  m.key = pointers_[key_index.empty() ? 0 : key_index[i]];
  m.direction = direction;
  m.in = text + in_offsets[i];
  m.out = out + out_offsets[i];
  m.padding = shape_.pads && shape_.direction == Direction::encrypt ? Padding::pkcs7 : Padding::none;
  m.in_len = in_lengths[i] - (shape_.direction == Direction::decrypt ? tag : 0);
  m.out_len = m.output_len();
  m.iv = iv_len == 0 ? nullptr : ivs.data() + iv_len * i;
  m.iv_len = iv_len;
  m.aad = aad.data() + (aad_offsets.empty() ? 0 : aad_offsets[i]);
  m.aad_len = aad_offsets.empty() ? aad.size() : aad_lengths[i];
  m.tag_len = tag;
  if (tag != 0) {
    m.tag = shape_.direction == Direction::encrypt ? m.out + m.in_len : const_cast<std::uint8_t*>(m.in) + m.in_len;
  }
  return m;
}

void ColumnarBatch::seal() {
  for (std::size_t i = 0; i < shape_.count; ++i) {
    Message m = message(i, Direction::encrypt, text_.data(), text_.data());
    m.out = const_cast<std::uint8_t*>(m.in);
    Status status = Status::ok;
    oracle().run(make_plan({&m, 1}, oracle().tile_units()), {&status, 1}, nullptr);
    if (random_below(5) == 0) m.tag[random_below(m.tag_len)] ^= 1;
  }
  if (shape_.in_place) out_ = text_;
}

void ColumnarBatch::pad() {
  for (std::size_t i = 0; i < shape_.count; ++i) {
    Message m = message(i, Direction::encrypt, text_.data(), text_.data());
    m.out = const_cast<std::uint8_t*>(m.in);
    const auto n = static_cast<std::uint8_t>(1 + random_below(block_len_));
    std::uint8_t* const end = m.out + m.in_len;
    std::fill(end - n, end, n);
    paddings_.push_back(n);
    if (random_below(4) == 0) {
      const std::size_t at = 1 + random_below(n);  // from the end; the last byte is the length
      end[-static_cast<std::ptrdiff_t>(at)] = static_cast<std::uint8_t>(at > 1                 ? n ^ 1
                                                                        : random_below(2) == 0 ? 0
                                                                                               : block_len_ + 1);
      paddings_.back() = 0;
    }
    Status status = Status::ok;
    oracle().run(make_plan({&m, 1}, oracle().tile_units()), {&status, 1}, nullptr);
  }
  if (shape_.in_place) out_ = text_;
}

int test_batch(const ColumnarBatch& batch, const Algorithm& algorithm, const Shape& shape, Stream stream) {
  std::vector<std::uint8_t> expected, got;
  const std::vector<Result> results = batch.expect(expected);
  const std::vector<Result> outcome = batch.run(got, stream);
  int failures = expected == got ? 0 : 1;
  for (std::size_t i = 0; i < shape.count; ++i) {
    failures += results[i].status == outcome[i].status && results[i].written == outcome[i].written ? 0 : 1;
  }
  if (failures != 0) std::printf("  DIFFERS %s %s\n", std::string(algorithm.name).c_str(), shape.text().c_str());
  return failures;
}

int test_shape(const Algorithm& algorithm, const Shape& shape, Stream stream) {
  return test_batch(ColumnarBatch(algorithm, shape), algorithm, shape, stream);
}

int test_refusal(const ColumnarBatch& batch, const std::string& expected, Stream stream) {
  std::vector<std::uint8_t> got;
  std::string text = "nothing";
  try {
    batch.run(got, stream);
  } catch (const Error& error) {
    text = error.what();
  }
  if (text.find(expected) != std::string::npos && got == batch.untouched()) return 0;
  std::printf("  NOT REFUSED as '%s': %s%s\n", expected.c_str(), text.c_str(),
              got == batch.untouched() ? "" : ", and something was written");
  return 1;
}
