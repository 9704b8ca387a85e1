# SPDX-License-Identifier: Apache-2.0
# warpcipher_lab: the papers' variants, on nothing of src/ but headers and what throws CUDA's errors. A build
# without CUDA compiles the same files as C++ and leaves their kernels out. Nothing but the Python extension _lab and
# the tests links it.

file(GLOB lab_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/measure/lab/*.cpp ${PROJECT_SOURCE_DIR}/measure/lab/*.cu)
file(GLOB lab_cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/measure/lab/*.cu)
if(WARPCIPHER_HAS_CUDA)
  list(APPEND lab_sources ${PROJECT_SOURCE_DIR}/src/engine/cuda/runtime/check.cu)
else()
  set_source_files_properties(${lab_cuda_sources} PROPERTIES LANGUAGE CXX)
endif()

add_library(warpcipher_lab OBJECT EXCLUDE_FROM_ALL ${lab_sources})
set_target_properties(warpcipher_lab PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(warpcipher_lab PUBLIC measure/lab src)
target_compile_definitions(warpcipher_lab PUBLIC WARPCIPHER_HAS_CUDA=$<BOOL:${WARPCIPHER_HAS_CUDA}>)
warpcipher_compile_options(warpcipher_lab "${WARPCIPHER_LAB_CUDA_CODE}")
if(WARPCIPHER_HAS_CUDA)
  target_link_libraries(warpcipher_lab PUBLIC warpcipher_cuda_runtime)
endif()

find_package(OpenMP COMPONENTS CXX)  # for a variant of billava2022; without it, that one says so
if(OpenMP_CXX_FOUND)
  target_link_libraries(warpcipher_lab PUBLIC OpenMP::OpenMP_CXX)
  target_compile_options(warpcipher_lab PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${OpenMP_CXX_FLAGS}>")
endif()
