#include <cp.h>
int main(void)
{
  return cp_init() != 0 || cp_finalize() != 0;
}
