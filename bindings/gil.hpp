// SPDX-License-Identifier: Apache-2.0
// Releasing the interpreter's lock (the GIL), and taking it back while the interpreter may be finalizing.
//
// Before Python 3.14 a thread that takes the GIL while the interpreter finalizes, to return to Python code or in it, is
// ended by pthread_exit. That unwinds its stack by force: it releases Python objects without the GIL, and terminates
// the process at the first noexcept frame, such as a destructor or a call of nanobind. This happens to daemon threads
// that are in a call at exit. A `Shelter` stops that unwinding in the frame where it starts, and the thread sleeps
// until the process ends, as in Python 3.14. Asking first whether the interpreter finalizes is not enough: it may begin
// to do so between the question and the taking.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <type_traits>

namespace warpcipher::python {

[[noreturn]] inline void sleep_until_exit() noexcept {
  for (;;) pause();
}

// For a call in which the interpreter may end the thread. Frames in between must hold nothing whose release needs the
// GIL. A forced unwinding differs from an exception in that it does not increase the count of exceptions in flight.
// `catch` does not work: in the handler of an exception, the C++ runtime terminates at a second, foreign one.
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

// Returns the result of `call`. For calls of Python functions: the GIL is held.
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
    // A thread that Python does not know can take the GIL only while the interpreter exists.
    if (PyGILState_GetThisThreadState() == nullptr && Py_IsInitialized() == 0) sleep_until_exit();
    return PyGILState_Ensure();
  }

  const PyGILState_STATE state_;
};

}  // namespace warpcipher::python
