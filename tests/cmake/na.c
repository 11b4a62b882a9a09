#include <na.h>
int main(void)
{
  na_class_t *class = NA_Initialize("mpi", 0);
  return class == 0 || NA_Finalize(class) != NA_SUCCESS;
}
