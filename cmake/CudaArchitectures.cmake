# SPDX-License-Identifier: Apache-2.0
# Turns WARPCIPHER_CUDA_ARCHITECTURES into WARPCIPHER_CUDA_CODE, the options of nvcc that warpcipher_compile_options gives
# to every target, and WARPCIPHER_LAB_CUDA_CODE, which holds less for other machines' GPUs.
#   all   what a release holds: machine code for sm_75 to sm_120, and PTX for GPUs to come
#   auto  the GPUs of this machine; without one, machine code for sm_90, and PTX for other GPUs from sm_80 on, which the
#         driver compiles when it is first used
#   ci    shows that the sources compile: every form of them, machine code for sm_90, which the tests read, and for the
#         oldest GPU of those with a form below 80. The assembler takes most of the time, and sees no source
#   list  as for CMAKE_CUDA_ARCHITECTURES
# nvcc's front end takes most of the time, so it runs once for all GPUs: machine code for each is made from PTX of the
# oldest (for sm_90 the same as from its own PTX). Only ghash/, chacha/ and bit_product.cu look at __CUDA_ARCH__ and
# have three forms, below 80, from 80 and from 100; for those it runs three times (WARPCIPHER_FORMS_CUDA_CODE).
# Kernels that need the feature set of one architecture (sm_90a) are in files named *_sm90a.cu, which the library
# warpcipher_sm_90a compiles only for it, in every build: code for sm_90a runs on nothing else.

set(all_code -gencode=arch=compute_75,code=[sm_75,sm_80,sm_86,sm_89,sm_90,sm_100,sm_120,compute_75])
set(all_forms_code -gencode=arch=compute_75,code=sm_75
                   -gencode=arch=compute_80,code=[sm_80,sm_86,sm_89,sm_90]
                   -gencode=arch=compute_100,code=[sm_100,sm_120,compute_100])
set(ci_code -gencode=arch=compute_75,code=[sm_90,compute_75])
set(ci_forms_code -gencode=arch=compute_75,code=sm_75
                  -gencode=arch=compute_80,code=sm_90
                  -gencode=arch=compute_100,code=compute_100)
set(default_code -gencode=arch=compute_80,code=[sm_90,compute_80])
# Of the lab: more would take minutes, for kernels that nobody runs but to see them.
set(lab_code -gencode=arch=compute_75,code=[sm_90,compute_75])

# Machine code for this machine's GPUs, or "" where nvidia-smi finds none.
function(warpcipher_local_code result)
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
  list(TRANSFORM capabilities REPLACE "([0-9]+)\\.([0-9]+)" "-gencode=arch=compute_\\1\\2,code=sm_\\1\\2")
  set(${result} "${capabilities}" PARENT_SCOPE)
endfunction()

set(CMAKE_CUDA_ARCHITECTURES OFF)
set(WARPCIPHER_LAB_CUDA_CODE ${lab_code})
if(WARPCIPHER_CUDA_ARCHITECTURES MATCHES "^(all|ci)$")
  set(WARPCIPHER_CUDA_CODE ${${WARPCIPHER_CUDA_ARCHITECTURES}_code})
elseif(WARPCIPHER_CUDA_ARCHITECTURES STREQUAL "auto")
  warpcipher_local_code(WARPCIPHER_CUDA_CODE)
  if(WARPCIPHER_CUDA_CODE)
    set(WARPCIPHER_LAB_CUDA_CODE ${WARPCIPHER_CUDA_CODE})
  else()
    set(WARPCIPHER_CUDA_CODE ${default_code})
  endif()
else()
  set(CMAKE_CUDA_ARCHITECTURES ${WARPCIPHER_CUDA_ARCHITECTURES})
  set(WARPCIPHER_CUDA_CODE "")
  set(WARPCIPHER_LAB_CUDA_CODE "")
endif()
set(WARPCIPHER_FORMS_CUDA_CODE ${WARPCIPHER_CUDA_CODE})
if(WARPCIPHER_CUDA_ARCHITECTURES MATCHES "^(all|ci)$")
  set(WARPCIPHER_FORMS_CUDA_CODE ${${WARPCIPHER_CUDA_ARCHITECTURES}_forms_code})
endif()

# Fail now rather than at the first kernel: this nvcc cannot make that code.
execute_process(
  COMMAND "${CMAKE_CUDA_COMPILER}" --list-gpu-code
  OUTPUT_VARIABLE supported
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "sm_[0-9]+" wanted "${WARPCIPHER_CUDA_CODE}")
foreach(architecture IN LISTS CMAKE_CUDA_ARCHITECTURES)
  if(architecture MATCHES "^([0-9]+)(-real|-virtual)?$")
    list(APPEND wanted sm_${CMAKE_MATCH_1})
  endif()
endforeach()
foreach(code IN LISTS wanted)
  if(NOT "${supported}" MATCHES "${code}\n")
    message(FATAL_ERROR "nvcc ${CMAKE_CUDA_COMPILER_VERSION} cannot compile for ${code}; "
                        "set WARPCIPHER_CUDA_ARCHITECTURES to a list that it can")
  endif()
endforeach()
list(JOIN wanted " " wanted)
message(STATUS "CUDA engine: nvcc ${CMAKE_CUDA_COMPILER_VERSION}, machine code for ${wanted}")

# Gives each CUDA source the code it is compiled to, and lets only the host's compiler take those without device code:
# no kernel in it, and no .cuh among its includes. nvcc would take three times as long for the same.
function(warpcipher_cuda_sources)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  foreach(source IN LISTS ARGN)
    set(todo "${source}")
    set(seen "")
    set(device_code OFF)
    while(todo AND NOT device_code)
      list(POP_FRONT todo file)
      list(APPEND seen "${file}")
      file(STRINGS "${file}" lines REGEX "__global__|^#include \"")
      if(lines MATCHES "__global__|\\.cuh\"")
        set(device_code ON)
      endif()
      string(REGEX MATCHALL "\"[^\"]+\"" headers "${lines}")
      foreach(header IN LISTS headers)
        string(REPLACE "\"" "" header "${PROJECT_SOURCE_DIR}/src/${header}")
        if(NOT header IN_LIST seen AND EXISTS "${header}")
          list(APPEND todo "${header}")
        endif()
      endforeach()
    endwhile()
    if(NOT device_code)
      set_source_files_properties("${source}" PROPERTIES LANGUAGE CXX)
      # It may get a kernel.
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
    elseif(source MATCHES "/(ghash|chacha)/|/bit_product[.]cu$")
      set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS "${WARPCIPHER_FORMS_CUDA_CODE}")
    else()
      set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS "${WARPCIPHER_CUDA_CODE}")
    endif()
  endforeach()
  # Elsewhere a comparison would be made once, for the oldest GPU.
  file(GLOB_RECURSE headers ${PROJECT_SOURCE_DIR}/src/*.cuh ${PROJECT_SOURCE_DIR}/src/*.hpp)
  foreach(file IN LISTS headers ARGN)
    file(STRINGS "${file}" lines REGEX "__CUDA_ARCH__ *[<>=]" LIMIT_COUNT 1)
    if(lines AND NOT file MATCHES "/(ghash|chacha)/|/bit_product[.]cu$")
      message(FATAL_ERROR "${file} compares __CUDA_ARCH__; only ghash/, chacha/ and bit_product.cu are compiled for "
                          "more than one (cmake/CudaArchitectures.cmake)")
    endif()
  endforeach()
endfunction()
