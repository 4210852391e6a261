/* LAB: in /etc/ld.so.preload of a dressed host, so that `uname -r` is the system's own kernel (/etc/lab-kernel), not the
   machine's. Static programs and /proc/sys/kernel/osrelease still show the machine's. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

int uname(struct utsname *found) {
  long result = syscall(SYS_uname, found);
  FILE *file = result ? NULL : fopen("/etc/lab-kernel", "re");
  if (file) {
    char line[sizeof found->release];
    if (fgets(line, sizeof line, file)) {
      line[strcspn(line, "\n")] = 0;
      strcpy(found->release, line);
    }
    fclose(file);
  }
  return (int)result;
}
