// SPDX-License-Identifier: Apache-2.0
#include "columns.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "core/error.hpp"
#include "engine/cuda/engine.hpp"
#include "oracle.hpp"
#include "pipeline/columns.hpp"

namespace {

using namespace warpcipher;

std::mt19937_64 generator(23);

std::size_t random_below(std::size_t n) { return generator() % n; }

std::vector<std::uint8_t> random_bytes(std::size_t n) {
  std::vector<std::uint8_t> bytes(n);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(generator());
  return bytes;
}

void must(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw Error(Status::engine_failure, std::string(what) + ": " + cudaGetErrorString(error));
}

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

struct Shape {
  Direction direction = Direction::encrypt;
  std::size_t count = 0;
  std::size_t longest = 0;
  std::size_t keys = 1;
  bool key_bytes = false;  // rather than Key objects
  bool device_columns = false;
  bool offsets = false;  // with gaps, else back to back
  bool in_place = false;
  bool aad_ranges = false;
  std::size_t tag_len = 16;
  std::size_t shortest = 0;
  bool pads = false;
  bool one_length = false;

  std::string text() const {
    return std::string(direction == Direction::encrypt ? "encrypt " : "decrypt ") + std::to_string(count) + " from " +
           std::to_string(shortest) + " to " + std::to_string(longest) + " keys " + std::to_string(keys) +
           (key_bytes ? " as bytes" : "") + (device_columns ? " columns on the device" : "") +
           (offsets ? " offsets" : "") + (in_place ? " in place" : "") + (aad_ranges ? " aad ranges" : "") +
           (pads ? " padded" : "") + (one_length ? " one length" : "") + " tag " + std::to_string(tag_len);
  }
};

// A batch in host memory; run() puts it on the GPU.
class ColumnarBatch {
 public:
  ColumnarBatch(const Algorithm& algorithm, const Shape& shape) : algorithm_(algorithm), shape_(shape) {
    const bool aead = algorithm.is_aead();
    const std::size_t tag = aead ? shape.tag_len : 0;
    key_bytes = random_bytes(shape.keys * algorithm.key_len());
    for (std::size_t k = 0; k < shape.keys; ++k) {
      keys_.emplace_back(algorithm, std::span(key_bytes).subspan(k * algorithm.key_len(), algorithm.key_len()));
      pointers_.push_back(&keys_.back());
    }
    block_len_ = algorithm.block_len();
    iv_len = aead ? 12 : algorithm.mode.iv == IvRule::none ? 0 : block_len_;
    ivs = random_bytes(iv_len * shape.count);
    const bool encrypting = shape.direction == Direction::encrypt;
    const std::size_t unit = algorithm.mode.whole_blocks && !shape.pads ? block_len_ : 1;
    std::size_t in = 0, out = 0, aad_at = 0;
    for (std::size_t i = 0; i < shape.count; ++i) {
      const std::size_t any = shape.shortest + random_below(shape.longest - shape.shortest + 1);
      std::size_t text = (shape.one_length ? shape.longest : any) / unit * unit;
      if (algorithm.mode.id == Mode::xts) text = std::max<std::size_t>(text, 16);
      std::size_t padding = shape.pads ? block_len_ - text % block_len_ : 0;
      if (!encrypting) {  // there it is part of the text
        text += padding;
        padding = 0;
      }
      const std::size_t gap = shape.offsets ? (random_below(2) == 0 ? random_below(40) : 16 - in % 16) : 0;
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
        aad_lengths.push_back(random_below(40));
        aad_at += aad_lengths.back() / 2;
      }
    }
    text_ = random_bytes(in + 64);
    out_ = shape.in_place ? text_ : random_bytes(out + 64);
    if (aead) aad = random_bytes(shape.aad_ranges ? aad_at + 40 : 13);
    if (aead && !encrypting) seal();
    if (shape.pads && !encrypting) pad();
  }

