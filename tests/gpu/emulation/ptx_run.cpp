// SPDX-License-Identifier: Apache-2.0
// Runs a PTX kernel: warp by warp, instruction by instruction. It is built optimised and without sanitizers, as it
// takes the time of a test; what it does in global memory is in ptx.cpp, which has them.
#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "ptx.hpp"

namespace emulation {

namespace {

constexpr std::uint32_t warp_len = 32;

}  // namespace

// The lanes of a warp. A register holds 64 bits for each of them, whatever its type.
class PtxKernel::Warp {
 public:
  Warp(const PtxKernel& kernel, std::uint32_t first_thread, std::uint32_t block, std::vector<std::uint32_t>& shared,
       const std::uint8_t* parameters)
      : kernel_(kernel),
        first_thread_(first_thread),
        block_(block),
        shared_(shared),
        parameters_(parameters),
        words_(kernel.registers_.size() * warp_len),
        local_(kernel.local_len_ / 4 * warp_len),
        set_(kernel.registers_.size()) {}

  // Up to the next barrier; false at the kernel's end.
  bool run() {
    std::size_t& at = at_;
    while (true) {
      if (at >= kernel_.instructions_.size()) refuse("the kernel has no end", kernel_.name_);
      const Instruction& instruction = kernel_.instructions_[at];
      active_ = taking_part(instruction, at);
      if (instruction.code == Code::ret) {
        if (active_ != ~0u) refuse("not all lanes return together", kernel_.name_);
        return false;
      }
      if (instruction.code == Code::branch) {
        at = branch(instruction, at);
        continue;
      }
      execute(instruction);
      ++at;
      if (instruction.code == Code::bar) return true;
    }
  }

 private:
  // The lanes that do not wait at a label further down and whose guard is true.
  std::uint32_t taking_part(const Instruction& instruction, std::size_t at) {
    if (!any_waits_ && instruction.guard < 0) return ~0u;
    std::uint32_t lanes = 0;
    any_waits_ = false;
    for (std::uint32_t lane = 0; lane < warp_len; ++lane) {
      if (waits_for_[lane] > at) {
        any_waits_ = true;
        continue;
      }
      waits_for_[lane] = 0;
      if (instruction.guard < 0 ||
          (read(static_cast<std::uint32_t>(instruction.guard), lane) != 0) != instruction.negated) {
        lanes |= 1u << lane;
      }
    }
    return lanes;
  }

  std::size_t branch(const Instruction& instruction, std::size_t at) {
    if (active_ == ~0u) return instruction.to;
    if (active_ != 0 && instruction.to <= at) refuse("a loop that not all lanes take", kernel_.name_);
    for (std::uint32_t lane = 0; lane < warp_len; ++lane) {
      if ((active_ >> lane & 1u) != 0) waits_for_[lane] = instruction.to;
    }
    any_waits_ = true;
    return at + 1;
  }

  std::uint64_t read(std::uint32_t reg, std::uint32_t lane) const {
    if (set_[reg] == 0) refuse("a register is read before it is set", kernel_.name_);
    return words_[reg * warp_len + lane];
  }
  std::uint64_t get(const Operand& operand, std::uint32_t lane) const {
    return operand.immediate ? operand.value : read(operand.value, lane);
  }
  std::uint32_t get32(const Operand& operand, std::uint32_t lane) const {
    return static_cast<std::uint32_t>(get(operand, lane));
  }

  // For all active lanes.
  template <class Function>
  void each(std::uint32_t to, Function&& function) {
    for (std::uint32_t lane = 0; lane < warp_len; ++lane) {
      if ((active_ >> lane & 1u) != 0) words_[to * warp_len + lane] = function(lane);
    }
    set_[to] = 1;
  }

  // The result of 32-bit words, for all active lanes: loops that a compiler turns into vector instructions.
  template <std::size_t sources, class Function>
  void compute(const Instruction& i, Function function) {
    std::uint64_t immediates[sources][warp_len], results[warp_len];
    const std::uint64_t* from[sources];
    for (std::size_t k = 0; k < sources; ++k) from[k] = words_of(i.from[k], immediates[k]);
    for (std::uint32_t lane = 0; lane < warp_len; ++lane) {
      const auto word = [&](std::size_t k) { return static_cast<std::uint32_t>(from[k][lane]); };
      if constexpr (sources == 1) results[lane] = function(word(0));
      if constexpr (sources == 2) results[lane] = function(word(0), word(1));
      if constexpr (sources == 3) results[lane] = function(word(0), word(1), word(2));
    }
    if (active_ == ~0u) {
      std::memcpy(&words_[i.to * warp_len], results, sizeof results);
      set_[i.to] = 1;
    } else {
      each(i.to, [&](auto lane) { return results[lane]; });
    }
  }

