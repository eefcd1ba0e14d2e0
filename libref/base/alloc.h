/* alloc.h: memory that a program cannot go on without.
 *
 * If there is none, these functions end the program with a line on stderr and exit status 2, and
 * remove its temporary files (temporary.h). So a command needs no code for that case. A library,
 * which may not end its program, and optional work use malloc.
 *
 * Owner    the caller frees the memory with free.
 * Threads  any.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* Return room for n elements of `size` bytes, for one if n is 0: with any contents, or zeroed. */
void *vn_alloc(size_t n, size_t size);
void *vn_alloc_zero(size_t n, size_t size);
/* Return the elements with room for n of them; with room for one more, as vn_grown (grow.h). */
void *vn_alloc_resized(void *list, size_t n, size_t size);
void *vn_alloc_grown(void *list, size_t n, size_t size);
/* Returns a copy of the text. */
char *vn_alloc_text(const char *text);
/* A text that is written as a stream: its FILE; and its end, after which the caller frees text. */
typedef struct vn_text_stream {
	FILE  *file;
	char  *text; /* so far, after fflush */
	size_t bytes;
} vn_text_stream;
FILE *vn_alloc_stream(vn_text_stream *s);
char *vn_alloc_streamed(vn_text_stream *s);
/* Returns p. NULL, from a function that found no memory, ends the program, too. */
void *vn_alloc_check(const void *p);
