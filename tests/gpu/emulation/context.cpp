// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

#include <cstdint>
#include <cstdlib>

namespace emulation {
namespace {

constexpr std::size_t stack_len = 64 * 1024;

Context* current = nullptr;

}  // namespace

#if defined(__x86_64__)
// Saves what a function must keep (System V ABI) and the stack pointer in *rdi, then takes them from rsi.
extern "C" void warpcipher_switch_stack(void** from, void* to);
asm(R"(
  .text
  .type warpcipher_switch_stack, @function
warpcipher_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size warpcipher_switch_stack, .-warpcipher_switch_stack
)");
#endif

Context::Context() : stack_(std::make_unique<char[]>(stack_len)) {}

void Context::begin(void (*entry)()) {
  entry_ = entry;
#if defined(__x86_64__)
  // As if run() had been called: its return address, which stays unused, 8 below a multiple of 16.
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(stack_.get() + stack_len) / 16 * 16;
  auto** const top = reinterpret_cast<void**>(end);
  for (int i = 1; i <= 8; ++i) top[-i] = nullptr;
  top[-2] = reinterpret_cast<void*>(&Context::run);
  pointer_ = top - 8;
#else
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_.get();
  context_.uc_stack.ss_size = stack_len;
  makecontext(&context_, &Context::run, 0);
#endif
}

void Context::run() {
  Context& self = *current;
  self.entry_();
  self.pause();
  std::abort();  // nobody resumes what has ended
}

void Context::resume() {
  current = this;
#if defined(__x86_64__)
  warpcipher_switch_stack(&scheduler_, pointer_);
#else
  swapcontext(&scheduler_, &context_);
#endif
}

void Context::pause() {
#if defined(__x86_64__)
  warpcipher_switch_stack(&pointer_, scheduler_);
#else
  swapcontext(&context_, &scheduler_);
#endif
}

}  // namespace emulation
