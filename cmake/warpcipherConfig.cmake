# SPDX-License-Identifier: Apache-2.0
# find_package(warpcipher): warpcipher::warpcipher, the shared library, and warpcipher::warpcipher_static where it was
# installed too.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/warpcipherTargets.cmake")
