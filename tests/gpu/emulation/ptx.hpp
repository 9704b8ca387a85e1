// SPDX-License-Identifier: Apache-2.0
// Runs PTX on the host: those instructions that kernels written at run time use. The lanes of a warp run in step; lanes
// that branch forward wait at the label. It refuses unknown instructions, unset registers, accesses out of bounds, and
// votes and loops in which not all lanes take part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace emulation {

class PtxKernel {
 public:
  // Throws std::runtime_error with the line that it does not understand.
  explicit PtxKernel(const std::string& text);

  const std::string& name() const { return name_; }
  std::size_t parameter_len() const { return parameter_len_; }
  std::uint32_t threads() const { return threads_; }

  // Runs the blocks one after the other, the warps of a block in turns from barrier to barrier. Global addresses are
  // those of the host.
  void run(std::uint32_t blocks, std::uint32_t threads, std::size_t shared_len, const std::uint8_t* parameters) const;

 private:
  enum class Code : std::uint8_t {
    add,
    add64,
    and_,
    atom_add,
    bar,
    bfe,
    bfe_unsigned,
    bfind,
    branch,
    dp4a,
    ld_global,
    ld_local,
    ld_local2,
    ld_param,
    ld_param64,
    ld_shared,
    ld_shared2,
    ld_shared4,
    lop3,
    mad,
    mov,
    mul_wide,
    not_,
    or_,
    prmt,
    ret,
    selp,
    setp_eq,
    setp_ge,
    setp_lt,
    setp_ne,
    shl,
    shr,
    special,
    st_global4,
    st_local2,
    st_shared,
    sub,
    vote_any,
    xor_
  };
  struct Operand {
    bool immediate = false;
    std::uint32_t value = 0;  // or the register's number
  };
  struct Instruction {
    Code code = Code::ret;
    std::int32_t guard = -1;  // predicate
    bool negated = false;
    std::uint32_t to = 0;       // register, or instruction for a branch
    std::uint32_t also_to = 0;  // the second register of a load of two words
    Operand from[4];
    std::uint32_t extra = 0;  // offset or table
  };
  class Warp;

  // A word of global memory at an address of the host, touched here so that the address sanitizer looks at it.
  static std::uint32_t& global_word(std::uint64_t address);
  [[noreturn]] static void refuse(const std::string& what, const std::string& where);
  void parse_line(std::string line, std::map<std::string, std::uint32_t>& labels,
                  std::vector<std::pair<std::size_t, std::string>>& branches);
  std::uint32_t number_of(const std::string& name);
  Operand operand(const std::string& text);

  std::string name_;
  std::size_t parameter_len_ = 0;
  std::size_t local_len_ = 0;  // bytes of a thread
  std::uint32_t threads_ = 0;
  std::map<std::string, std::uint32_t> registers_;
  std::vector<Instruction> instructions_;
};

}  // namespace emulation
