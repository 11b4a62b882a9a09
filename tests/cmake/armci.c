#include <armci.h>
int main(void)
{
  return ARMCI_Init() != 0 || ARMCI_Finalize() != 0;
}
