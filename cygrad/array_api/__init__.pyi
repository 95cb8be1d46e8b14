# Written by tools/make_stubs.py; do not edit.
from typing import Any

from cygrad.array_api.functions import namespace_info as __array_namespace_info__
from cygrad.ops.elementwise.elementwise import abs as abs
from cygrad.ops.elementwise.functions import acos as acos
from cygrad.ops.elementwise.functions import acosh as acosh
from cygrad.ops.elementwise.elementwise import add as add
from cygrad.ops.reductions.reduce import all as all
from cygrad.ops.reductions.reduce import any as any
from cygrad.array_api.functions import arange as arange
from cygrad.ops.reductions.minmax import argmax as argmax
from cygrad.ops.reductions.minmax import argmin as argmin
from cygrad.array_api.functions import argsort as argsort
from cygrad.array_api.functions import asarray as asarray
from cygrad.ops.elementwise.functions import asin as asin
from cygrad.ops.elementwise.functions import asinh as asinh
from cygrad.array_api.functions import astype as astype
from cygrad.ops.elementwise.functions import atan as atan
from cygrad.ops.elementwise.special import atan2 as atan2
from cygrad.ops.elementwise.functions import atanh as atanh
from cygrad.ops.elementwise.compare import bitwise_and as bitwise_and
from cygrad.array_api.functions import bitwise_invert as bitwise_invert
from cygrad.ops.elementwise.representation import bitwise_left_shift as bitwise_left_shift
from cygrad.ops.elementwise.compare import bitwise_or as bitwise_or
from cygrad.ops.elementwise.representation import bitwise_right_shift as bitwise_right_shift
from cygrad.ops.elementwise.compare import bitwise_xor as bitwise_xor
from cygrad.ops.shapes.rearrange import broadcast_arrays as broadcast_arrays
from cygrad.array_api.functions import broadcast_shapes as broadcast_shapes
from cygrad.ops.shapes.shape import broadcast_to as broadcast_to
from cygrad.array_api.functions import can_cast as can_cast
from cygrad.ops.elementwise.elementwise import ceil as ceil
from cygrad.ops.elementwise.compare import clip as clip
from cygrad.ops.shapes.join import concat as concat
from cygrad.array_api.functions import conj as conj
from cygrad.ops.elementwise.special import copysign as copysign
from cygrad.ops.elementwise.functions import cos as cos
from cygrad.ops.elementwise.functions import cosh as cosh
from cygrad.ops.reductions.summaries import count_nonzero as count_nonzero
from cygrad.array_api.functions import cumulative_prod as cumulative_prod
from cygrad.array_api.functions import cumulative_sum as cumulative_sum
from cygrad.ops.reductions.summaries import diff as diff
from cygrad.ops.elementwise.elementwise import div as divide
from cygrad.array_api.functions import empty as empty
from cygrad.array_api.functions import empty_like as empty_like
from cygrad.ops.elementwise.compare import equal as equal
from cygrad.ops.elementwise.functions import exp as exp
from cygrad.ops.shapes.shape import expand_dims as expand_dims
from cygrad.ops.elementwise.functions import expm1 as expm1
from cygrad.array_api.functions import eye as eye
from cygrad.array_api.functions import finfo as finfo
from cygrad.ops.shapes.shape import flip as flip
from cygrad.ops.elementwise.elementwise import floor as floor
from cygrad.array_api.functions import floor_divide as floor_divide
from cygrad.core.interop.dlpack import from_dlpack as from_dlpack
from cygrad.array_api.functions import full as full
from cygrad.array_api.functions import full_like as full_like
from cygrad.ops.elementwise.compare import greater as greater
from cygrad.ops.elementwise.compare import greater_equal as greater_equal
from cygrad.ops.elementwise.special import hypot as hypot
from cygrad.array_api.functions import iinfo as iinfo
from cygrad.array_api.functions import imag as imag
from cygrad.array_api.functions import isdtype as isdtype
from cygrad.ops.elementwise.compare import isfinite as isfinite
from cygrad.array_api.functions import isin as isin
from cygrad.ops.elementwise.compare import isinf as isinf
from cygrad.ops.elementwise.compare import isnan as isnan
from cygrad.ops.elementwise.compare import less as less
from cygrad.ops.elementwise.compare import less_equal as less_equal
from cygrad.array_api import linalg as linalg
from cygrad.array_api.functions import linspace as linspace
from cygrad.ops.elementwise.functions import log as log
from cygrad.ops.elementwise.special import log10 as log10
from cygrad.ops.elementwise.functions import log1p as log1p
from cygrad.ops.elementwise.special import log2 as log2
from cygrad.ops.elementwise.special import logaddexp as logaddexp
from cygrad.ops.elementwise.compare import logical_and as logical_and
from cygrad.ops.elementwise.compare import logical_not as logical_not
from cygrad.ops.elementwise.compare import logical_or as logical_or
from cygrad.ops.elementwise.compare import logical_xor as logical_xor
from cygrad.ops.linalg.linalg import matmul as matmul
from cygrad.ops.shapes.shape import matrix_transpose as matrix_transpose
from cygrad.ops.reductions.minmax import max as max
from cygrad.ops.elementwise.compare import maximum as maximum
from cygrad.ops.reductions.reduce import mean as mean
from cygrad.ops.shapes.rearrange import meshgrid as meshgrid
from cygrad.ops.reductions.minmax import min as min
from cygrad.ops.elementwise.compare import minimum as minimum
from cygrad.ops.shapes.rearrange import moveaxis as moveaxis
from cygrad.ops.elementwise.elementwise import mul as multiply
from cygrad.ops.elementwise.elementwise import neg as negative
from cygrad.ops.elementwise.representation import nextafter as nextafter
from cygrad.ops.reductions.selection import nonzero as nonzero
from cygrad.ops.elementwise.compare import not_equal as not_equal
from cygrad.array_api.functions import ones as ones
from cygrad.array_api.functions import ones_like as ones_like
from cygrad.array_api.functions import permute_dims as permute_dims
from cygrad.array_api.functions import positive as positive
from cygrad.ops.elementwise.elementwise import pow as pow
from cygrad.array_api.functions import prod as prod
from cygrad.array_api.functions import real as real
from cygrad.ops.elementwise.elementwise import reciprocal as reciprocal
from cygrad.ops.elementwise.elementwise import remainder as remainder
from cygrad.ops.shapes.rearrange import repeat as repeat
from cygrad.array_api.functions import reshape as reshape
from cygrad.array_api.functions import result_type as result_type
from cygrad.ops.shapes.rearrange import roll as roll
from cygrad.ops.elementwise.elementwise import round as round
from cygrad.ops.shapes.sort import searchsorted as searchsorted
from cygrad.ops.elementwise.elementwise import sign as sign
from cygrad.ops.elementwise.representation import signbit as signbit
from cygrad.ops.elementwise.functions import sin as sin
from cygrad.ops.elementwise.functions import sinh as sinh
from cygrad.array_api.functions import sort as sort
from cygrad.ops.elementwise.elementwise import sqrt as sqrt
from cygrad.ops.elementwise.elementwise import square as square
from cygrad.ops.shapes.shape import squeeze as squeeze
from cygrad.ops.shapes.join import stack as stack
from cygrad.ops.reductions.statistics import std as std
from cygrad.ops.elementwise.elementwise import sub as subtract
from cygrad.array_api.functions import sum as sum
from cygrad.ops.shapes.index import take as take
from cygrad.ops.reductions.selection import take_along_axis as take_along_axis
from cygrad.ops.elementwise.functions import tan as tan
from cygrad.ops.elementwise.functions import tanh as tanh
from cygrad.ops.linalg.products import tensordot as tensordot
from cygrad.array_api.functions import tile as tile
from cygrad.ops.shapes.join import tril as tril
from cygrad.ops.shapes.join import triu as triu
from cygrad.ops.elementwise.elementwise import trunc as trunc
from cygrad.array_api.functions import unique_all as unique_all
from cygrad.array_api.functions import unique_counts as unique_counts
from cygrad.array_api.functions import unique_inverse as unique_inverse
from cygrad.array_api.functions import unique_values as unique_values
from cygrad.ops.shapes.rearrange import unstack as unstack
from cygrad.ops.reductions.statistics import var as var
from cygrad.ops.linalg.products import vecdot as vecdot
from cygrad.ops.protocols import where as where
from cygrad.array_api.functions import zeros as zeros
from cygrad.array_api.functions import zeros_like as zeros_like
__all__ = ['__array_namespace_info__', 'abs', 'acos', 'acosh', 'add', 'all', 'any', 'arange', 'argmax', 'argmin', 'argsort', 'asarray', 'asin', 'asinh', 'astype', 'atan', 'atan2', 'atanh', 'bitwise_and', 'bitwise_invert', 'bitwise_left_shift', 'bitwise_or', 'bitwise_right_shift', 'bitwise_xor', 'bool', 'broadcast_arrays', 'broadcast_shapes', 'broadcast_to', 'can_cast', 'ceil', 'clip', 'concat', 'conj', 'copysign', 'cos', 'cosh', 'count_nonzero', 'cumulative_prod', 'cumulative_sum', 'diff', 'divide', 'e', 'empty', 'empty_like', 'equal', 'exp', 'expand_dims', 'expm1', 'eye', 'finfo', 'flip', 'float32', 'float64', 'floor', 'floor_divide', 'from_dlpack', 'full', 'full_like', 'greater', 'greater_equal', 'hypot', 'iinfo', 'imag', 'inf', 'int16', 'int32', 'int64', 'int8', 'isdtype', 'isfinite', 'isin', 'isinf', 'isnan', 'less', 'less_equal', 'linalg', 'linspace', 'log', 'log10', 'log1p', 'log2', 'logaddexp', 'logical_and', 'logical_not', 'logical_or', 'logical_xor', 'matmul', 'matrix_transpose', 'max', 'maximum', 'mean', 'meshgrid', 'min', 'minimum', 'moveaxis', 'multiply', 'nan', 'negative', 'newaxis', 'nextafter', 'nonzero', 'not_equal', 'ones', 'ones_like', 'permute_dims', 'pi', 'positive', 'pow', 'prod', 'real', 'reciprocal', 'remainder', 'repeat', 'reshape', 'result_type', 'roll', 'round', 'searchsorted', 'sign', 'signbit', 'sin', 'sinh', 'sort', 'sqrt', 'square', 'squeeze', 'stack', 'std', 'subtract', 'sum', 'take', 'take_along_axis', 'tan', 'tanh', 'tensordot', 'tile', 'tril', 'triu', 'trunc', 'uint16', 'uint32', 'uint64', 'uint8', 'unique_all', 'unique_counts', 'unique_inverse', 'unique_values', 'unstack', 'var', 'vecdot', 'where', 'zeros', 'zeros_like']
bool: Any
e: float
float32: Any
float64: Any
inf: float
int16: Any
int32: Any
int64: Any
int8: Any
nan: float
newaxis: Any
pi: float
uint16: Any
uint32: Any
uint64: Any
uint8: Any