  const std::uint64_t* words_of(const Operand& operand, std::uint64_t* immediate) const {
    if (!operand.immediate) {
      static_cast<void>(read(operand.value, 0));
      return &words_[operand.value * warp_len];
    }
    std::fill_n(immediate, warp_len, operand.value);
    return immediate;
  }

  std::uint32_t& shared_word(const Instruction& instruction, std::uint32_t lane) {
    const std::size_t place = get32(instruction.from[0], lane) + instruction.extra;
    if (place % 4 != 0 || place / 4 >= shared_.size()) refuse("shared memory out of bounds", kernel_.name_);
    return shared_[place / 4];
  }

  std::uint32_t& local_word(const Instruction& instruction, std::uint32_t lane, std::size_t word) {
    const std::size_t words = local_.size() / warp_len;
    const std::size_t place = get32(instruction.from[0], lane) + instruction.extra;
    if (place % 4 != 0 || place / 4 + word >= words) refuse("local memory out of bounds", kernel_.name_);
    return local_[lane * words + place / 4 + word];
  }

  // The terms of the table's ones, without a branch.
  static std::uint32_t lut3(unsigned table, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const auto one = [table](unsigned i) { return 0u - (table >> i & 1u); };
    const auto choose = [](std::uint32_t by, std::uint32_t zero, std::uint32_t other) {
      return zero ^ ((zero ^ other) & by);
    };
    return choose(a, choose(b, choose(c, one(0), one(1)), choose(c, one(2), one(3))),
                  choose(b, choose(c, one(4), one(5)), choose(c, one(6), one(7))));
  }

