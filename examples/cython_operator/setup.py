import cygrad
from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup

Options.buffer_max_dims = 3     # memoryviews must have the size of cygrad's; otherwise compiling fails

setup(ext_modules=cythonize(
    [Extension(name, [name + ".pyx"], include_dirs=[cygrad.get_include()])
     for name in ("cygrad_log_cosh", "cygrad_log_cosh_loop", "cygrad_moving_average")],
))
