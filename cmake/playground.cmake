# The playground: the library compiled to WebAssembly, in a page bundled into one HTML file, as an object of the program.
# What it needs besides the page is Emscripten and Boost's headers; where something is missing, the object holds the reason.
set(playground ${CMAKE_CURRENT_BINARY_DIR}/built_playground)
set(web ${PROJECT_SOURCE_DIR}/web)
find_program(ATTSVM_EMXX em++)
find_path(ATTSVM_BOOST boost/multiprecision/cpp_bin_float.hpp)
find_path(ATTSVM_EMSCRIPTEN cmake/Modules/Platform/Emscripten.cmake PATHS /usr/share/emscripten)
set(reason "")
foreach(pair ATTSVM_NPM:npm ATTSVM_EMXX:emscripten ATTSVM_EMSCRIPTEN:emscripten ATTSVM_BOOST:libboost-dev)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 found)
  list(GET pair 1 package)
  if(NOT ${found} AND NOT reason)
    set(reason "this attsvm was built without its playground, because ${package} was missing; install ${package} (Debian: apt install ${package}) and build again")
  endif()
endforeach()

if(NOT reason)
  set(library)
  foreach(folder base task margin train theory report)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cpp ${PROJECT_SOURCE_DIR}/src/${folder}/*.h)
    list(APPEND library ${files})
  endforeach()
  file(GLOB_RECURSE bindings CONFIGURE_DEPENDS ${web}/wasm/* ${PROJECT_SOURCE_DIR}/include/attsvm/*.h)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${web}/src/*.ts ${web}/src/*.css ${web}/src/*.html)
  get_target_property(eigen Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
  add_custom_command(OUTPUT ${playground}.compiled BYPRODUCTS ${playground}.wasm
    COMMAND ${web}/wasm/build ${PROJECT_SOURCE_DIR}/build/wasm ${playground}.wasm ${ATTSVM_EMSCRIPTEN} ${ATTSVM_BOOST} ${eigen}
      ${CMAKE_CXX_COMPILER_LAUNCHER}
    COMMAND ${CMAKE_COMMAND} -E touch ${playground}.compiled
    DEPENDS ${library} ${bindings} COMMENT "Compiling the library to WebAssembly" VERBATIM)
  add_custom_command(OUTPUT ${playground}.stamp BYPRODUCTS ${playground}.cpp
    COMMAND ${web}/embed ${ATTSVM_NODE} ${ATTSVM_NPM} ${playground} ${playground}.wasm
    DEPENDS ${web}/embed ${web}/bundle.mjs ${web}/package.json ${web}/package-lock.json ${sources} ${playground}.compiled
    COMMENT "Bundling the playground" VERBATIM)
  add_custom_target(attsvm_playground DEPENDS ${playground}.stamp)
  add_dependencies(attsvm_command attsvm_playground)
else()
  message(STATUS "${reason}")
  file(WRITE ${playground}.cpp.in "#include \"report/page.h\"\nnamespace attsvm::internal {\nBuiltPage built_playground() {\n"
    "  return {{}, \"${reason}\"};\n}\n}  // namespace attsvm::internal\n")
  configure_file(${playground}.cpp.in ${playground}.cpp COPYONLY)
endif()
target_sources(attsvm_command PRIVATE ${playground}.cpp)
set_source_files_properties(${playground}.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # it changes with web/ and the library alone
