#include <lapi.h>
int main(void)
{
  lapi_handle_t handle;
  lapi_info_t info = {0};
  return LAPI_Init(&handle, &info) != 0 || LAPI_Term(handle) != 0;
}
