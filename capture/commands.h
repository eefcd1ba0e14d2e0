/* commands.h: the subcommands of this room. argv[0] is the command's name; the
 * exit status is 0 or 2. Results go to stdout, talk to stderr. */
#ifndef VN_CAPTURE_COMMANDS_H
#define VN_CAPTURE_COMMANDS_H

int cmd_capture(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_points(int argc, char **argv);

#endif
