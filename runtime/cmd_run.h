// What run and counters share: a launch of a file's kernel.
#ifndef PTXSMITH_CMD_RUN_H
#define PTXSMITH_CMD_RUN_H

#include "cmd.h"

// "X[,Y[,Z]]"; what is left out is 1.
Status cmd_dims(Cmd *c, CliOptId opt, uint32_t out[3]);

#endif
