# What Debian asks of a package's files before they are packed: run by cpack over the folder
# of each package.
file(GLOB packages ${CPACK_TEMPORARY_DIRECTORY}/*)
foreach(package ${packages})
	get_filename_component(component ${package} NAME)
	string(TOUPPER ${component} component)
	set(name ${CPACK_DEBIAN_${component}_PACKAGE_NAME})
	if(NOT name)
		continue()
	endif()
	set(doc ${package}/usr/share/doc/${name})
	file(REMOVE ${doc}/LICENSE) # Debian has the text once, for all
	file(WRITE ${doc}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: vernier

Files: *
Copyright: 2026 the vernier authors
License: Apache-2.0
 On Debian systems, the full text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
")
	string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
	file(WRITE ${doc}/changelog "${name} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * This release.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
")
	file(GLOB pages ${package}/usr/share/man/man1/*.1)
	execute_process(COMMAND gzip -9n ${doc}/changelog ${pages} COMMAND_ERROR_IS_FATAL ANY)
	if(EXISTS ${package}/usr/share/zsh/site-functions)
		file(RENAME ${package}/usr/share/zsh/site-functions ${package}/usr/share/zsh/vendor-completions)
	endif()
endforeach()
