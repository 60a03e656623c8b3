# attsvm_web_page(NAME TARGET REASON [WASM]): web/ bundled into one HTML file, as the object of the function NAME in
# TARGET; with WASM, a module inside. Where there is a REASON why it cannot be made, or the packages cannot be fetched,
# the object holds the reason instead; the stamp is then not written, and the next build tries again.
find_program(ATTSVM_NODE NAMES node nodejs)
find_program(ATTSVM_NPM npm)

function(attsvm_web_page name target reason)
  set(web ${PROJECT_SOURCE_DIR}/web)
  set(page ${CMAKE_CURRENT_BINARY_DIR}/${name})
  if(NOT reason)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${web}/src/*.ts ${web}/src/*.css ${web}/src/*.html)
    add_custom_command(OUTPUT ${page}.stamp BYPRODUCTS ${page}.cpp
      COMMAND ${web}/embed ${ATTSVM_NODE} ${ATTSVM_NPM} ${page} ${ARGN}
      DEPENDS ${web}/embed ${web}/bundle.mjs ${web}/package.json ${web}/package-lock.json ${sources} ${ARGN}
      COMMENT "Bundling ${name}" VERBATIM)
    add_custom_target(${target}_page DEPENDS ${page}.stamp)
    add_dependencies(${target} ${target}_page)
  else()
    message(STATUS "${reason}")
    file(WRITE ${page}.cpp.in "#include \"report/page.h\"\nnamespace attsvm::internal {\nBuiltPage ${name}() {\n"
      "  return {{}, \"${reason}\"};\n}\n}  // namespace attsvm::internal\n")
    configure_file(${page}.cpp.in ${page}.cpp COPYONLY)
  endif()
  target_sources(${target} PRIVATE ${page}.cpp)
  set_source_files_properties(${page}.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # it changes with web/ alone
endfunction()

# Sets RESULT to why a page cannot be made without a package: for the first VARIABLE:PACKAGE whose variable is false.
function(attsvm_missing_for page result)
  set(${result} "" PARENT_SCOPE)
  foreach(pair IN LISTS ARGN)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 found)
    list(GET pair 1 package)
    if(NOT ${found})
      set(${result} "this attsvm was built without its ${page}, because ${package} was missing; install ${package} (Debian: apt install ${package}) and build again" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()
