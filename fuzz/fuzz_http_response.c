/* fuzz_http_response.c - responses from servers, to each kind of request that changes how they are read. */
#include "http_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        if (size > HTTP_MESSAGE_MAX)
                return 0;
        http_message_check(data, size, "GET");
        http_message_check(data, size, "HEAD");
        http_message_check(data, size, "CONNECT");
        return 0;
}
