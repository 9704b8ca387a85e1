# SPDX-License-Identifier: Apache-2.0
# Turns WARPCIPHER_CUDA_ARCHITECTURES into CMAKE_CUDA_ARCHITECTURES, the default of every target made after this.
#   all   what a release holds: machine code for each architecture, and PTX of the newest for GPUs to come
#   auto  the GPUs of this machine; where there are none, a short list that compiles fast: sm_80, sm_90 and PTX
# Kernels that need an architecture-specific feature set (sm_90a) belong in an object library of their own with its own
# CUDA_ARCHITECTURES, linked into warpcipher_core: code for sm_90a runs on nothing else.

set(all_architectures 75-real 80-real 86-real 89-real 90-real 100-real 120)

# The compute capabilities of this machine's GPUs as "90-real;...", or "" where nvidia-smi finds none.
function(warpcipher_local_architectures result)
  set(${result} "" PARENT_SCOPE)
  find_program(nvidia_smi nvidia-smi NO_CACHE)
  if(NOT nvidia_smi)
    return()
  endif()
  execute_process(
    COMMAND "${nvidia_smi}" --query-gpu=compute_cap --format=csv,noheader
    RESULT_VARIABLE status
    OUTPUT_VARIABLE output
    ERROR_QUIET)
  if(NOT status EQUAL 0)
    return()
  endif()
  string(REGEX MATCHALL "[0-9]+\\.[0-9]+" capabilities "${output}")
  list(REMOVE_DUPLICATES capabilities)
  list(TRANSFORM capabilities REPLACE "\\." "")
  list(TRANSFORM capabilities APPEND "-real")
  set(${result} "${capabilities}" PARENT_SCOPE)
endfunction()

if(WARPCIPHER_CUDA_ARCHITECTURES STREQUAL "all")
  set(CMAKE_CUDA_ARCHITECTURES ${all_architectures})
elseif(WARPCIPHER_CUDA_ARCHITECTURES STREQUAL "auto")
  warpcipher_local_architectures(CMAKE_CUDA_ARCHITECTURES)
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
else()
  set(CMAKE_CUDA_ARCHITECTURES ${WARPCIPHER_CUDA_ARCHITECTURES})
endif()

# Say now what the first kernel would say later: this nvcc cannot make that code.
execute_process(
  COMMAND "${CMAKE_CUDA_COMPILER}" --list-gpu-code
  OUTPUT_VARIABLE supported
  COMMAND_ERROR_IS_FATAL ANY)
foreach(architecture IN LISTS CMAKE_CUDA_ARCHITECTURES)
  string(REGEX REPLACE "-(real|virtual)$" "" number "${architecture}")
  if(NOT "${supported}" MATCHES "sm_${number}\n")
    message(FATAL_ERROR "nvcc ${CMAKE_CUDA_COMPILER_VERSION} cannot compile for sm_${number}; "
                        "set WARPCIPHER_CUDA_ARCHITECTURES to a list that it can")
  endif()
endforeach()
message(STATUS "CUDA engine: nvcc ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
