/* ids.c - who a set-user-id program believes to be, and whether it can become root. */
#include <stdio.h>
#include <unistd.h>

int main(void) {
        uid_t effective = geteuid();
        int root = setresuid(0, 0, 0);

        printf("%u %u %d\n", effective, getegid(), root == 0);
        return 0;
}
