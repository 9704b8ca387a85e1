// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

#include <cstdint>
#include <cstdlib>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WARPCIPHER_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define WARPCIPHER_ADDRESS_SANITIZER
#endif

#if defined(WARPCIPHER_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulation {
namespace {

constexpr std::size_t stack_len = 64 * 1024;

Context* current = nullptr;

// Around each switch: before it, what stack comes next, and where to keep the present one's; after it, what came.
#if defined(WARPCIPHER_ADDRESS_SANITIZER)
void before_switch(void** keep, const void* stack, std::size_t len) {
  __sanitizer_start_switch_fiber(keep, stack, len);
}
void after_switch(void* kept, const void** left, std::size_t* left_len) {
  __sanitizer_finish_switch_fiber(kept, left, left_len);
}
#else
void before_switch(void**, const void*, std::size_t) {}
void after_switch(void*, const void**, std::size_t*) {}
#endif

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
  after_switch(nullptr, &self.scheduler_stack_, &self.scheduler_stack_len_);
  self.entry_();
  self.leave(true);
  std::abort();  // nobody resumes what has ended
}

void Context::resume() {
  current = this;
  void* kept = nullptr;
  before_switch(&kept, stack_.get(), stack_len);
#if defined(__x86_64__)
  warpcipher_switch_stack(&scheduler_, pointer_);
#else
  swapcontext(&scheduler_, &context_);
#endif
  after_switch(kept, nullptr, nullptr);
}

void Context::leave(bool for_good) {
  before_switch(for_good ? nullptr : &fake_stack_, scheduler_stack_, scheduler_stack_len_);
#if defined(__x86_64__)
  warpcipher_switch_stack(&pointer_, scheduler_);
#else
  swapcontext(&context_, &scheduler_);
#endif
  after_switch(fake_stack_, &scheduler_stack_, &scheduler_stack_len_);
}

}  // namespace emulation
