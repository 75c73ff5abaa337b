/* id.h - unguessable names: 20 characters of [a-z0-9], 100 bits and more (interfaces: "Ids and names"). */
#pragma once

enum { ID_LEN = 20, ID_TEXT = ID_LEN + 1 };

/* 0, or negative errno when the kernel gives no randomness. */
int id_new(char dst[ID_TEXT]);
