// embed OUT.c ROOT FILE... : writes the files as C arrays, sorted as given, paths relative to ROOT.
#include <stdio.h>
#include <string.h>

static int write_bytes(FILE *out, const char *path, int index, size_t *len) {
  FILE *in = fopen(path, "rb");
  if (!in) return perror(path), 1;
  fprintf(out, "static const char file_%d[] = {", index);
  int c;
  *len = 0;
  while ((c = getc(in)) != EOF) {
    if (*len % 24 == 0) fputc('\n', out);
    fprintf(out, "%d,", (signed char)c);
    ++*len;
  }
  fprintf(out, "\n0};\n");
  int bad = ferror(in);
  fclose(in);
  return bad;
}

int main(int argc, char **argv) {
  if (argc < 3) return fprintf(stderr, "usage: embed OUT.c ROOT FILE...\n"), 2;
  FILE *out = fopen(argv[1], "wb");
  if (!out) return perror(argv[1]), 1;
  const char *root = argv[2];
  size_t skip = strlen(root) + 1;
  static size_t len[4096];
  int n = argc - 3;
  if (n > 4096) return fprintf(stderr, "embed: too many files\n"), 1;
  fprintf(out, "#include \"embedded.h\"\n");
  for (int i = 0; i < n; i++)
    if (write_bytes(out, argv[i + 3], i, &len[i])) return 1;
  fprintf(out, "const EmbeddedFile embedded_files[] = {\n");
  for (int i = 0; i < n; i++)
    fprintf(out, "{\"%s\", file_%d, %zu},\n", argv[i + 3] + skip, i, len[i]);
  fprintf(out, "{0, 0, 0}};\nconst int embedded_nfiles = %d;\n", n);
  return fclose(out) ? (perror(argv[1]), 1) : 0;
}
