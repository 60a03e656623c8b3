# zig's clang and libc++ with the symbols of glibc 2.28, and the libraries that build_libraries put beside this file.
set(CMAKE_CXX_COMPILER ${CMAKE_CURRENT_LIST_DIR}/bin/c++)
# nanobind's headers forget cstdio, and zig writes the symbols of a debugger unless told not to.
set(CMAKE_CXX_FLAGS_INIT "-include cstdio -g0 -ffunction-sections -fdata-sections")
set(CMAKE_PREFIX_PATH ${CMAKE_CURRENT_LIST_DIR})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_CURRENT_LIST_DIR}/lib/pkgconfig)
# What static libraries need in their turn.
set(CMAKE_CXX_STANDARD_LIBRARIES "-L${CMAKE_CURRENT_LIST_DIR}/lib -lmpfr -lgfortran -lpthread -ldl -lm")
# Nothing of them is visible to other modules of the process, and what nobody calls is left out.
set(CMAKE_MODULE_LINKER_FLAGS_INIT
  "-Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/module.map -Wl,--gc-sections -s")
