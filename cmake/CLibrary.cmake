# SPDX-License-Identifier: Apache-2.0
# libwarpcipher.so: the C ABI and nothing else visible; libwarpcipher.a if it is wanted; and the files that let other
# builds find them. Three components, as a distribution packages them:
#   runtime        libwarpcipher.so.0
#   development    headers, the CMake package, the pkg-config file, libwarpcipher.so and .a
#   documentation  the pages, the examples and the licence

add_library(warpcipher_capi OBJECT ${capi_sources})
set_target_properties(warpcipher_capi PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(warpcipher_capi PRIVATE warpcipher_core)
warpcipher_compile_options(warpcipher_capi)
add_library(warpcipher SHARED $<TARGET_OBJECTS:warpcipher_capi>)
add_library(warpcipher::warpcipher ALIAS warpcipher)
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
set(libraries warpcipher)

if(WARPCIPHER_BUILD_STATIC)
  # One object, with CUDA's runtime inside, in which only the functions of warpcipher.h are global: a program may have
  # C++ names like those of src/ (warpcipher.hpp has), and another release of CUDA.
  add_library(warpcipher_parts STATIC $<TARGET_OBJECTS:warpcipher_capi>
                                      $<FILTER:$<TARGET_OBJECTS:warpcipher_core>,EXCLUDE,[.]gch$>)
  set_target_properties(warpcipher_parts PROPERTIES LINKER_LANGUAGE CXX)
  if(WARPCIPHER_HAS_CUDA)
    target_sources(warpcipher_parts PRIVATE $<TARGET_OBJECTS:warpcipher_sm_90a>)
  else()
    target_sources(warpcipher_parts PRIVATE $<TARGET_OBJECTS:warpcipher_absent>)
  endif()
  set(static_object "${CMAKE_CURRENT_BINARY_DIR}/warpcipher.o")
  add_custom_command(
    OUTPUT "${static_object}"
    COMMAND "${CMAKE_LINKER}" -r --force-group-allocation -o "${static_object}" --whole-archive
            "$<TARGET_FILE:warpcipher_parts>" --no-whole-archive ${WARPCIPHER_CUDART_STATIC}
    COMMAND "${CMAKE_OBJCOPY}" --wildcard "--keep-global-symbol=wc_*" "${static_object}"
    DEPENDS warpcipher_parts
    VERBATIM)
  set_source_files_properties("${static_object}" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  add_library(warpcipher_static STATIC "${static_object}")
  add_library(warpcipher::warpcipher_static ALIAS warpcipher_static)
  set_target_properties(warpcipher_static PROPERTIES OUTPUT_NAME warpcipher LINKER_LANGUAGE CXX)
  target_include_directories(
    warpcipher_static INTERFACE $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
                                $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(warpcipher_static INTERFACE stdc++ m Threads::Threads ${CMAKE_DL_LIBS} rt)
  list(APPEND libraries warpcipher_static)
endif()

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/warpcipher")
install(
  TARGETS ${libraries}
  EXPORT warpcipher
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT development
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(
  EXPORT warpcipher
  FILE warpcipherTargets.cmake
  NAMESPACE warpcipher::
  DESTINATION "${package_dir}"
  COMPONENT development)
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/warpcipherConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
configure_file(cmake/warpcipher.pc.in "${CMAKE_CURRENT_BINARY_DIR}/warpcipher.pc" @ONLY)
install(FILES cmake/warpcipherConfig.cmake "${CMAKE_CURRENT_BINARY_DIR}/warpcipherConfigVersion.cmake"
        DESTINATION "${package_dir}" COMPONENT development)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/warpcipher.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
        COMPONENT development)
install(FILES README.md CHANGELOG.md SECURITY.md LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}"
        COMPONENT documentation)
install(DIRECTORY docs examples DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT documentation
        PATTERN "conf.py" EXCLUDE PATTERN "log" EXCLUDE PATTERN "site" EXCLUDE PATTERN "static" EXCLUDE)
