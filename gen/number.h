// Numbers as text with a decimal point, whatever locale the host program has set.
#ifndef PTXSMITH_NUMBER_H
#define PTXSMITH_NUMBER_H

double number_parse(const char *text, char **end); // as strtod, errno too
enum { NUMBER_BYTES = 40 };
// The shortest decimal that reads back as the same double, of 6 digits at least; its length.
int number_text(double x, char out[NUMBER_BYTES]);

#endif