  // What should come of it, by the oracle; the status of each message.
  std::vector<Result> expect(std::vector<std::uint8_t>& out) const {
    std::vector<std::uint8_t> text = text_;
    out = out_;
    std::vector<Result> results(shape_.count);
    for (std::size_t i = 0; i < shape_.count; ++i) {
      Message m = message(i, shape_.direction, text, shape_.in_place ? text : out);
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

  // Runs it; out gets the bytes of the output buffer, whatever happens.
  std::vector<Result> run(std::vector<std::uint8_t>& out, Stream stream) const {
    DeviceMemory memory;
    const std::span<std::uint8_t> text = memory.hold(text_);
    const std::span<std::uint8_t> target = shape_.in_place ? text : memory.hold(out_);
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

  const std::vector<std::uint8_t>& untouched() const { return out_; }

  std::vector<std::uint8_t> key_bytes, ivs, aad;
  std::vector<std::uint64_t> in_offsets, out_offsets, in_lengths, aad_offsets, aad_lengths;
  std::vector<std::uint32_t> key_index;
  std::size_t iv_len = 0;

 private:
  Message message(std::size_t i, Direction direction, std::vector<std::uint8_t>& text,
                  std::vector<std::uint8_t>& out) const {
    const std::size_t tag = algorithm_.is_aead() ? shape_.tag_len : 0;
    Message m;
    m.key = pointers_[key_index.empty() ? 0 : key_index[i]];
    m.direction = direction;
    m.in = text.data() + in_offsets[i];
    m.out = out.data() + out_offsets[i];
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

  // Tags that match, but for a few.
  void seal() {
    for (std::size_t i = 0; i < shape_.count; ++i) {
      Message m = message(i, Direction::encrypt, text_, text_);
      m.out = const_cast<std::uint8_t*>(m.in);
      Status status = Status::ok;
      oracle().run(make_plan({&m, 1}, oracle().tile_units()), {&status, 1}, nullptr);
      if (random_below(5) == 0) m.tag[random_below(m.tag_len)] ^= 1;
    }
    if (shape_.in_place) out_ = text_;
  }

  // Padding that is right, but for a few.
  void pad() {
    for (std::size_t i = 0; i < shape_.count; ++i) {
      Message m = message(i, Direction::encrypt, text_, text_);
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

  const Algorithm& algorithm_;
  const Shape shape_;
  std::size_t block_len_ = 0;
  std::vector<std::size_t> paddings_;  // of each message, 0: wrong
  std::deque<Key> keys_;
  std::vector<const Key*> pointers_;
  std::vector<std::uint8_t> text_, out_;
};

int test_shape(const Algorithm& algorithm, const Shape& shape, Stream stream) {
  const ColumnarBatch batch(algorithm, shape);
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

// Each change makes a right batch wrong: the GPU must see it, and the host say what it is.
int test_refusals(const Algorithm& algorithm, std::size_t longest, Stream stream) {
  struct Wrong {
    std::string text;
    void (*change)(ColumnarBatch&);
    bool in_place = false;
    bool padded = false;  // and decrypted
  };
  static constexpr std::size_t at = 33;
  std::vector<Wrong> all{
      {"message 33: key index", [](ColumnarBatch& b) { b.key_index[at] = 7; }},
      {"message 33: in range", [](ColumnarBatch& b) { b.in_offsets[at] = std::uint64_t{0} - 5; }},
      {"message 33: in range", [](ColumnarBatch& b) { b.in_lengths[at] = std::uint64_t{1} << 63; }},
      {"message 33: out range", [](ColumnarBatch& b) { b.out_offsets[at] = std::uint64_t{1} << 40; }},
      {"message 33 writes where message 32", [](ColumnarBatch& b) { b.out_offsets[at] = b.out_offsets[at - 1]; }},
      {"reads where message", [](ColumnarBatch& b) { b.in_offsets[at] = b.in_offsets[at + 3]; }, true},
      {"in and out overlap", [](ColumnarBatch& b) { b.in_offsets[at] += 1; }, true},
  };
  if (algorithm.mode.whole_blocks) {
    all.push_back({"message 33: " + std::string(algorithm.name) + " without padding takes a multiple",
                   [](ColumnarBatch& b) { b.in_lengths[at] = 17; }});
  }
  if (algorithm.takes_padding()) {
    all.push_back({"message 33: " + std::string(algorithm.name) + " with PKCS#7 padding decrypts at least",
                   [](ColumnarBatch& b) { b.in_lengths[at] = 0; }, false, true});
  }
  if (algorithm.mode.id == Mode::xts) {
    all.push_back({"takes a data unit of 16", [](ColumnarBatch& b) { b.in_lengths[at] = 15; }});
    all.push_back({"the two halves of the key are equal", [](ColumnarBatch& b) {
                     const std::size_t half = b.key_bytes.size() / 4;  // of two keys
                     std::copy_n(b.key_bytes.begin(), half, b.key_bytes.begin() + static_cast<std::ptrdiff_t>(half));
                   }});
  }
  if (algorithm.is_aead()) {
    all.push_back({"messages 3 and 33 encrypt", [](ColumnarBatch& b) {
                     b.key_index[at] = b.key_index[3];
                     std::copy_n(b.ivs.begin() + 12 * 3, 12, b.ivs.begin() + 12 * at);
                   }});
    all.push_back({"messages 3 and 33 encrypt", [](ColumnarBatch& b) {  // other keys by number, of the same bytes
                     b.key_index[3] = 0;
                     b.key_index[at] = 1;
                     std::copy_n(b.ivs.begin() + 12 * 3, 12, b.ivs.begin() + 12 * at);
                     std::copy_n(b.key_bytes.begin(), b.key_bytes.size() / 2,
                                 b.key_bytes.begin() + static_cast<std::ptrdiff_t>(b.key_bytes.size() / 2));
                   }});
    all.push_back({"message 33: aad range", [](ColumnarBatch& b) { b.aad_offsets[at] = 1 << 20; }});
  }
  int failures = 0;
  for (const Wrong& wrong : all) {
    for (const bool on_device : {false, true}) {
      Shape shape{wrong.padded ? Direction::decrypt : Direction::encrypt,
                  40,
                  longest,
                  2,
                  true,
                  on_device,
                  true,
                  wrong.in_place,
                  true};
      shape.shortest = longest > 100 ? longest - 100 : 16;
      shape.pads = wrong.padded;
      ColumnarBatch batch(algorithm, shape);
      wrong.change(batch);
      std::vector<std::uint8_t> got;
      std::string text = "nothing";
      try {
        batch.run(got, stream);
      } catch (const Error& error) {
        text = error.what();
      }
      if (text.find(wrong.text) != std::string::npos && got == batch.untouched()) continue;
      std::printf("  NOT REFUSED as '%s': %s%s\n", wrong.text.c_str(), text.c_str(),
                  got == batch.untouched() ? "" : ", and something was written");
      ++failures;
    }
  }
  return failures;
}

// Text that is started before the host knows the batch (engine/cuda/guess.hpp), where the guess is right and where not.
int test_guesses(const Algorithm& algorithm, Stream stream) {
  struct Case {
    const char* kernel;
    std::size_t shortest, longest;
  };
  int failures = 0;
  for (const Case& c : {Case{"packed", 320, 320}, {"packed", 0, 15000}, {"mixed", 8192, 8192}, {"mixed", 0, 9000}}) {
    setenv("WARPCIPHER_COUNTER", c.kernel, 1);
    for (const std::size_t keys : {1, 3}) {
      Shape shape;
      shape.count = 20;
      shape.shortest = c.shortest;
      shape.longest = c.longest;
      shape.keys = keys;
      shape.device_columns = keys == 3;
      shape.key_bytes = keys == 3;
      failures += test_shape(algorithm, shape, stream);
    }
    if (c.shortest != 0) failures += test_refusals(algorithm, c.longest, stream);
  }
  unsetenv("WARPCIPHER_COUNTER");
  return failures;
}

int test_algorithm(const Algorithm& algorithm, bool quick, Stream stream) {
  int failures = 0;
  std::size_t cases = 0;
  setenv("WARPCIPHER_COLUMNS", "device", 1);
  const bool counts = algorithm.mode.id == Mode::ctr || algorithm.is_aead();
  const std::size_t variants = !quick ? 48 : counts ? 8 : 4;
  const std::size_t lengths = algorithm.mode.id == Mode::cfb8 ? 3 : quick && !counts ? 6 : 9;
  for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
    for (std::size_t variant = 0; variant < variants; ++variant) {
      Shape shape;
      shape.direction = direction;
      // So many that serial modes take the kernel of many warps, on the emulated GPU and on a real one.
      const std::size_t many = algorithm.parallel(direction) ? 1100 : quick ? 1300 : 60000;
      const std::size_t longest = std::size_t{16} << random_below(lengths);
      shape.count = variant == 3 ? many : 1 + random_below(quick ? 90 : 3000);
      shape.longest = variant != 3 ? longest : algorithm.name == "aes-128-cbc" ? 160 : 20;
      shape.keys = variant % 2 == 0 ? 1 : 2 + random_below(40);
      shape.key_bytes = variant / 2 % 2 != 0;
      shape.device_columns = counts ? variant / 4 % 2 != 0 : random_below(2) == 0;
      shape.offsets = random_below(2) == 0;
      shape.in_place = random_below(3) == 0;
      shape.aad_ranges = random_below(2) == 0;
      shape.tag_len = std::size_t{12} + random_below(5);
      shape.pads = algorithm.takes_padding() && random_below(2) == 0;
      shape.one_length = random_below(4) == 0;
      failures += test_shape(algorithm, shape, stream);
      ++cases;
    }
    if (!counts || (quick && algorithm.key_len() != 32)) continue;
    // Long messages: chunks of GHASH in each of its forms, and on a large GPU rows of short ones.
    struct Long {
      std::size_t count, shortest, longest, keys;
    };
    std::vector<Long> all{{3, 8000, 30000, 1}, {2, 60000, 80000, 1}, {2, 60000, 80000, 2}, {400, 0, 60, 1}};
    if (!quick) all.insert(all.end(), {{1, 600000, 700000, 1}, {2, 400000, 600000, 2}, {18000, 0, 300, 1}});
    if (!quick && !algorithm.is_aead()) all.push_back({150000, 0, 20, 1});  // more sums than a warp adds up
    for (const Long& l : all) {
      Shape shape;
      shape.direction = direction;
      shape.count = l.count;
      shape.shortest = l.shortest;
      shape.longest = l.longest;
      shape.keys = l.keys;
      shape.offsets = random_below(2) == 0;
      shape.in_place = random_below(2) == 0;
      shape.aad_ranges = random_below(2) == 0;
      failures += test_shape(algorithm, shape, stream);
      ++cases;
    }
  }
  // Sectors of a disk: data units of whole rows of 32 blocks, one key, one behind the other; and those that are nearly
  // so.
  for (const std::size_t sector : {512, 1024, 1536, 3584, 4096, 528}) {
    if (algorithm.mode.id != Mode::xts) break;
    setenv("WARPCIPHER_BLOCKS", "mixed", 1);
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      Shape shape;
      shape.direction = direction;
      shape.count = 1 + random_below(quick ? 60 : 3000);
      shape.longest = sector;
      shape.one_length = true;
      shape.in_place = random_below(2) == 0;
      shape.device_columns = random_below(2) == 0;
      shape.offsets = sector == 512 && random_below(4) == 0;
      failures += test_shape(algorithm, shape, stream);
      ++cases;
    }
    unsetenv("WARPCIPHER_BLOCKS");
  }
  if (algorithm.takes_padding()) {  // as messages, whose padding is taken off the same way
    setenv("WARPCIPHER_COLUMNS", "host", 1);
    Shape shape{Direction::decrypt, 200, 70, 3};
    shape.pads = shape.offsets = true;
    failures += test_shape(algorithm, shape, stream);
    ++cases;
    setenv("WARPCIPHER_COLUMNS", "device", 1);
  }
  if (counts || algorithm.mode.id == Mode::cbc || algorithm.mode.id == Mode::xts)
    failures += test_refusals(algorithm, 100, stream);
  if (counts) failures += test_guesses(algorithm, stream);
  unsetenv("WARPCIPHER_COLUMNS");
  std::printf("%-16s %4zu columnar batches %s\n", std::string(algorithm.name).c_str(), cases,
              failures == 0 ? "ok" : "FAILED");
  std::fflush(stdout);
  return failures;
}

}  // namespace

int test_columns(bool quick, const std::string& only, const std::function<bool()>& is_mine, Stream stream) {
  int failures = 0;
  for (const char* name : {"aes-128-ctr", "aes-192-gcm", "aes-256-gcm", "aes-256-ecb", "aes-128-cbc", "aes-192-cfb",
                           "aes-256-ofb", "aes-128-cfb8", "aes-128-xts", "aes-256-xts", "des-ecb", "des-cfb",
                           "des-ede2-cbc", "des-ede3-cbc", "des-ede3-cfb8", "des-ede3-ofb"}) {
    if ((!only.empty() && only != name) || !is_mine()) continue;
    failures += test_algorithm(find_algorithm(name), quick, stream);
  }
  return failures;
}
