# attsvm_folder(NAME FILES... PUBLIC TARGETS... PRIVATE TARGETS...): the folder src/NAME as the static library attsvm::NAME.
# Folders link only folders before them; tests/packaging links each alone to prove it.

function(attsvm_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
    -Wno-missing-field-initializers  # designated initialisers leave the rest to its defaults
    $<$<BOOL:${ATTSVM_WERROR}>:-Werror>)
  # Contracted multiply-adds round differently from machine to machine; the same seed must give the same bytes everywhere.
  target_compile_options(${target} PRIVATE -ffp-contract=off)
  # Vector loops are compiled for AVX-512, AVX2 and plain x86-64. What lies between serves processors from before 2013,
  # and would add two thirds to the time that compiling the loops takes.
  target_compile_definitions(${target} PRIVATE "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4)")
  if(ATTSVM_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${ATTSVM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${ATTSVM_SANITIZE})
  endif()
endfunction()

# What nearly every file includes is read once for all targets: reading it takes longer than compiling most files. The
# target that owns it defines no macro that another lacks, because GCC would then not use it there.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/shared_headers.cpp CONTENT "")
add_library(attsvm_shared_headers OBJECT ${PROJECT_BINARY_DIR}/shared_headers.cpp)
target_link_libraries(attsvm_shared_headers PRIVATE Eigen3::Eigen fmt::fmt)
attsvm_options(attsvm_shared_headers)
target_precompile_headers(attsvm_shared_headers PRIVATE <Eigen/Dense> <fmt/format.h> <algorithm> <array> <cmath>
  <functional> <limits> <optional> <span> <string> <vector>)

function(attsvm_folder name)
  cmake_parse_arguments(arg "" "" "PUBLIC;PRIVATE" ${ARGN})
  add_library(attsvm_${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  add_library(attsvm::${name} ALIAS attsvm_${name})
  set_target_properties(attsvm_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(attsvm_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_features(attsvm_${name} PUBLIC cxx_std_20)
  attsvm_options(attsvm_${name})
  target_link_libraries(attsvm_${name} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  target_precompile_headers(attsvm_${name} REUSE_FROM attsvm_shared_headers)
endfunction()
