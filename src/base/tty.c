/* tty.c - see tty.h. */
#include "base/tty.h"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios saved;
static bool changed;

bool tty_raw(void) {
        struct termios raw;

        if (tcgetattr(STDIN_FILENO, &saved) < 0)
                return false;
        raw = saved;
        cfmakeraw(&raw);
        changed = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
        return changed;
}

void tty_restore(void) {
        if (changed)
                (void) tcsetattr(STDIN_FILENO, TCSADRAIN, &saved);
        changed = false;
}

void tty_size(uint16_t *rows, uint16_t *columns) {
        struct winsize size;

        *rows = 24;
        *columns = 80;
        for (int fd = 0; fd < 3; fd++)
                if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
                        *rows = size.ws_row;
                        *columns = size.ws_col;
                        return;
                }
}
