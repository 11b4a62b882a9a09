#include <mercury.h>
int main(void)
{
  unsigned int major, minor, patch;
  return HG_Version_get(&major, &minor, &patch) != HG_SUCCESS;
}
