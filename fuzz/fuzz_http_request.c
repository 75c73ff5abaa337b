/* fuzz_http_request.c - requests from strangers: cut anywhere they mean the same, and what we write of one we accept.
 */
#include "http_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        if (size <= HTTP_MESSAGE_MAX)
                http_message_check(data, size, NULL);
        return 0;
}
