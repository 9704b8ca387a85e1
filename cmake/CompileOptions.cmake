# SPDX-License-Identifier: Apache-2.0
# Warnings, visibility and sanitizers, the same for every target of the project.

set(WARPCIPHER_HOST_WARNINGS -Wall -Wextra -Wconversion -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12
   AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 reports std::string's own operator+ (GCC bug 105651).
  list(APPEND WARPCIPHER_HOST_WARNINGS -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 to 14 see overflows in std::vector's own code that are not there (GCC bug 107852): no reason to stop.
  list(APPEND WARPCIPHER_HOST_WARNINGS -Wno-error=stringop-overflow -Wno-error=array-bounds)
endif()

if(WARPCIPHER_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(WARPCIPHER_SANITIZE)
  # For the whole build. Without `enum`: a C caller may pass any number for an enumeration, and the C ABI looks. Without
  # `null`, `object-size` and `pointer-overflow`: AddressSanitizer stops at the same accesses, and each costs code at every one.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=enum,null,object-size,pointer-overflow
                      -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

# An argument after the target is nvcc's list of architectures, in place of WARPCIPHER_CUDA_CODE; "" where its sources say.
function(warpcipher_compile_options target)
  set(cuda_code "${WARPCIPHER_CUDA_CODE}")
  if(ARGC GREATER 1)
    set(cuda_code "${ARGV1}")
  endif()
  set_target_properties(
    ${target} PROPERTIES C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
                         VISIBILITY_INLINES_HIDDEN ON)
  # nvcc writes its own line markers and declarations into the host compiler's input: -Wpedantic and -Wconversion
  # would report those, so .cu files get the rest. Headers shared with .cpp files are checked there.
  target_compile_options(
    ${target}
    PRIVATE "$<$<COMPILE_LANGUAGE:C,CXX>:${WARPCIPHER_HOST_WARNINGS};-Wpedantic>"
            "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wshadow;--expt-relaxed-constexpr;${cuda_code}>")
endfunction()

# A file for one instruction set has its name, as src/instruction_sets/avx2.cpp has, or ends with it; core/processor.hpp
# says which processors have what. The rest runs on any processor, and chooses at run time. To be called in each
# directory that compiles the files: properties of sources hold in one. Headers precompiled without those instructions
# are none for them.
set(instruction_sets baseline avx2 avx512 aesni vaes vaes512)
# Random numbers are the same on every processor: no compiler may join a multiplication and an addition. Without errno
# and traps, which nobody reads, their loops become vectors.
set(options_of_all -ffp-contract=off -fno-math-errno -fno-trapping-math)
if(WARPCIPHER_SANITIZE AND NOT WARPCIPHER_SANITIZE STREQUAL "thread")
  # A vector is a value that nobody points to; marking the scope of each takes a third of the compiler's time, and more
  # where vectors are made of arrays.
  list(APPEND options_of_all -fno-sanitize-address-use-after-scope)
endif()
set(options_of_baseline)
set(options_of_avx2 -mavx2 -mfma -mbmi2)
set(options_of_avx512 -mavx512f -mavx512bw -mbmi2)
set(options_of_aesni -mavx -maes -mpclmul)
set(options_of_vaes -mavx2 -maes -mpclmul -mvaes -mvpclmulqdq)
set(options_of_vaes512 -mavx512f -mavx512bw -maes -mpclmul -mvaes -mvpclmulqdq)
function(warpcipher_instruction_sets)
  foreach(source IN LISTS ARGN)
    foreach(set IN LISTS instruction_sets)
      if(source MATCHES "[/_]${set}\\.cpp$")
        set(options ${options_of_all})
        if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
          list(APPEND options ${options_of_${set}})
        endif()
        set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS "${options}" SKIP_PRECOMPILE_HEADERS ON)
      endif()
    endforeach()
  endforeach()
endfunction()
