// SPDX-License-Identifier: Apache-2.0
// Letting go of the interpreter's lock (the GIL), and taking it back where the interpreter may be going.
//
// Before Python 3.14 a thread that takes the GIL while the interpreter finalizes, to return to Python code or in it, is
// ended by pthread_exit. That unwinds its stack by force, which lets go of Python objects without the GIL, and
// terminates the process at the first frame that is noexcept, as destructors and nanobind's calls are. Daemon threads
// meet this whenever they are in a call at exit. A `Shelter` stops that unwinding in the frame where it starts, and the
// thread sleeps until the process ends, as in Python 3.14. To ask first whether the interpreter finalizes would not
// do: it may begin to between the question and the taking.
#pragma once

#include <nanobind/nanobind.h>

#include <unistd.h>

#include <exception>
#include <type_traits>

namespace warpcipher::python {

[[noreturn]] inline void sleep_until_exit() noexcept {
  for (;;) pause();
}

// For a call in which the interpreter may end the thread. Frames between must hold nothing that needs the GIL to go. A
// forced unwinding is told from an exception by the count of exceptions in flight, which it does not add to. `catch`
// would not do: within the handler of an exception the C++ runtime terminates at a second one that is not its own.
class Shelter {
 public:
  Shelter() noexcept : exceptions_(std::uncaught_exceptions()) {}
  Shelter(const Shelter&) = delete;
  Shelter& operator=(const Shelter&) = delete;
  ~Shelter() {
    if (!left_ && std::uncaught_exceptions() == exceptions_) sleep_until_exit();
  }

  void leave() noexcept { left_ = true; }

 private:
  const int exceptions_;
  bool left_ = false;
};

// What `call` returns. For calls of Python functions: the GIL is held.
template <class Call>
auto sheltered(const Call& call) {
  Shelter shelter;
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
    shelter.leave();
  } else {
    auto result = call();
    shelter.leave();
    return result;
  }
}

// Without the GIL, which the thread must hold, until the end of the scope.
class GilReleased {
 public:
  GilReleased() noexcept : state_(PyEval_SaveThread()) {}
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;
  ~GilReleased() {
    sheltered([this] { PyEval_RestoreThread(state_); });
  }

 private:
  PyThreadState* const state_;
};

// With the GIL until the end of the scope, from any thread.
class GilHeld {
 public:
  GilHeld() noexcept : state_(sheltered(&take)) {}
  GilHeld(const GilHeld&) = delete;
  GilHeld& operator=(const GilHeld&) = delete;
  ~GilHeld() { PyGILState_Release(state_); }

 private:
  static PyGILState_STATE take() {
    // A thread that is not Python's needs the interpreter to become so.
    if (PyGILState_GetThisThreadState() == nullptr && Py_IsInitialized() == 0) sleep_until_exit();
    return PyGILState_Ensure();
  }

  const PyGILState_STATE state_;
};

}  // namespace warpcipher::python
