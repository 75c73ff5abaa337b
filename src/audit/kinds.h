/* kinds.h - the OCSF side of each kind of event. Private to audit/. */
#pragma once

#include "audit/audit.h"

struct audit_class {
        const char *name;
        unsigned class_uid, activity;
        unsigned severity; /* when nothing was denied */
};

const struct audit_class *audit_class(enum audit_kind k);
