/* image.S - the agent's program inside the command line's: gabion can be copied about as one file. */
        .section .rodata.gabion_agent_image, "a"
        .balign 16
        .globl gabion_agent_image
        .type gabion_agent_image, %object
gabion_agent_image:
        .incbin AGENT_FILE
1:
        .size gabion_agent_image, . - gabion_agent_image
        .balign 8
        .globl gabion_agent_image_size
        .type gabion_agent_image_size, %object
gabion_agent_image_size:
        .quad 1b - gabion_agent_image
        .size gabion_agent_image_size, 8
        .section .note.GNU-stack, "", %progbits
