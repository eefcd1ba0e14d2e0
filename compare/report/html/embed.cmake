# embed.cmake: the page of `--format html`, from its HTML, CSS and JavaScript, and plain.html, as
# arrays of bytes.
#
#   cmake -DFROM=compare/report/html -DTO=page.c -P embed.cmake
#
# The page's Content-Security-Policy runs this one script and this one style sheet, by their
# digests, and nothing else: text of a recording cannot become another one.

# SHA-256 in base64, as the policy requires. CMake gives hexadecimal: 3 digits are 2 of base64.
function(digest text to)
	set(alphabet ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
	string(SHA256 hex "${text}")
	string(APPEND hex 00)
	set(out "")
	foreach(i RANGE 0 63 3)
		string(SUBSTRING ${hex} ${i} 3 three)
		math(EXPR high "0x${three} / 64")
		math(EXPR low "0x${three} % 64")
		string(SUBSTRING ${alphabet} ${high} 1 high)
		string(SUBSTRING ${alphabet} ${low} 1 low)
		string(APPEND out ${high}${low})
	endforeach()
	string(SUBSTRING ${out} 0 43 out) # 256 bits; the rest is padding
	set(${to} "${out}=" PARENT_SCOPE)
endfunction()

file(READ ${FROM}/page.html page)
file(READ ${FROM}/page.css style)
set(script "\n")
foreach(chapter data map list growth graph detail)
	file(READ ${FROM}/${chapter}.js text)
	string(APPEND script "${text}")
endforeach()
if("${script}" MATCHES "</script|@(TITLE|STORY|DATA)@")
	message(FATAL_ERROR "${FROM}: '${CMAKE_MATCH_0}' in a script")
endif()
digest("${style}" style_hash)
digest("${script}" script_hash)
string(REPLACE "@STYLE_HASH@" "${style_hash}" page "${page}")
string(REPLACE "@SCRIPT_HASH@" "${script_hash}" page "${page}")
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")

file(READ ${FROM}/plain.html plain)
string(REGEX REPLACE "\n +" " " plain "${plain}") # a line that goes on
foreach(name page plain)
	string(HEX "${${name}}" hex)
	string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
	string(REGEX REPLACE "(0x0a,)" "\\1\n" ${name} "${bytes}")
endforeach()
file(WRITE ${TO}
	"/* Made by embed.cmake from the files of compare/report/html. */\n#include \"compare/report/report_page.h\"\n\n"
	"const unsigned char vn_page[] = {\n${page}\n0 };\nconst char vn_page_plain[] = {\n${plain}\n0 };\n")
