// SPDX-License-Identifier: Apache-2.0
// warpcipher._native: the library for the Python package. Private to it; python/warpcipher is the public face.
#include <unistd.h>

#include <cstdlib>

#include "bind.hpp"
#include "errors.hpp"
#include "once.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

// Objects that live on at exit are often another library's doing: it keeps a user's object for good, or a daemon thread
// holds some. So users get no warning. The tests ask for it; there, a child of a fork and daemon threads are excused.
void choose_leak_warnings(pid_t imported_in) {
  if (std::getenv("WARPCIPHER_TEST_LEAKS") == nullptr || getpid() != imported_in) return nb::set_leak_warnings(false);
  const nb::object threads = nb::module_::import_("threading").attr("enumerate")();
  for (nb::handle thread : threads) {
    if (nb::cast<bool>(thread.attr("daemon"))) return nb::set_leak_warnings(false);
  }
}

}  // namespace
}  // namespace warpcipher::python

WARPCIPHER_MODULE(_native, m) {
  using namespace warpcipher::python;
  m.doc() = "The native part of warpcipher. Not a public interface.";
  m.attr("version") = WARPCIPHER_VERSION;
  register_errors();
  bind_errors(m);
  bind_signed(m);
  bind_status(m);
  bind_span(m);
  bind_device(m);
  bind_exchange(m);
  bind_lists(m);
  bind_cipher(m);
  bind_aead(m);
  bind_messages(m);
  bind_columns(m);
  bind_file(m);
  bind_kv(m);
  bind_sealing(m);
  bind_parquet(m);
  bind_pinned(m);
  bind_prg(m);
  bind_queue(m);
  bind_thrift(m);
  bind_tuning(m);
  bind_search(m);
  bind_random(m);
  bind_random_bits(m);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([pid = getpid()] { choose_leak_warnings(pid); }));
}
