#include <x10/x10lib.h>
int main(void)
{
  return x10_init(0, 0) != 0 || x10_finalize() != 0;
}
