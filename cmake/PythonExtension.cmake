# SPDX-License-Identifier: Apache-2.0
# warpcipher._native, with its type stub. It holds the library's objects, so the package needs no other shared library.
# The target warpcipher_python is all that a wheel needs.

find_package(
  Python 3.10 REQUIRED
  COMPONENTS Interpreter Development.Module
  OPTIONAL_COMPONENTS Development.SABIModule)
if(NOT nanobind_DIR)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
    OUTPUT_VARIABLE nanobind_DIR
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
find_package(nanobind CONFIG REQUIRED)

file(GLOB binding_sources CONFIGURE_DEPENDS bindings/*.cpp)
# NOMINSIZE: -Os would cost the small-message path more than the kilobytes are worth. STABLE_ABI takes effect from
# Python 3.12 on: one wheel for that and every later version.
nanobind_add_module(_native STABLE_ABI NB_STATIC NOMINSIZE NB_SUPPRESS_WARNINGS ${binding_sources})
warpcipher_compile_options(_native)
target_precompile_headers(_native PRIVATE <nanobind/nanobind.h> "${PROJECT_SOURCE_DIR}/cmake/precompiled.hpp")
target_link_libraries(_native PRIVATE warpcipher_core)
target_link_options(_native PRIVATE "-Wl,--exclude-libs,ALL")

# nanobind's library in one piece, as its own nb_combined.cpp has it: a third of the time.
get_target_property(linked _native LINK_LIBRARIES)
foreach(library IN LISTS linked)
  if(library MATCHES "^nanobind" AND TARGET ${library})
    set_target_properties(${library} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  endif()
endforeach()

# The stub of an extension, and the place of both in the wheel of a package: the target that all of it needs is
# `package`. The Python that is at hand makes the stub by importing the extension; one for another processor is not
# imported, and has the same types.
set(WARPCIPHER_STUBS "" CACHE PATH "Cross-compiling: the folder of another build, with its stubs")
function(warpcipher_install_extension target package folder)
  set(stub "${CMAKE_CURRENT_BINARY_DIR}/_native.pyi")
  if(CMAKE_CROSSCOMPILING)
    file(RELATIVE_PATH place "${PROJECT_BINARY_DIR}" "${stub}")
    set(stub "${WARPCIPHER_STUBS}/${place}")
    if(NOT EXISTS "${stub}")
      message(FATAL_ERROR "cross-compiling needs ${place} of another build: set WARPCIPHER_STUBS to its folder")
    endif()
  else()
    nanobind_add_stub(
      ${target}_stub
      MODULE _native
      OUTPUT "${stub}"
      PYTHON_PATH $<TARGET_FILE_DIR:${target}>
      DEPENDS ${target})
    add_dependencies(${package} ${target}_stub)
  endif()
  add_dependencies(${package} ${target})
  install(TARGETS ${target} LIBRARY DESTINATION ${folder} COMPONENT ${package})
  install(FILES "${stub}" DESTINATION ${folder} COMPONENT ${package})
endfunction()

add_custom_target(warpcipher_python)
warpcipher_install_extension(_native warpcipher_python warpcipher)

# Files beside the program: pip puts them below the environment's share/.
if(SKBUILD_DATA_DIR)
  set(share "${SKBUILD_DATA_DIR}/share")
  install(FILES share/warpcipher.1 DESTINATION "${share}/man/man1" COMPONENT warpcipher_python)
  install(FILES share/completions/warpcipher.bash DESTINATION "${share}/bash-completion/completions" RENAME warpcipher COMPONENT warpcipher_python)
  install(FILES share/completions/_warpcipher DESTINATION "${share}/zsh/site-functions" COMPONENT warpcipher_python)
  install(FILES share/completions/warpcipher.fish DESTINATION "${share}/fish/vendor_completions.d" COMPONENT warpcipher_python)
endif()
