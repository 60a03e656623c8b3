# The playground: the library compiled to WebAssembly, in a page of its own. What it needs besides the page is Emscripten
# and Boost's headers.
option(ATTSVM_PLAYGROUND "Compile the library a second time, to WebAssembly, for the playground" ON)
set(ATTSVM_PLAYGROUND_MODULE "" CACHE FILEPATH "Take the WebAssembly module that another build has compiled")
set(wasm ${CMAKE_CURRENT_BINARY_DIR}/playground.wasm)
set(web ${PROJECT_SOURCE_DIR}/web)
find_program(ATTSVM_EMXX em++)
find_path(ATTSVM_BOOST boost/multiprecision/cpp_bin_float.hpp)
if(ATTSVM_EMXX)
  file(REAL_PATH ${ATTSVM_EMXX} behind)  # in Emscripten's own folder, wherever its package put it
  cmake_path(GET behind PARENT_PATH behind)
endif()
find_path(ATTSVM_EMSCRIPTEN cmake/Modules/Platform/Emscripten.cmake HINTS "${behind}")
attsvm_missing_for(playground reason ATTSVM_NODE:npm ATTSVM_NPM:npm ATTSVM_EMXX:emscripten ATTSVM_EMSCRIPTEN:emscripten
  ATTSVM_BOOST:libboost-dev)
if(NOT ATTSVM_PLAYGROUND)
  set(reason "this attsvm was built without its playground, as pip does to save time; `make build` builds the program with it")
endif()
if(ATTSVM_PLAYGROUND_MODULE)
  set(wasm ${ATTSVM_PLAYGROUND_MODULE})
  attsvm_missing_for(playground reason ATTSVM_NODE:npm ATTSVM_NPM:npm)
elseif(NOT reason)
  set(library)
  foreach(folder base device task margin train theory report)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cpp ${PROJECT_SOURCE_DIR}/src/${folder}/*.h)
    list(APPEND library ${files})
  endforeach()
  file(GLOB_RECURSE bindings CONFIGURE_DEPENDS ${web}/wasm/* ${PROJECT_SOURCE_DIR}/include/attsvm/*.h)
  get_target_property(eigen Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
  add_custom_command(OUTPUT ${wasm}
    COMMAND ${web}/wasm/build ${PROJECT_SOURCE_DIR}/build/wasm ${wasm} ${ATTSVM_EMSCRIPTEN} ${ATTSVM_BOOST} ${eigen}
      ${CMAKE_CXX_COMPILER_LAUNCHER}
    DEPENDS ${library} ${bindings} COMMENT "Compiling the library to WebAssembly" VERBATIM)
endif()
attsvm_web_page(built_playground attsvm_command "${reason}" ${wasm})
