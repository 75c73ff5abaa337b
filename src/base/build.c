/*
 * build.c - finds the GNU build-id note in the running program's own memory. No file is opened: the program on disk
 * may be another one by now.
 */
#include "base/build.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "base/str.h"

enum { WORD = 4, ID_BYTES = (BUILD_TEXT - 1) / 2 };

static size_t padded(size_t n) {
        return (n + WORD - 1) / WORD * WORD;
}

/* One note segment. A note is a header, a name and a description, both padded to words. */
static void notes_search(const unsigned char *p, size_t left, char dst[BUILD_TEXT]) {
        ElfW(Nhdr) h;

        while (left >= sizeof(h)) {
                size_t n;

                memcpy(&h, p, sizeof(h));
                if (h.n_namesz > left || h.n_descsz > left)
                        return;
                n = sizeof(h) + padded(h.n_namesz) + padded(h.n_descsz);
                if (n > left)
                        return;
                if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == WORD && memcmp(p + sizeof(h), "GNU", WORD) == 0 &&
                    h.n_descsz == ID_BYTES)
                        str_hex(dst, p + sizeof(h) + WORD, ID_BYTES);
                p += n;
                left -= n;
        }
}

/* The first object is the program itself; the others, if any, are not asked. */
static int on_object(struct dl_phdr_info *info, size_t size, void *dst) {
        (void) size;
        for (size_t i = 0; i < info->dlpi_phnum; i++)
                if (info->dlpi_phdr[i].p_type == PT_NOTE)
                        notes_search((const unsigned char *) (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
                                     info->dlpi_phdr[i].p_memsz, dst);
        return 1;
}

void build_id(char dst[BUILD_TEXT]) {
        dst[0] = '\0';
        (void) dl_iterate_phdr(on_object, dst);
}
