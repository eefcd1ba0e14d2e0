/* files.h: what keeps the user's files: the inputs of this command, which no output replaces, and
 * names that are taken only while they are free.
 *
 * Threads  any.
 */
#pragma once

#include <stdbool.h>

/* on: from now on inputs are noted, by a program that carries out one command. Otherwise they are
 * not: in a library, what an earlier recording has read may be written by a later one. */
void vn_inputs_watch(bool on);
/* Notes an open file as one that this command reads, unless it made it. Whatever opens an input
 * calls it. */
void vn_input_note(int fd);
/* Notes an open file as one that this command makes: call it before anything is written. */
void vn_output_note(int fd);
/* Is this a file that was noted, by whatever name (a symbolic or hard link)? The second does not
 * follow a link in the last place of the path, as rename does not. */
bool vn_input_is_open(int fd);
bool vn_input_is(const char *path);

/* fsync; 0 also on file systems that cannot sync this file. */
int vn_file_sync(int fd);

/* Renames a file of ours to a name that nothing has. -1, with errno EEXIST: something has it, and
 * keeps it. Some file systems have neither RENAME_NOREPLACE (NFS) nor links (FAT): there an empty
 * file takes the name first (O_EXCL), so that the rename replaces nothing but that. */
int vn_file_move(const char *from, const char *to);
