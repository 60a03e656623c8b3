# attsvm_batches(FOLDERS...): the files of each folder of src are compiled together, with GROUP as UNITY_BUILD_MODE, so
# that what they ask of Eigen is compiled once. Files of a folder that have constants of the same name are in two batches.
# Highway includes its files repeatedly, so they are alone.
function(attsvm_batches)
  set(source ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../src)
  foreach(folder IN LISTS ARGN)
    file(GLOB files ${source}/${folder}/*.cpp)
    string(REPLACE / _ group ${folder})
    foreach(file IN LISTS files)
      if(file MATCHES "/(base/simd|frobenius/wide_active_set|train/lane_[kps][a-z]*)\\.cpp$")
        continue()
      elseif(file MATCHES "/(frobenius/interior_point|nuclear/(barrier|wide_path)|power/(path|solver)|soft/soft_face|streaming/nuclear_[a-z_]*|train/lane_runs)\\.cpp$")
        set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${group}_more)
      else()
        set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${group})
      endif()
    endforeach()
  endforeach()
endfunction()