  void execute(const Instruction& i) {
    switch (i.code) {
      case Code::lop3:
        return compute<3>(i, [&](std::uint32_t a, std::uint32_t b, std::uint32_t c) { return lut3(i.extra, a, b, c); });
      case Code::mad: return compute<3>(i, [](std::uint32_t a, std::uint32_t b, std::uint32_t c) { return a * b + c; });
      case Code::xor_: return compute<2>(i, [](std::uint32_t a, std::uint32_t b) { return a ^ b; });
      case Code::and_: return compute<2>(i, [](std::uint32_t a, std::uint32_t b) { return a & b; });
      case Code::or_: return compute<2>(i, [](std::uint32_t a, std::uint32_t b) { return a | b; });
      case Code::shr: return compute<2>(i, [](std::uint32_t a, std::uint32_t b) { return b < 32 ? a >> b : 0; });
      case Code::shl: return compute<2>(i, [](std::uint32_t a, std::uint32_t b) { return b < 32 ? a << b : 0; });
      case Code::selp:
        return compute<3>(i, [](std::uint32_t a, std::uint32_t b, std::uint32_t c) { return c != 0 ? a : b; });
      case Code::bfind:
        return compute<1>(i, [](std::uint32_t a) { return static_cast<std::uint32_t>(std::bit_width(a)) - 1; });
      case Code::bar: return;
      case Code::not_: return compute<1>(i, [](std::uint32_t a) { return ~a; });
      case Code::add: return compute<2>(i, [](std::uint32_t a, std::uint32_t b) { return a + b; });
      case Code::add64: return each(i.to, [&](auto lane) { return get(i.from[0], lane) + get(i.from[1], lane); });
      case Code::mul_wide: return compute<2>(i, [](std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} * b; });
      case Code::bfe:
        if (!i.from[1].immediate || !i.from[2].immediate || i.from[2].value != 1) refuse("bfe", kernel_.name_);
        return compute<2>(i, [](std::uint32_t a, std::uint32_t b) { return 0u - (a >> b & 1u); });
      case Code::bfe_unsigned:
        if (!i.from[1].immediate || !i.from[2].immediate || i.from[2].value != 1) refuse("bfe", kernel_.name_);
        return compute<2>(i, [](std::uint32_t a, std::uint32_t b) { return a >> b & 1u; });
      case Code::mov: return compute<1>(i, [](std::uint32_t a) { return a; });
      case Code::special: return each(i.to, [&](auto lane) { return i.extra == 0 ? first_thread_ + lane : block_; });
      case Code::setp_eq: return compute<2>(i, [](std::uint32_t a, std::uint32_t b) { return std::uint64_t{a == b}; });
      case Code::setp_ge: return compute<2>(i, [](std::uint32_t a, std::uint32_t b) { return std::uint64_t{a >= b}; });
      case Code::setp_lt: return compute<2>(i, [](std::uint32_t a, std::uint32_t b) { return std::uint64_t{a < b}; });
      case Code::setp_ne: return compute<2>(i, [](std::uint32_t a, std::uint32_t b) { return std::uint64_t{a != b}; });
      case Code::vote_any: {
        if (active_ != ~0u) refuse("a vote that not all lanes take part in", kernel_.name_);
        std::uint64_t any = 0;
        for (std::uint32_t lane = 0; lane < warp_len; ++lane) any |= get(i.from[0], lane);
        return each(i.to, [&](auto) { return any; });
      }
      case Code::ld_param:
      case Code::ld_param64: {
        const std::size_t len = i.code == Code::ld_param ? 4 : 8;
        if (i.extra + len > kernel_.parameter_len_) refuse("a parameter out of bounds", kernel_.name_);
        std::uint64_t value = 0;
        std::memcpy(&value, parameters_ + i.extra, len);
        return each(i.to, [&](auto) { return value; });
      }
      case Code::dp4a:
        return compute<3>(i, [](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
          for (unsigned k = 0; k < 32; k += 8) c += (a >> k & 0xffu) * (b >> k & 0xffu);
          return c;
        });
      case Code::prmt:
        return compute<3>(i, [](std::uint32_t a, std::uint32_t b, std::uint32_t c) { return __byte_perm(a, b, c); });
      case Code::sub: return compute<2>(i, [](std::uint32_t a, std::uint32_t b) { return a - b; });
      case Code::ld_global: return each(i.to, [&](auto lane) { return global_word(get(i.from[0], lane) + i.extra); });
      case Code::ld_local: return each(i.to, [&](auto lane) { return local_word(i, lane, 0); });
      case Code::ld_local2:
        each(i.also_to, [&](auto lane) { return local_word(i, lane, 1); });
        return each(i.to, [&](auto lane) { return local_word(i, lane, 0); });
      case Code::st_local2:
        for (std::uint32_t lane = 0; lane < warp_len; ++lane) {
          if ((active_ >> lane & 1u) == 0) continue;
          local_word(i, lane, 0) = get32(i.from[1], lane);
          local_word(i, lane, 1) = get32(i.from[2], lane);
        }
        return;
      case Code::ld_shared: return each(i.to, [&](auto lane) { return shared_word(i, lane); });
      case Code::ld_shared2:
      case Code::ld_shared4: {
        const std::uint32_t words = i.code == Code::ld_shared2 ? 2 : 4;
        Instruction part = i;
        for (std::uint32_t k = 0; k < words; ++k, part.extra += 4) {
          each(k == 0 ? i.to : i.from[k].value, [&](auto lane) {
            if ((get32(i.from[0], lane) + i.extra) % (4 * words) != 0)
              refuse("shared memory out of line", kernel_.name_);
            return shared_word(part, lane);
          });
        }
        return;
      }
      case Code::st_shared:
        for (std::uint32_t lane = 0; lane < warp_len; ++lane) {
          if ((active_ >> lane & 1u) != 0) shared_word(i, lane) = get32(i.from[1], lane);
        }
        return;
      case Code::atom_add:
        return each(i.to, [&](auto lane) {
          std::uint32_t& word = global_word(get(i.from[0], lane) + i.extra);
          return std::exchange(word, word + get32(i.from[1], lane));
        });
      case Code::st_global4:
        for (std::uint32_t lane = 0; lane < warp_len; ++lane) {
          if ((active_ >> lane & 1u) == 0) continue;
          for (std::size_t k = 0; k < 4; ++k) {
            global_word(read(i.to, lane) + i.extra + 4 * k) = get32(i.from[k], lane);
          }
        }
        return;
      case Code::branch:
      case Code::ret: return;
    }
  }

  const PtxKernel& kernel_;
  const std::uint32_t first_thread_, block_;
  std::vector<std::uint32_t>& shared_;
  const std::uint8_t* const parameters_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> local_;  // lane by lane
  std::vector<char> set_;
  std::size_t waits_for_[warp_len] = {};
  bool any_waits_ = false;
  std::size_t at_ = 0;  // the next instruction
  std::uint32_t active_ = 0;
};

void PtxKernel::run(std::uint32_t blocks, std::uint32_t threads, std::size_t shared_len,
                    const std::uint8_t* parameters) const {
  if (threads != threads_ || threads % warp_len != 0) refuse("a launch of other threads than .maxntid", name_);
  for (std::uint32_t block = 0; block < blocks; ++block) {
    std::vector<std::uint32_t> shared(shared_len / 4, 0xa5a5a5a5u);
    std::vector<Warp> warps;
    for (std::uint32_t first = 0; first < threads; first += warp_len) {
      warps.emplace_back(*this, first, block, shared, parameters);
    }
    for (std::size_t left = warps.size(); left > 0;) {
      left = 0;
      for (Warp& warp : warps) left += warp.run() ? 1 : 0;
      if (left != 0 && left != warps.size()) refuse("a barrier that not all warps reach", name_);
    }
  }
}

}  // namespace emulation
