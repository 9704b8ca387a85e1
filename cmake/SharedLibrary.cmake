# SPDX-License-Identifier: Apache-2.0
# libwarpcipher.so: the C ABI and nothing else visible, with the files that let other builds find it.

add_library(warpcipher SHARED ${capi_sources})
add_library(warpcipher::warpcipher ALIAS warpcipher)
warpcipher_compile_options(warpcipher)
set_target_properties(
  warpcipher
  PROPERTIES VERSION ${PROJECT_VERSION}
             SOVERSION 0
             LINKER_LANGUAGE CXX
             LINK_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/cmake/warpcipher.map")
target_include_directories(warpcipher PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
                                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(warpcipher PRIVATE warpcipher_core)
target_link_options(warpcipher PRIVATE "-Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/cmake/warpcipher.map"
                    "-Wl,--no-undefined")

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/warpcipher")
install(
  TARGETS warpcipher
  EXPORT warpcipher
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library NAMELINK_COMPONENT library)
install(FILES include/warpcipher.h include/warpcipher.hpp DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT library)
install(
  EXPORT warpcipher
  FILE warpcipherConfig.cmake
  NAMESPACE warpcipher::
  DESTINATION "${package_dir}"
  COMPONENT library)
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/warpcipherConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
configure_file(cmake/warpcipher.pc.in "${CMAKE_CURRENT_BINARY_DIR}/warpcipher.pc" @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/warpcipherConfigVersion.cmake" DESTINATION "${package_dir}"
        COMPONENT library)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/warpcipher.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
        COMPONENT library)
