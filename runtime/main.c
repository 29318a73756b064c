// The program: parses the command line, runs one verb, prints its messages, exits with its status.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "interrupt.h"
#include "outfile.h"
#include "ptxsmith.h"

typedef Status VerbFn(Cmd *c);
static VerbFn *const verb_fn[CLI_VERB_COUNT] = {
#define X(id, name, ...) cmd_##name,
    CLI_VERBS(X)
#undef X
};

Status cmd_help(Cmd *c) {
  CliVerbId verb = CLI_VERB_COUNT;
  if (c->cli->noperands) {
    verb = cli_verb(c->arena, c->cli->operand[0], c->diag);
    if (verb == CLI_VERB_COUNT) return ST_INPUT;
  }
  fputs(cli_help(c->arena, verb), stdout);
  return ST_OK;
}

Status cmd_version(Cmd *c) {
  if (!cli_has(c->cli, OPT_JSON)) {
    printf("ptxsmith %s\n", psm_version());
    return ST_OK;
  }
  Json j;
  json_begin(&j, c->arena);
  json_str(&j, "version", psm_version());
  fputs(json_end(&j), stdout);
  return ST_OK;
}

// Output that did not arrive is an error, except into a pipe that nobody reads any more.
static Status flush_output(Diag *d) {
  errno = 0;
  if (!fflush(stdout) && !ferror(stdout)) return ST_OK;
  int err = errno;
  struct pollfd out = {.fd = STDOUT_FILENO};
  if (poll(&out, 1, 0) == 1 && out.revents & POLLERR) return ST_OK;
  if (!err) err = outfile_why(STDOUT_FILENO);
  return diag_error(d, NOWHERE, "standard output: %s", err ? strerror(err) : "can't be written");
}

static int exit_code(Status st) { return st == ST_INTERRUPTED ? 130 : (int)st; }

// A closed standard stream's number would go to the next file opened, and messages into that file.
static void keep_stream_numbers(void) {
  for (int fd = open("/dev/null", O_RDONLY); fd >= 0; fd = open("/dev/null", O_RDONLY))
    if (fd > STDERR_FILENO) {
      close(fd);
      return;
    }
}

int main(int argc, char **argv) {
  keep_stream_numbers();
  signal(SIGPIPE, SIG_IGN); // a write that fails is told where it is made
  signal(SIGXFSZ, SIG_IGN);
  Cli cli;
  Cmd c = {.arena = arena_new(), .diag = diag_new(), .cli = &cli, .program = argv[0]};
  Status st = cli_parse(c.arena, argc, (const char *const *)argv, &cli, c.diag);
  if (IN_UNITS >> cli.verb & 1) interrupt_install();
  else interrupt_exit();
  if (!st && cli_has(&cli, OPT_HELP)) fputs(cli_help(c.arena, cli.verb), stdout);
  else if (!st) st = verb_fn[cli.verb](&c);
  Status written = flush_output(c.diag);
  if (!st) st = written;
  fputs(diag_text(c.diag), stderr);
  if (st == ST_INTERRUPTED) fputs("interrupted\n", stderr);
  device_close(c.device);
  session_close(c.session);
  diag_free(c.diag);
  arena_free(c.arena);
  return exit_code(st);
}
