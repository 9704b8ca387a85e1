// SPDX-License-Identifier: Apache-2.0
// The context of a thread of the emulated GPU: a stack of its own, left and entered again by one switch. On x86-64 the
// switch is our own code: swapcontext makes two system calls for the signal mask and, under AddressSanitizer, forgets a
// whole stack each time. That took two thirds of the conformance test.
#pragma once

#include <cstddef>
#include <memory>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace emulation {

class Context {
 public:
  Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // The next resume() calls `entry` on this stack. Only for one that was never begun or has ended.
  void begin(void (*entry)());
  // Runs until pause() or the end of `entry`. Called by the scheduler, on the stack of its thread.
  void resume();
  // Back to the scheduler, until the next resume(). Called on this stack.
  void pause();

 private:
  static void run();

  std::unique_ptr<char[]> stack_;
  void (*entry_)() = nullptr;
#if defined(__x86_64__)
  void* pointer_ = nullptr;    // of the stack, where it left off
  void* scheduler_ = nullptr;  // likewise
#else
  ucontext_t context_{};
  ucontext_t scheduler_{};
#endif
};

}  // namespace emulation
