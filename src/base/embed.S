/* embed.S - a file as bytes inside a program: symbol NAME, and NAME_size. gabion can be copied about as one file. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define SIZE JOIN(NAME, _size)
        .section .rodata.embedded, "a"
        .balign 16
        .globl NAME
        .type NAME, %object
NAME:
        .incbin FILE
1:
        .size NAME, . - NAME
        .balign 8
        .globl SIZE
        .type SIZE, %object
SIZE:
        .quad 1b - NAME
        .size SIZE, 8
        .section .note.GNU-stack, "", %progbits
