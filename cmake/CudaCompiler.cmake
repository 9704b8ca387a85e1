# SPDX-License-Identifier: Apache-2.0
# Finds nvcc and enables the CUDA language. In order: CMAKE_CUDA_COMPILER or CUDACXX, nvcc on PATH, CUDA_HOME or
# CUDA_PATH, /usr/local/cuda, the PyPI packages (nvidia-cuda-nvcc and its parts) of the Python in use.
# Sets WARPCIPHER_HAS_CUDA and defines warpcipher_cuda_runtime: headers and the static runtime. That runtime loads the
# driver when first called, so a program built here starts on a machine without one.

set(WARPCIPHER_HAS_CUDA OFF)
if(NOT WARPCIPHER_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "WARPCIPHER_CUDA is \"${WARPCIPHER_CUDA}\"; it can be AUTO, ON or OFF")
endif()
if(WARPCIPHER_CUDA STREQUAL "OFF")
  message(STATUS "CUDA engine: off (WARPCIPHER_CUDA=OFF)")
  return()
endif()

# The root of a toolkit that came from PyPI: site-packages/nvidia/cu13, with bin, include, lib and nvvm.
function(warpcipher_find_pypi_toolkit result)
  set(${result} "" PARENT_SCOPE)
  find_package(Python 3.10 QUIET COMPONENTS Interpreter)
  if(NOT Python_EXECUTABLE)
    return()
  endif()
  execute_process(
    COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/find_pypi_nvcc.py"
    OUTPUT_VARIABLE root
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(${result} "${root}" PARENT_SCOPE)
endfunction()

if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(
    WARPCIPHER_NVCC nvcc
    HINTS ENV PATH
    PATHS "$ENV{CUDA_HOME}/bin" "$ENV{CUDA_PATH}/bin" /usr/local/cuda/bin
    NO_DEFAULT_PATH)
  mark_as_advanced(WARPCIPHER_NVCC)
  if(WARPCIPHER_NVCC)
    set(CMAKE_CUDA_COMPILER "${WARPCIPHER_NVCC}")
  else()
    warpcipher_find_pypi_toolkit(pypi_toolkit)
    if(pypi_toolkit)
      set(CMAKE_CUDA_COMPILER "${pypi_toolkit}/bin/nvcc")
    endif()
  endif()
endif()

# Set before enable_language, or CMake fills it in; each target below gets its own list.
set(CMAKE_CUDA_ARCHITECTURES OFF)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(CMAKE_CUDA_COMPILER MATCHES "/cu13/bin/nvcc$")
  # nvcc.profile of the PyPI package names lib64; the libraries lie in lib.
  get_filename_component(pypi_toolkit "${CMAKE_CUDA_COMPILER}" DIRECTORY)
  get_filename_component(pypi_toolkit "${pypi_toolkit}" DIRECTORY)
  string(APPEND CMAKE_CUDA_FLAGS_INIT " -L${pypi_toolkit}/lib")
endif()

include(CheckLanguage)
if(CMAKE_CUDA_COMPILER)
  set(cuda_found ON)
else()
  check_language(CUDA)
  set(cuda_found "${CMAKE_CUDA_COMPILER}")
endif()
if(NOT cuda_found)
  if(WARPCIPHER_CUDA STREQUAL "ON")
    message(
      FATAL_ERROR
        "WARPCIPHER_CUDA=ON, but no nvcc was found: set CUDACXX or CUDA_HOME, or install the compiler from PyPI "
        "(docs/building.md lists the packages)")
  endif()
  message(STATUS "CUDA engine: off (no nvcc found)")
  return()
endif()

enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.0)
  message(FATAL_ERROR "nvcc ${CMAKE_CUDA_COMPILER_VERSION} at ${CMAKE_CUDA_COMPILER} cannot compile C++20; "
                      "12.0 or later is needed (13.0 is tested), or WARPCIPHER_CUDA=OFF")
endif()

# Not CMake's FindCUDAToolkit: it insists on libcudart.so, which the PyPI packages have under another name.
find_library(
  WARPCIPHER_CUDART_STATIC cudart_static
  HINTS ${CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES} "${pypi_toolkit}/lib" REQUIRED)
mark_as_advanced(WARPCIPHER_CUDART_STATIC)
add_library(warpcipher_cuda_runtime INTERFACE)
target_include_directories(warpcipher_cuda_runtime SYSTEM INTERFACE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
target_link_libraries(warpcipher_cuda_runtime INTERFACE "${WARPCIPHER_CUDART_STATIC}" Threads::Threads rt
                                                        ${CMAKE_DL_LIBS})
set(WARPCIPHER_HAS_CUDA ON)
