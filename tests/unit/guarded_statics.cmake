# SPDX-License-Identifier: Apache-2.0
# Fails when the library makes a static variable under the compiler's guard: what another thread makes so at a fork, the
# child waits for without end (src/core/fork.hpp has FirstUse instead).
# cmake -D NM=nm -D LIBRARY=libwarpcipher.so -P guarded_statics.cmake
execute_process(COMMAND "${NM}" --demangle "${LIBRARY}" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
if(NOT symbols MATCHES "warpcipher::fork_count")
  message(FATAL_ERROR "${LIBRARY} has no symbols of its own to look at")
endif()
string(REGEX MATCHALL "guard variable for [^\n]*warpcipher::[^\n]*" guards "${symbols}")
# nvcc writes one into each function that launches a kernel. The child of a fork launches none: CUDA cannot work there.
list(FILTER guards EXCLUDE REGEX "__device_stub__")
if(guards)
  list(JOIN guards "\n" lines)
  message(FATAL_ERROR "${LIBRARY} has\n${lines}")
endif()
