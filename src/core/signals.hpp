// SPDX-License-Identifier: Apache-2.0
// Signals stay with the application's own threads.
#pragma once

#include <csignal>

namespace warpcipher {

// While it lives, its thread takes no signal. Threads that it starts meanwhile never take one.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace warpcipher
