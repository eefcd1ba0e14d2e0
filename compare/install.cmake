# What `cmake --install` gives: the program, its manual, and the libraries with
# their headers for people who build on them. Headers keep their rooms:
# #include "libref/plan/plan.h" works with the flags of `pkg-config vernier`.
set(VERNIER_PC_LIBS "-lvernier-compare -lvernier-capture")
set(VERNIER_PC_REQUIRES "hdf5-serial yaml-0.1 libzip libpcre2-8")
if(VERNIER_GPU)
	string(APPEND VERNIER_PC_LIBS " -lvernier-gpu")
endif()
string(APPEND VERNIER_PC_LIBS " -lvernier-ref")
configure_file(${CMAKE_CURRENT_LIST_DIR}/vernier.pc.in ${CMAKE_CURRENT_BINARY_DIR}/vernier.pc @ONLY)
configure_file(${CMAKE_CURRENT_LIST_DIR}/vernier-capture.pc.in ${CMAKE_CURRENT_BINARY_DIR}/vernier-capture.pc @ONLY)

set(libraries vn_libref vn_capture vn_compare)
set(rooms libref capture compare)
if(VERNIER_GPU)
	list(APPEND libraries vn_libgpu)
	list(APPEND rooms libgpu)
endif()
foreach(library ${libraries})
	string(REGEX REPLACE "vn_(lib)?" "vernier-" name ${library})
	set_property(TARGET ${library} PROPERTY OUTPUT_NAME ${name})
endforeach()
install(TARGETS ${libraries} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS vernier RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/vernier.pc ${CMAKE_CURRENT_BINARY_DIR}/vernier-capture.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/vernier.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
# For other engines: a C API (vernier-capture.pc), and one header that needs nothing.
install(FILES ${PROJECT_SOURCE_DIR}/capture/include/vernier_capture.h ${PROJECT_SOURCE_DIR}/capture/include/vernier_record.h
	DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/capture/llama.cpp ${PROJECT_SOURCE_DIR}/capture/examples
	DESTINATION ${CMAKE_INSTALL_DATADIR}/vernier)
foreach(room ${rooms})
	install(DIRECTORY ${PROJECT_SOURCE_DIR}/${room} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vernier
		FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "shaders" EXCLUDE PATTERN "python" EXCLUDE PATTERN "examples" EXCLUDE PATTERN "include" EXCLUDE PATTERN "llama.cpp" EXCLUDE)
endforeach()
